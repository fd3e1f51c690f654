"""The proxy on the way to an API server whose kubeconfig names none: the one that the environment says."""

from __future__ import annotations

from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass


def proxy_for(server: str) -> str | None:
    """The proxy for the address of a server by ``HTTPS_PROXY``, ``HTTP_PROXY`` and ``NO_PROXY``, or None."""
    parts = urlsplit(server)
    if proxy_bypass(parts.netloc.rpartition("@")[2]):
        return None
    return getproxies().get(parts.scheme)
