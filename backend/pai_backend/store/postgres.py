"""PostgreSQL: a pool, an advisory lock that makes one writer at a time, and LISTEN/NOTIFY.

asyncpg is imported by SQLAlchemy, and only when a URL asks for it.
"""

from __future__ import annotations

import asyncio
import logging
import uuid
from collections.abc import Callable
from functools import partial
from typing import TypeVar

from sqlalchemy import URL, BigInteger, Connection, Double, Engine, String, bindparam, func, select, text
from sqlalchemy.exc import DBAPIError
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine, create_async_engine

from pai_backend.model.errors import Bug, InvalidParameters
from pai_backend.store.tables import events

T = TypeVar("T")

WRITE_LOCK = 0x7061_695F_7772
"""Key of the advisory lock of all write transactions ("pai_wr" in ASCII)."""

CHANNEL = "pai_change"

APPLICATION = "jupyter-pai"
"""What our connections call themselves at the server."""

LOOK_S, LOST_S = 5.0, 0.5
"""Seconds between looks: as the safety net while the listener lives, and to have it back when it is lost."""

_CONNECTIONS = 6
_CONNECT_S = 10.0
_COMMAND_S = 60.0
_PATIENCE_S = 15.0
"""How long a replica that is stopped in the middle of a write may hold up all others."""

_LOCK_NOT_AVAILABLE = "55P03"  # SQLSTATE

_log = logging.getLogger(__name__)
_TAKE = func.pg_advisory_xact_lock(bindparam("key", type_=BigInteger))
_LOCK = select(_TAKE)
_LOCK_AND_NOTIFY = select(_TAKE, func.pg_notify(CHANNEL, bindparam("sender", type_=String)))


class PostgresBacking:
    """The database of a team. Satisfies ``database.Backing``."""

    def __init__(self, url: URL, patience_s: float = _PATIENCE_S) -> None:
        self._url = url.set(drivername="postgresql+asyncpg")
        self._patience_s = patience_s
        self._reader: AsyncEngine | None = None
        self._writer: AsyncEngine | None = None
        self._seen = -1
        self._wake: Callable[[], None] = lambda: None
        self._look: Callable[[], None] = lambda: None
        self._listener: AsyncConnection | None = None
        self._listening = False
        self._one_looks = asyncio.Lock()  # a connection answers one question at a time
        self._sender = uuid.uuid4().hex  # in each notification, so that we do not wake ourselves twice
        self.place = f"The PostgreSQL server {url.host or 'localhost'}:{url.port or 5432}, database {url.database},"

    async def open(self) -> None:
        """Make the pool; readers see one snapshot for all statements of a transaction. The server is there or not."""
        try:
            writer = create_async_engine(
                self._url,
                pool_size=_CONNECTIONS,
                max_overflow=0,
                pool_pre_ping=True,
                pool_use_lifo=True,
                hide_parameters=True,
                connect_args={
                    "server_settings": {
                        "application_name": APPLICATION,
                        "idle_in_transaction_session_timeout": f"{self._patience_s * 1000:.0f}ms",
                        # Longer: the server ends most who are stopped by itself, and we look after the others.
                        "lock_timeout": f"{self._patience_s * 4 / 3 * 1000:.0f}ms",
                    },
                    "timeout": _CONNECT_S,
                    "command_timeout": _COMMAND_S,
                },
            )
        except ModuleNotFoundError as error:
            raise InvalidParameters(
                "A PostgreSQL database needs the Python package asyncpg, which is not installed.",
                hint="pip install asyncpg",
            ) from error
        self._writer = writer
        self._reader = writer.execution_options(isolation_level="REPEATABLE READ", postgresql_readonly=True)

    async def read(self, query: Callable[[Connection], T]) -> T:
        """In a greenlet, where each statement gives the event loop back while it waits."""
        async with self._opened(self._reader).connect() as conn:
            return await conn.run_sync(query)

    async def write(self, change: Callable[[Connection], T], *, announce: bool) -> T:
        """In a greenlet too, as the one writer of all processes; a stalled one that is in the way is ended first."""

        def whole(conn: Connection) -> T:
            self._begin_write(conn, announce=announce)
            return change(conn)

        try:
            return await self._in_transaction(whole)
        except DBAPIError as error:
            if getattr(error.orig, "sqlstate", None) != _LOCK_NOT_AVAILABLE:
                raise
            end = partial(end_stalled_writer, key=WRITE_LOCK, patience_s=self._patience_s)
            if not await self._in_transaction(end):
                raise
        _log.warning("%s had a writer that hung for over %.0f s; it was ended", self.place, self._patience_s)
        return await self._in_transaction(whole)

    async def _in_transaction(self, change: Callable[[Connection], T]) -> T:
        async with self._opened(self._writer).begin() as conn:
            return await conn.run_sync(change)

    def writing_engine(self) -> Engine:
        """The synchronous heart of the writing engine."""
        return self._opened(self._writer).sync_engine

    @staticmethod
    def _opened(engine: AsyncEngine | None) -> AsyncEngine:
        if engine is None:
            raise Bug("the store is not open")
        return engine

    def _begin_write(self, conn: Connection, *, announce: bool) -> None:
        """Take the write lock until the transaction ends; the notification goes out when it commits.

        Event positions come from a sequence, which counts before the commit. Because the lock is held from
        before the first number is drawn until after the commit is visible, a reader of position n has
        seen, or can see, all below it.
        """
        if announce:
            conn.execute(_LOCK_AND_NOTIFY, {"key": WRITE_LOCK, "sender": self._sender})
        else:
            conn.execute(_LOCK, {"key": WRITE_LOCK})

    async def mark(self) -> None:
        """Nothing: the first :meth:`changed` says yes in any case."""

    async def changed(self) -> bool:
        """Hear all notifications so far, and look at the newest event.

        Or listen (again) if no connection does: then something may have been missed.
        """
        async with self._one_looks:
            if self._listener is None or not self._listening:
                await self._attach()
                return True
            await self._hear(self._listener)
            seen, self._seen = self._seen, await self.read(_newest)
            return seen != self._seen

    async def _hear(self, listener: AsyncConnection) -> None:
        """All that was notified before this call has been told.

        A commit signals those who listen before it is answered, and the server sends a listener what it
        has for it before it answers its next statement (PostgreSQL's documentation of NOTIFY and async.c).
        """
        try:
            await listener.execute(select(1))
        except DBAPIError:
            self._listening = False  # SQLAlchemy would connect again, and that connection would listen to nothing
            raise

    async def _attach(self) -> None:
        await self._detach()
        listener = await self._opened(self._writer).connect()
        self._listener = await listener.execution_options(
            isolation_level="AUTOCOMMIT"
        )  # nothing is heard in a transaction
        driver = (await self._listener.get_raw_connection()).driver_connection
        if driver is None:
            raise Bug("a fresh PostgreSQL connection has no driver connection")
        driver.add_termination_listener(self._on_lost)
        await driver.add_listener(CHANNEL, self._on_notify)
        self._listening = True

    async def _detach(self) -> None:
        """Close the listener's connection for good: it must not go back to the pool with its LISTEN on."""
        connection, self._listener, self._listening = self._listener, None, False
        if connection is not None:
            async with asyncio.timeout(_CONNECT_S):
                await connection.invalidate()
                await connection.close()

    def _on_notify(self, _driver: object, _pid: int, _channel: str, sender: object) -> None:
        if sender != self._sender:
            self._wake()

    def _on_lost(self, _driver: object) -> None:
        if self._listening:  # not while we close it ourselves
            _log.warning("%s closed the connection that listens for changes; connecting again", self.place)
            self._listening = False
            self._look()

    def interval_s(self, quiet_s: float) -> float:
        """Notifications come by themselves; looking is the safety net."""
        return LOOK_S if self._listening else LOST_S

    def listen(self, wake: Callable[[], None], look: Callable[[], None]) -> None:
        """Call ``wake`` at every notification of another process, ``look`` when they have stopped coming."""
        self._wake, self._look = wake, look

    async def aclose(self) -> None:
        """Stop listening and close the pool."""
        await self._detach()
        writer, self._writer, self._reader = self._writer, None, None
        if writer is not None:
            await writer.dispose()


def _newest(conn: Connection) -> int:
    newest: int = conn.execute(select(func.coalesce(func.max(events.c.position), 0))).scalar_one()
    return newest


_END = text(
    """
    SELECT activity.pid, pg_terminate_backend(activity.pid)
    FROM pg_locks AS held JOIN pg_stat_activity AS activity USING (pid)
    WHERE held.locktype = 'advisory' AND held.granted AND held.objsubid = 1
      AND held.database = (SELECT oid FROM pg_database WHERE datname = current_database())
      AND (held.classid::bigint << 32 | held.objid::bigint) = :key
      AND activity.usename = session_user
      AND activity.wait_event_type = 'Client' AND activity.wait_event = 'ClientRead'
      AND activity.state_change < clock_timestamp() - make_interval(secs => :patience_s)
    """
).bindparams(bindparam("key", type_=BigInteger), bindparam("patience_s", type_=Double))


def end_stalled_writer(conn: Connection, key: int, patience_s: float) -> bool:
    """End the session that holds the advisory lock and has waited for its client for so long; whether there is one.

    The server does that by itself (``idle_in_transaction_session_timeout``) where it waits for a next command. It does
    not where the process was stopped while a statement of asyncpg was being prepared: that is asked for with Flush and
    not with Sync, and until the Sync comes the session is one that works (PostgreSQL's manual, "Extended Query"). No
    time-out of a server before 17 ends it, and TCP sees nothing wrong with a process that is only stopped.
    """
    return bool(conn.execute(_END, {"key": key, "patience_s": patience_s}).all())
