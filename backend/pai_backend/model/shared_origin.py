"""What a service that shares its origin with others may not say, hear or fetch there: rules of headers. Pure.

Services at path addresses share the API's origin, and those below Jupyter's address share Jupyter's.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from typing import Final, Protocol

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


class Headers(Protocol):
    """The fields of a request, found by names in any case."""

    def __contains__(self, name: str, /) -> bool:
        """Whether there is such a field."""
        ...

    def get(self, name: str, default: str, /) -> str:
        """Its value."""
        ...


def asks_for_worker(headers: Headers) -> bool:
    """Whether a browser fetches the script of a service worker, which would answer for pages from then on.

    Source: Service Workers, §4.1 (``Service-Worker: script``); Fetch, §2.2.5 (the destination ``serviceworker``).
    """
    return "Service-Worker" in headers or headers.get("Sec-Fetch-Dest", "").lower() == "serviceworker"


XSRF_COOKIE: Final = "_xsrf"
"""What Tornado's applications call the cookie against forged requests, so Jupyter servers, hubs and services."""
XSRF_MARK: Final = "pai-xsrf"
"""Our cookie beside a service's own ``_xsrf``, by which it is told from others of the host name; holds its digest."""


def mark_of(cookie: str) -> str:
    """The ``Set-Cookie`` of the mark that belongs to a service's ``_xsrf``, with the same path and life."""
    pair, *attributes = (part.strip() for part in cookie.split(";"))
    kept = [attribute for attribute in attributes if attribute.lower() != "httponly"]
    return "; ".join([f"{XSRF_MARK}={_digest(pair.partition('=')[2])}", *kept, "HttpOnly"])


def without_foreign_xsrf(pairs: Iterable[str]) -> tuple[list[str], frozenset[str]]:
    """The ``name=value`` pairs of a request without ``_xsrf`` that no mark stands for, and the values that these had.

    Their order tells nothing: of a hub's, a Jupyter server's and a service's any may be missing.
    """
    known = list(pairs)
    marks = {pair.partition("=")[2] for pair in known if pair.partition("=")[0] == XSRF_MARK}
    foreign = {
        pair: value
        for pair in known
        for name, _, value in [pair.partition("=")]
        if name == XSRF_COOKIE and _digest(value) not in marks
    }
    return [pair for pair in known if pair not in foreign], frozenset(foreign.values())


def _digest(value: str) -> str:
    return hashlib.sha256(value.strip('"').encode("latin-1", "replace")).hexdigest()
