"""One port for the processes of one gateway, and never for two backends.

Sockets with ``SO_REUSEPORT`` share a port with all sockets of the same user that have it: a second backend with the
same ``gateway.port`` would silently get half of the logins. So the first process of a gateway takes the port for itself
alone, which fails where anybody listens there, and lets others in only when it listens; the others join it.

Who is first is told by two locks of the data directory. *joining* is held while a process looks and binds; *members* is
shared by all that listen. Whoever can have *members* alone is the first:

1. All die at once and come back: one of them is the first again, and looks whether the port is still free.
2. The first finds the port taken and ends: the next one is the first, and finds the same.
3. One dies while others listen: *members* is held, so it joins them when it is back.
"""

from __future__ import annotations

import fcntl
import os
import socket
from contextlib import ExitStack
from pathlib import Path

from pai_backend.listening import bind

JOINING, MEMBERS = "gateway.joining", "gateway.members"


def join(host: str, port: int, locks: Path, held: ExitStack) -> socket.socket:
    """A listening socket on the port that this gateway's processes share. Close ``held`` when it listens no more.

    ``locks`` is the directory of the locks, made when absent. Raises OSError, with EADDRINUSE when another backend, or
    anything else, has the port. Blocks for a moment while another process joins.
    """
    locks.mkdir(parents=True, exist_ok=True, mode=0o700)
    members = _open(locks / MEMBERS, held)
    with ExitStack() as joining:
        fcntl.flock(_open(locks / JOINING, joining), fcntl.LOCK_EX)
        listener = _first(host, port, members)
        listener = listener or bind(host, port, shared=True)
        held.callback(listener.close)
        fcntl.flock(members, fcntl.LOCK_SH)
    return listener


def _first(host: str, port: int, members: int) -> socket.socket | None:
    """The first process's socket; None when others of this gateway listen. Called with *joining* held."""
    try:
        fcntl.flock(members, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return None
    listener = bind(host, port)
    # After it listens, not before: of two backends that have both bound the port by now, one cannot listen.
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
    return listener


def _open(path: Path, held: ExitStack) -> int:
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    held.callback(os.close, descriptor)
    return descriptor
