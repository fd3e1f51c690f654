"""Connections and transactions; what differs between the two databases is behind :class:`Backing`.

One writer at a time. SQLite has no other way; PostgreSQL gets it from an advisory lock that every
write transaction takes first. So a write may look before it leaps (is the name free? is the epoch
mine?) without a race, no two writers can deadlock, and event positions become visible in their order.
The price is one commit at a time; ``writer`` pays it by sharing a commit among all who wait.

Queries and changes are plain functions of a SQLAlchemy ``Connection``. They run in a greenlet, where
each statement gives the event loop back while it waits: they look synchronous and block nothing.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Protocol, TypeVar

from sqlalchemy import Connection
from sqlalchemy.ext.asyncio import AsyncEngine

from pai_backend.model.errors import Bug
from pai_backend.store.faults import reported

T = TypeVar("T")


class Backing(Protocol):
    """One kind of database."""

    place: str
    """Which database, as the subject of an error's sentence; has no password in it."""

    def engines(self) -> tuple[AsyncEngine, AsyncEngine]:
        """The engine for reading (transactions see one snapshot) and the engine for writing."""
        ...

    async def prepare(self) -> None:
        """Make the place ready before the first connection; safe when several processes do it at once."""
        ...

    def begin_write(self, conn: Connection, *, announce: bool) -> None:
        """First act of a write transaction: become the one writer, and announce the commit to other processes."""
        ...

    async def mark(self, database: Database) -> None:
        """The store is open: what other processes commit from now on counts as changed."""
        ...

    async def changed(self, database: Database) -> bool:
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
        """Let go of what :meth:`changed` holds."""
        ...


class Database:
    """Runs queries and changes, each in its own transaction."""

    def __init__(self, backing: Backing) -> None:
        self.backing = backing
        self._write_lock = asyncio.Lock()
        self._engines: tuple[AsyncEngine, AsyncEngine] | None = None

    async def open(self) -> None:
        """Make the place and the engines. Raises Unavailable."""
        with reported(self.backing.place):
            await self.backing.prepare()
            self._engines = self.backing.engines()

    @property
    def reader(self) -> AsyncEngine:
        """The engine for reading. Raises Bug before :meth:`open` and after :meth:`aclose`."""
        return self._opened()[0]

    @property
    def writer(self) -> AsyncEngine:
        """The engine for writing; use it under :meth:`exclusive` only."""
        return self._opened()[1]

    def _opened(self) -> tuple[AsyncEngine, AsyncEngine]:
        if self._engines is None:
            raise Bug("the store is not open")
        return self._engines

    def exclusive(self) -> asyncio.Lock:
        """The lock that makes this process's writers wait in line, first come first served."""
        return self._write_lock

    async def read(self, query: Callable[[Connection], T]) -> T:
        """What ``query`` returns, from one consistent snapshot. Raises Unavailable."""
        with reported(self.backing.place):
            async with self.reader.connect() as conn:
                return await conn.run_sync(query)

    async def write(self, change: Callable[[Connection], T], *, announce: bool) -> T:
        """Run ``change`` as the one writer and commit; durable on return, or nothing happened and it raises.

        With ``announce`` other processes are woken. Raises Unavailable (after a broken connection during
        the commit itself, whether it happened is unknown) and whatever ``change`` raises.
        """

        def whole(conn: Connection) -> T:
            self.backing.begin_write(conn, announce=announce)
            return change(conn)

        with reported(self.backing.place):
            async with self._write_lock, self.writer.begin() as conn:
                return await conn.run_sync(whole)

    async def aclose(self) -> None:
        """Close all connections. Idempotent."""
        engines, self._engines = self._engines, None
        await self.backing.aclose()
        for engine in engines or ():
            await engine.dispose()
