"""Ports of our own: taken where configured, else chosen once and kept, so that addresses outlive restarts."""

from __future__ import annotations

import errno
import os
import socket
from pathlib import Path


def kept_port(path: Path) -> int | None:
    """The port that was chosen before, if any."""
    try:
        return int(path.read_text(encoding="ascii"))
    except (OSError, ValueError):
        return None


def keep_port(path: Path, port: int) -> None:
    """Remember a port for the next start."""
    if kept_port(path) != port:
        draft = path.with_name(f".{path.name}.{os.getpid()}")
        draft.write_text(f"{port}\n", encoding="ascii")
        os.replace(draft, path)


def bind(host: str, port: int, backlog: int = 1024, *, shared: bool = False) -> socket.socket:
    """A listening TCP socket, ``shared``: beside those that allow it. Raises OSError, when ``port`` is in use with
    EADDRINUSE.
    """
    family, kind, proto, _name, address = socket.getaddrinfo(
        host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
    )[0]
    listener = socket.socket(family, kind, proto)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if shared:
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        listener.bind(address)
        listener.listen(backlog)
        listener.setblocking(False)
    except OSError:
        listener.close()
        raise
    return listener


def bind_kept(host: str, port: int, kept: Path) -> socket.socket:
    """As :func:`bind`; port 0 is the one used before if it is free, else any, which is then remembered."""
    if port:
        return bind(host, port)
    before = kept_port(kept)
    try:
        listener = bind(host, before or 0)
    except OSError as error:
        if before is None or error.errno != errno.EADDRINUSE:
            raise
        listener = bind(host, 0)
    keep_port(kept, listener.getsockname()[1])
    return listener
