"""What a service that shares its origin with others may not say or fetch there: rules of headers. Pure.

Services at path addresses share the API's origin, and those below Jupyter's address share Jupyter's.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

OF_ORIGIN: Final = frozenset(
    {
        "accept-ch",
        "activate-storage-access",
        "alt-svc",
        "clear-site-data",
        "critical-ch",
        "nel",
        "origin-agent-cluster",
        "public-key-pins",
        "public-key-pins-report-only",
        "report-to",
        "reporting-endpoints",
        "sec-session-registration",
        "service-worker-allowed",
        "set-login",
        "strict-transport-security",
        "use-as-dictionary",
    }
)
"""Headers of an answer that speak for its whole origin, in lower case."""


def asks_for_worker(headers: Mapping[str, str]) -> bool:
    """Whether a browser fetches the script of a service worker, which would answer for pages from then on.

    ``headers`` finds names in any case.
    Source: Service Workers, §4.1 (``Service-Worker: script``); Fetch, §2.2.5 (the destination ``serviceworker``).
    """
    return "Service-Worker" in headers or headers.get("Sec-Fetch-Dest", "").lower() == "serviceworker"
