"""Whose the programs are that listen on a port of this machine, as the kernel tells it.

Tasks of all accounts share the machine's ports. A program that listens on the port of another user's task would be
shown that user's requests, with the token by which they are signed in.
"""

from __future__ import annotations

import asyncio
from functools import partial
from pathlib import Path

from pai_backend.engine.base import EngineError
from pai_backend.engine.local import layout
from pai_backend.engine.local.account import by_record
from pai_backend.engine.local.reading import read_record
from pai_backend.platform.shared_read import SharedRead

TABLES = (Path("/proc/net/tcp"), Path("/proc/net/tcp6"))
_LISTENS = "0A"  # include/net/tcp_states.h


class OwnPorts:
    """Looks, beside the loop, whether tasks' ports are their own. Those who ask together share one look.

    A look reads about all connections of the machine, and beside a busy loop each of its steps waits for the
    interpreter: 256 looks at once took over a second. None is shared that began before it was asked for.
    """

    def __init__(self) -> None:
        self._looks: dict[tuple[Path, int], SharedRead[None]] = {}

    async def require(self, directory: Path, port: int) -> None:
        """As :func:`require_own`."""
        key = directory, port
        look = self._looks.setdefault(key, SharedRead(partial(asyncio.to_thread, require_own, *key)))
        try:
            await look.since(look.clock())
        finally:
            if look.is_idle:
                self._looks.pop(key, None)


def require_own(directory: Path, port: int) -> None:
    """Raises EngineError where another account than that of the task in ``directory`` listens on its port.

    Root's is the agent. A task of the backend's own account shares that with all others.
    """
    try:
        account = by_record((read_record(directory / layout.PLAN) or {}).get("account"))
        strangers = listening_uids(port) - {0, account.uid} if account is not None else set()
    except (OSError, ValueError) as exc:
        raise EngineError(f"the listener on port {port} of task {directory.name} cannot be determined: {exc}") from exc
    if strangers:
        raise EngineError(f"a program of another user listens on port {port} of task {directory.name}")


def listening_uids(port: int, tables: tuple[Path, ...] = TABLES) -> set[int]:
    """The accounts that listen on the port, at any address. Raises OSError. Source: proc(5), /proc/net/tcp."""
    found = set()
    for table in tables:
        try:
            rows = table.read_text("ascii").splitlines()[1:]
        except FileNotFoundError:  # a kernel without IPv6
            continue
        for row in rows:
            _, local, _, state, _, _, _, uid, *_ = row.split()
            if state == _LISTENS and int(local.rpartition(":")[2], 16) == port:
                found.add(int(uid))
    return found
