"""SQLite: a file in WAL mode, one connection that writes, a few that read.

Several processes of one machine may have the file open; SQLite's own locks order their writes. SQLite is a library
that blocks, so it needs threads: a whole transaction runs in one of them and costs the event loop one change of
threads, where an asynchronous driver costs one for every statement (docs/adr/0006).
"""

from __future__ import annotations

import asyncio
import fcntl
import os
import sqlite3
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TypeVar

from sqlalchemy import URL, Connection, Engine, QueuePool, create_engine, event
from sqlalchemy.engine.interfaces import DBAPIConnection
from sqlalchemy.exc import DBAPIError
from sqlalchemy.pool import ConnectionPoolEntry

from pai_backend.model.errors import Bug, InvalidParameters, Unavailable
from pai_backend.platform.disk_reserve import DiskReserve, grow
from pai_backend.store.faults import is_full

T = TypeVar("T")

BUSY_S = 10.0
"""How long a writer waits for another process's transaction before it gives up."""

READERS = 3
CACHE_KIB = 1024
"""Page cache of one connection; SQLite's default of 2000 KiB buys nothing measurable for these tables."""

FAST_S, SLOW_S, FAST_FOR_S = 0.05, 0.25, 3.0
"""Seconds between looks for other processes' commits: fast after something happened, then slow."""

LOG_RESERVE = 12 * 2**20
"""Bytes that the log gets on a full disk, so that no task takes them meanwhile: some hundred transactions."""
LOG_STEP = 2**20
"""The reserve is given up in pieces of so many bytes until the log has its part."""

_OPEN_LOCK_S, _OPEN_LOCK_STEP_S = 60.0, 0.02


class SqliteBacking:
    """The database of one machine. Satisfies ``database.Backing``."""

    def __init__(self, url: URL, reserve: DiskReserve | None = None) -> None:
        """``reserve`` is given up when the disk is full."""
        if not url.database or url.database == ":memory:" or url.query:
            raise InvalidParameters(
                "A SQLite database must be a plain file: its processes meet in it.",
                hint="Write `database: sqlite:////absolute/path/pai.sqlite`, without options after it.",
            )
        self._path = Path(url.database)
        self._reserve = reserve
        self._url = url.set(drivername="sqlite+pysqlite")
        self._driver: sqlite3.Connection | None = None
        self._seen: tuple[sqlite3.Connection | None, int] = (None, -1)
        self._engines: tuple[Engine, Engine] | None = None
        self._start_threads()
        self.place = f"The database file {self._path}"

    def _engine(self, begin: str, connections: int, setting: str) -> Engine:
        # isolation_level None keeps the driver from beginning transactions itself: it would begin them late,
        # and a deferred transaction that turns writer is refused at once when another connection wrote meanwhile.
        engine = create_engine(
            self._url,
            poolclass=QueuePool,
            pool_size=connections,
            max_overflow=0,
            pool_use_lifo=True,
            hide_parameters=True,
            connect_args={"isolation_level": None, "timeout": BUSY_S, "check_same_thread": False},
        )

        def on_connect(connection: DBAPIConnection, _entry: ConnectionPoolEntry) -> None:
            # FULL flushes the log at every commit: an acknowledged job survives a power cut.
            # secure_delete overwrites what is deleted: a job's key leaves no trace in the file, sealed as it was.
            # fullfsync is the same promise on macOS, where fsync alone leaves data in the disk's cache.
            with closing(connection.cursor()) as cursor:
                pragmas = ("synchronous=FULL", "fullfsync=ON", "secure_delete=ON", f"cache_size=-{CACHE_KIB}", setting)
                for pragma in pragmas:
                    cursor.execute(f"PRAGMA {pragma}")

        def on_begin(connection: Connection) -> None:
            connection.exec_driver_sql(begin)

        event.listen(engine, "connect", on_connect)
        event.listen(engine, "begin", on_begin)
        return engine

    def _start_threads(self) -> None:
        """Pools that start a thread when there is work for it."""
        self._reading = ThreadPoolExecutor(READERS, "sqlite-read")
        self._writing = ThreadPoolExecutor(1, "sqlite-write")

    def _remember(self, _connection: DBAPIConnection, entry: ConnectionPoolEntry) -> None:
        driver = entry.driver_connection
        self._driver = driver if isinstance(driver, sqlite3.Connection) else None

    async def open(self) -> None:
        """Create the file for its owner's eyes only (it keeps private keys) and switch it to WAL.

        Raises Unavailable where WAL is impossible, as on most network file systems.
        """
        await self._in_thread(self._writing, self._prepare)
        # Readers cannot write; the writer takes SQLite's write lock when its transaction begins.
        writer = self._engine("BEGIN IMMEDIATE", 1, "foreign_keys=ON")
        event.listen(writer, "connect", self._remember)
        self._engines = self._engine("BEGIN", READERS, "query_only=ON"), writer

    async def read(self, query: Callable[[Connection], T]) -> T:
        """In one of the reading threads."""
        reader = self._opened()[0]

        def whole() -> T:
            with reader.connect() as conn:
                return query(conn)

        return await self._in_thread(self._reading, whole)

    async def write(self, change: Callable[[Connection], T], *, announce: bool) -> T:
        """In the writing thread. The file itself tells other processes that something was committed."""
        writer = self.writing_engine()

        def whole() -> T:
            with writer.begin() as conn:
                return change(conn)

        def whole_or_again() -> T:
            try:
                return whole()
            except DBAPIError as error:
                if not is_full(error) or not self._make_room():
                    raise
            return whole()

        return await self._in_thread(self._writing, whole_or_again)

    def _make_room(self) -> bool:
        """Give the reserve up, a part of it to the log at once; whether there was any.

        SQLite takes a log for ended where its frames do, and does not look at what is behind.
        """
        if self._reserve is None:
            return False
        log, given = self._path.with_name(f"{self._path.name}-wal"), False
        for _ in range(LOG_RESERVE // LOG_STEP):  # step by step: a task that fills the disk takes a part, not all
            if not self._reserve.release(LOG_STEP):
                break
            given = True
            grow(log, LOG_STEP)
        return self._reserve.release() or given

    def writing_engine(self) -> Engine:
        """The engine of the writing thread."""
        return self._opened()[1]

    def _opened(self) -> tuple[Engine, Engine]:
        if self._engines is None:
            raise Bug("the store is not open")
        return self._engines

    @staticmethod
    async def _in_thread(threads: ThreadPoolExecutor, work: Callable[[], T]) -> T:
        """What ``work`` returns. Work that has begun is finished also when its caller no longer waits."""
        return await asyncio.get_running_loop().run_in_executor(threads, work)

    def _prepare(self) -> None:
        try:
            self._create()
        except OSError as error:
            raise Unavailable(
                f"{self.place} cannot be created: {error.strerror}.",
                hint="Check that the backend's user may write in its directory, and that the disk is not full.",
            ) from error
        # Under a lock file: two processes that switch a new file at the same moment can fail each other.
        with (
            self._alone(),
            closing(sqlite3.connect(self._path, timeout=BUSY_S, isolation_level=None)) as connection,
        ):
            (mode,) = connection.execute("PRAGMA journal_mode=WAL").fetchone()
        if mode != "wal":
            raise Unavailable(
                f"{self.place} is on a file system without shared memory, which write-ahead logging needs.",
                hint="Put it on a local disk (key `data_dir` or `database`).",
            )

    def _create(self) -> None:
        self._path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        os.close(os.open(self._path, os.O_RDWR | os.O_CREAT, 0o600))

    @contextmanager
    def _alone(self) -> Iterator[None]:
        """Hold the lock file; the system releases it when the holder dies. Raises Unavailable after a minute."""
        path = self._path.with_name(f"{self._path.name}-open.lock")
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
        try:
            deadline = time.monotonic() + _OPEN_LOCK_S
            while not _locked(descriptor):
                if time.monotonic() > deadline:
                    raise Unavailable(
                        f"{self.place} is still being opened by another process, which holds {path}.",
                        hint=f"End the process that `fuser {path}` names.",
                    )
                time.sleep(_OPEN_LOCK_STEP_S)
            yield
        finally:
            os.close(descriptor)

    async def mark(self) -> None:
        """Read the counter once, so that :meth:`changed` has something to compare with."""
        self._seen = await self._in_thread(self._writing, self._version)

    async def changed(self) -> bool:
        """By ``PRAGMA data_version`` on the writing connection: it counts the commits of all others.

        The number means something on its own connection only; a new one may have missed anything.
        """
        seen, self._seen = self._seen, await self._in_thread(self._writing, self._version)
        return seen != self._seen

    def _version(self) -> tuple[sqlite3.Connection | None, int]:
        """In the writing thread, so nothing else uses the connection. Past the pool: this runs all day."""
        if self._driver is None:
            with self.writing_engine().connect():
                pass  # only so that the writing connection is there
        if self._driver is None:
            raise Bug("the writing connection is not open")
        (version,) = self._driver.execute("PRAGMA data_version").fetchone()
        return self._driver, version

    def interval_s(self, quiet_s: float) -> float:
        """An idle process looks four times a second, which costs about 0.2 % of a slow core."""
        return FAST_S if quiet_s < FAST_FOR_S else SLOW_S

    def listen(self, wake: Callable[[], None], look: Callable[[], None]) -> None:
        """Nothing: SQLite cannot call."""

    async def aclose(self) -> None:
        """Finish what runs in the threads and close all connections. Idempotent."""
        for threads in (self._reading, self._writing):
            await asyncio.to_thread(threads.shutdown)
        self._start_threads()  # a store whose opening failed may be opened again
        engines, self._engines = self._engines, None
        self._driver = None
        for engine in engines or ():
            engine.dispose()


def _locked(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
