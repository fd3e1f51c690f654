"""Addresses on the web."""

from __future__ import annotations

from urllib.parse import urlsplit


def is_http_url(text: str) -> bool:
    """Whether an http:// or https:// URL with a host, and with a port only if it is one. Never raises.

    ``urlsplit`` raises ValueError for brackets that hold no IPv6 address (Python 3.11.2 for fewer of them than later
    versions), and the question for its port for one that is no number.
    """
    try:
        parts = urlsplit(text)
        return parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        return False
