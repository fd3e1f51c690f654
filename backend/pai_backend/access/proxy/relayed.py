"""What a relay in front says of the browser that it asks for, as far as that is believed."""

from __future__ import annotations

import re

from pai_backend.access.proxy.visitor import Entrants, Incoming
from pai_backend.model import relayed_by

_HOST = re.compile(r"[A-Za-z0-9._:\[\]-]+", re.ASCII)


async def is_relayed(incoming: Incoming, entrants: Entrants) -> bool:
    """Whether a relay passes this on whose word on path, scheme and host is believed: it shows a user's token."""
    scheme, _, token = incoming.headers.get("Authorization", "").partition(" ")
    return scheme.lower() == "bearer" and await entrants.of_bearer(token.strip()) is not None


def given_prefix(incoming: Incoming) -> str:
    """Where the relay has put our root."""
    prefix = incoming.headers.get(relayed_by.PREFIX, "").rstrip("/")
    return prefix if prefix.startswith("/") and local_path(prefix) == prefix and ";" not in prefix else ""


def given_scheme(incoming: Incoming) -> str:
    """How the browser reaches a relay that shows a user's token."""
    told = incoming.headers.get(relayed_by.SCHEME, "")
    return told if told in ("http", "https") else incoming.scheme


def given_host(incoming: Incoming) -> str:
    """The host at which the browser finds a relay that shows a user's token; its own ``Host`` is ours."""
    told = incoming.headers.get(relayed_by.HOST, "")
    return told if _HOST.fullmatch(told) else incoming.host


def local_path(path: str) -> str:
    r"""The path if it leads nowhere else, else ``/``. Browsers read ``\`` as ``/`` and skip control characters."""
    plain = path.isprintable() and path.isascii() and "\\" not in path and " " not in path
    return path if plain and path.startswith("/") and not path.startswith("//") else "/"
