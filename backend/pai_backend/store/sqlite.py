"""SQLite: a file in WAL mode, one connection that writes, a few that read.

Several processes of one machine may have the file open; SQLite's own locks order their writes.
"""

from __future__ import annotations

import asyncio
import fcntl
import os
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, closing
from pathlib import Path

import aiosqlite
from sqlalchemy import URL, Connection, event
from sqlalchemy.engine.interfaces import DBAPIConnection
from sqlalchemy.ext.asyncio import AsyncEngine, create_async_engine
from sqlalchemy.pool import ConnectionPoolEntry

from pai_backend.model.errors import Bug, InvalidParameters, Unavailable
from pai_backend.store.database import Database

BUSY_S = 10.0
"""How long a writer waits for another process's transaction before it gives up."""

READERS = 3
CACHE_KIB = 1024
"""Page cache of one connection; SQLite's default of 2000 KiB buys nothing measurable for these tables."""

FAST_S, SLOW_S, FAST_FOR_S = 0.05, 0.25, 3.0
"""Seconds between looks for other processes' commits: fast after something happened, then slow."""

_OPEN_LOCK_S, _OPEN_LOCK_STEP_S = 60.0, 0.02


class SqliteBacking:
    """The database of one machine. Satisfies ``database.Backing``."""

    def __init__(self, url: URL) -> None:
        if not url.database or url.database == ":memory:" or url.query:
            raise InvalidParameters(
                "A SQLite database must be a plain file: its processes meet in it.",
                hint="Write `database: sqlite:////absolute/path/pai.sqlite`, without options after it.",
            )
        self._path = Path(url.database)
        self._url = url.set(drivername="sqlite+aiosqlite")
        self._driver: aiosqlite.Connection | None = None
        self._seen: tuple[aiosqlite.Connection, int] | None = None
        self.place = f"The database file {self._path}"

    def engines(self) -> tuple[AsyncEngine, AsyncEngine]:
        """Readers cannot write; the writer takes SQLite's write lock when its transaction begins."""
        writer = self._engine("BEGIN IMMEDIATE", 1, "foreign_keys=ON")
        event.listen(writer.sync_engine, "connect", self._remember)
        return self._engine("BEGIN", READERS, "query_only=ON"), writer

    def _engine(self, begin: str, connections: int, setting: str) -> AsyncEngine:
        # isolation_level None keeps the driver from beginning transactions itself: it would begin them late,
        # and a deferred transaction that turns writer is refused at once when somebody else wrote meanwhile.
        engine = create_async_engine(
            self._url,
            pool_size=connections,
            max_overflow=0,
            pool_use_lifo=True,
            hide_parameters=True,
            connect_args={"isolation_level": None, "timeout": BUSY_S},
        )

        def on_connect(connection: DBAPIConnection, _entry: ConnectionPoolEntry) -> None:
            # FULL flushes the log at every commit: an acknowledged job survives a power cut.
            # fullfsync is the same promise on macOS, where fsync alone leaves data in the disk's cache.
            with closing(connection.cursor()) as cursor:
                for pragma in ("synchronous=FULL", "fullfsync=ON", f"cache_size=-{CACHE_KIB}", setting):
                    cursor.execute(f"PRAGMA {pragma}")

        def on_begin(connection: Connection) -> None:
            connection.exec_driver_sql(begin)

        event.listen(engine.sync_engine, "connect", on_connect)
        event.listen(engine.sync_engine, "begin", on_begin)
        return engine

    def _remember(self, _connection: DBAPIConnection, entry: ConnectionPoolEntry) -> None:
        driver = entry.driver_connection
        self._driver = driver if isinstance(driver, aiosqlite.Connection) else None

    async def prepare(self) -> None:
        """Create the file for its owner's eyes only (it keeps private keys) and switch it to WAL.

        Under a lock file: two processes that switch a new file at the same moment can fail each other.
        Raises Unavailable where WAL is impossible, as on most network file systems.
        """
        try:
            await asyncio.to_thread(self._create)
        except OSError as error:
            raise Unavailable(
                f"{self.place} cannot be created: {error.strerror}.",
                hint="Check that the backend's user may write in its directory, and that the disk is not full.",
            ) from error
        async with self._alone(), aiosqlite.connect(self._path, timeout=BUSY_S, isolation_level=None) as connection:
            ((mode,),) = await connection.execute_fetchall("PRAGMA journal_mode=WAL")
        if mode != "wal":
            raise Unavailable(
                f"{self.place} is on a file system without shared memory, which write-ahead logging needs.",
                hint="Put it on a local disk (key `data_dir` or `database`).",
            )

    def _create(self) -> None:
        self._path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        os.close(os.open(self._path, os.O_RDWR | os.O_CREAT, 0o600))

    @asynccontextmanager
    async def _alone(self) -> AsyncIterator[None]:
        """Hold the lock file; the system releases it when the holder dies. Raises Unavailable after a minute."""
        path = self._path.with_name(f"{self._path.name}-open.lock")
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
        try:
            deadline = asyncio.get_running_loop().time() + _OPEN_LOCK_S
            while not _locked(descriptor):
                if asyncio.get_running_loop().time() > deadline:
                    raise Unavailable(
                        f"{self.place} is still being opened by another process, which holds {path}.",
                        hint=f"End the process that `fuser {path}` names.",
                    )
                await asyncio.sleep(_OPEN_LOCK_STEP_S)
            yield
        finally:
            os.close(descriptor)

    def begin_write(self, conn: Connection, *, announce: bool) -> None:
        """Nothing: BEGIN IMMEDIATE is the lock, and the file itself tells other processes."""

    async def mark(self, database: Database) -> None:
        """Read the counter once, so that :meth:`changed` has something to compare with."""
        async with database.exclusive(), database.writer.connect():
            pass  # only so that the writing connection is there
        self._seen = await self._version(database)

    async def changed(self, database: Database) -> bool:
        """By ``PRAGMA data_version`` on the writing connection: it counts the commits of all others.

        The number means something on its own connection only; a new one may have missed anything.
        """
        seen, self._seen = self._seen, await self._version(database)
        return seen != self._seen

    async def _version(self, database: Database) -> tuple[aiosqlite.Connection, int]:
        # Past the pool, which would cost ten times as much CPU, and this runs all day: there is one writing
        # connection, and whoever holds the lock has it to himself.
        async with database.exclusive():
            if self._driver is None:
                raise Bug("the writing connection is not open")
            ((version,),) = await self._driver.execute_fetchall("PRAGMA data_version")
            return self._driver, version

    def interval_s(self, quiet_s: float) -> float:
        """An idle process looks four times a second, which costs about 0.2 % of a slow core."""
        return FAST_S if quiet_s < FAST_FOR_S else SLOW_S

    def listen(self, wake: Callable[[], None], look: Callable[[], None]) -> None:
        """Nothing: SQLite cannot call."""

    async def aclose(self) -> None:
        """Forget the connection; the engine closes it."""
        self._seen = self._driver = None


def _locked(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
