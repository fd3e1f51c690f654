"""Addresses on the web."""

from __future__ import annotations

import ipaddress
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


def is_loopback(host: str) -> bool:
    """Whether what listens at this host, an address or a name, is reached from its own machine alone.

    Source: RFC 6761, section 6.3, for the names. Empty, ``*`` and other names are not: others may reach them.
    """
    if host.lower() == "localhost" or host.lower().endswith(".localhost"):
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
