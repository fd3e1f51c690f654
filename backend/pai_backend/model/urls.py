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


def as_asked(base_url: str, host: str) -> str:
    """The address of a server as the sender of a request with this ``Host`` reaches it.

    A server that knows itself on loopback alone is reached from elsewhere by a forwarded port, which may have another
    number. All other addresses are as they were told.
    """
    base = urlsplit(base_url)
    try:
        asked = urlsplit(f"//{host}")
        port = asked.port
    except ValueError:
        return base_url
    if not port or not (is_loopback(base.hostname or "") and is_loopback(asked.hostname or "")):
        return base_url
    name = f"[{base.hostname}]" if ":" in (base.hostname or "") else base.hostname
    return f"{base.scheme}://{name}:{port}{base.path}"
