"""Connections and transactions; what differs between the two databases is behind :class:`Backing`.

One writer at a time. SQLite has no other way; PostgreSQL gets it from an advisory lock that every
write transaction takes first. So a write may look before it leaps (is the name free? is the epoch
mine?) without a race, no two writers can deadlock, and event positions become visible in their order.
The price is one commit at a time; ``writer`` pays it by sharing a commit among all who wait.

Queries and changes are plain functions of a SQLAlchemy ``Connection``. Where they run is the backing's business: a
thread for SQLite, a greenlet over an asynchronous driver for PostgreSQL. They block no event loop in either.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Protocol, TypeVar

from sqlalchemy import Connection, Engine

from pai_backend.model.errors import Bug
from pai_backend.store.faults import reported

T = TypeVar("T")


class Backing(Protocol):
    """One kind of database."""

    place: str
    """Which database, as the subject of an error's sentence; has no password in it."""

    async def open(self) -> None:
        """Make the place ready and the engines; safe when several processes do it at once."""
        ...

    async def read(self, query: Callable[[Connection], T]) -> T:
        """Run a query in a read-only transaction that sees one snapshot."""
        ...

    async def write(self, change: Callable[[Connection], T], *, announce: bool) -> T:
        """Run a change in a transaction of the one writer and commit it, announced to other processes or not.

        Called by one task at a time.
        """
        ...

    def writing_engine(self) -> Engine:
        """The engine behind :meth:`write`, for listening to its events."""
        ...

    async def mark(self) -> None:
        """The store is open: what other processes commit from now on counts as changed."""
        ...

    async def changed(self) -> bool:
        """Whether another process may have committed since the last call (or since :meth:`mark`)."""
        ...

    def interval_s(self, quiet_s: float) -> float:
        """Seconds to the next look for changes, when nothing has happened for ``quiet_s``."""
        ...

    def listen(self, wake: Callable[[], None], look: Callable[[], None]) -> None:
        """What to call between two looks, where that is possible.

        ``wake``: another process announced a commit; ``look``: announcements may be missing, look at once.
        """
        ...

    async def aclose(self) -> None:
        """Close all connections. Idempotent."""
        ...


class Database:
    """Runs queries and changes, each in its own transaction."""

    def __init__(self, backing: Backing) -> None:
        self.backing = backing
        self._write_lock = asyncio.Lock()
        self._open = False

    async def open(self) -> None:
        """Make the place and the engines. Raises Unavailable."""
        with reported(self.backing.place):
            await self.backing.open()
        self._open = True

    async def read(self, query: Callable[[Connection], T]) -> T:
        """What ``query`` returns, from one consistent snapshot. Raises Unavailable, and Bug while not open."""
        self._check()
        with reported(self.backing.place):
            return await self.backing.read(query)

    async def write(self, change: Callable[[Connection], T], *, announce: bool) -> T:
        """Run ``change`` as the one writer and commit; durable on return, or nothing happened and it raises.

        With ``announce`` other processes are woken. Raises Unavailable (after a broken connection during
        the commit itself, whether it happened is unknown), Bug while not open, and whatever ``change`` raises.
        """
        self._check()
        with reported(self.backing.place):
            async with self._write_lock:
                return await self.backing.write(change, announce=announce)

    async def aclose(self) -> None:
        """Close all connections. Idempotent."""
        self._open = False
        await self.backing.aclose()

    def _check(self) -> None:
        if not self._open:
            raise Bug("the store is not open")
