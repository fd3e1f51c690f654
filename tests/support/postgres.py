"""A private PostgreSQL server for the tests of one process, and a fresh database for each test.

The server listens on loopback, unless it is told otherwise, keeps everything in a directory of its own and is stopped
by pid.
"""

from __future__ import annotations

import itertools
import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

START_S = 60.0
_TRIES = 3


class PostgresServer:
    """A running server."""

    def __init__(self, programs: Path, port: int, host: str = "127.0.0.1") -> None:
        self._programs = programs
        self._port = port
        self._host = host
        self._numbers = itertools.count()
        self._free: list[str] = []

    def new_database(self) -> str:
        """An empty database; its URL."""
        name = self._free.pop() if self._free else self._create()
        return f"postgresql://postgres@{self._host}:{self._port}/{name}"

    def _create(self) -> str:
        name = f"test_{next(self._numbers)}"
        self.sql(f"CREATE DATABASE {name}")
        return name

    def take_back(self, url: str) -> None:
        """Empty a database that nobody uses any more, for the next test: a new one is a thousand files."""
        name = url.rsplit("/", 1)[1]
        self.sql("DROP SCHEMA public CASCADE; CREATE SCHEMA public", name)
        self._free.append(name)

    def psql(self, database: str = "postgres") -> list[str]:
        """The command of a psql session."""
        options = ["-XAtq", "-v", "ON_ERROR_STOP=1", "-h", self._host, "-p", str(self._port), "-U", "postgres"]
        return [str(self._programs / "psql"), *options, "-d", database]

    def sql(self, statement: str, database: str = "postgres") -> str:
        """Run a statement; its output, unaligned."""
        done = subprocess.run([*self.psql(database), "-c", statement], capture_output=True, text=True, timeout=60)
        assert done.returncode == 0, done.stderr
        return done.stdout.strip()


def programs() -> Path:
    """The directory of initdb and postgres. Fails, with the remedy, where PostgreSQL is not installed."""
    candidates = [*sorted(Path("/usr/lib/postgresql").glob("*/bin"), key=_version, reverse=True)]
    config = shutil.which("pg_config")
    if config is not None:
        told = subprocess.run([config, "--bindir"], capture_output=True, text=True, timeout=60, check=True).stdout
        candidates.insert(0, Path(told.strip()))
    for candidate in candidates:
        if (candidate / "initdb").exists() and (candidate / "postgres").exists():
            return candidate
    pytest.fail(
        "PostgreSQL's server programs (initdb, postgres) are not installed: the store is tested on both databases. "
        "Install them with `apt-get install postgresql` (macOS: `brew install postgresql`)."
    )


def _version(path: Path) -> float:
    try:
        return float(path.parent.name)
    except ValueError:
        return 0.0


@contextmanager
def running_server(
    shared_buffers: str = "16MB", host: str = "127.0.0.1", clients: str = "127.0.0.1/32"
) -> Iterator[PostgresServer]:
    """Make and start a server; stop and remove it at the end. It listens on ``host``, for clients of a network."""
    found = programs()
    # Root may not run the server: the distribution's own user does, in a directory that it can reach.
    user = "postgres" if os.geteuid() == 0 else None
    # A short path: a Unix socket's name has room for about 100 characters.
    directory = Path(tempfile.mkdtemp(prefix="pai-pg-"))
    try:
        if user is not None:
            shutil.chown(directory, user)
        _run([found / "initdb", "-D", directory / "data", "-A", "trust", "--no-sync", "-U", "postgres"], user)
        with (directory / "data" / "pg_hba.conf").open("a") as rules:
            rules.write(f"host all all {clients} trust\n")
        process, port = _start(found, directory, user, shared_buffers, host)
        try:
            yield PostgresServer(found, port, host)
        finally:
            # Immediate shutdown: nothing of it is wanted any more, so no checkpoint and no waiting for clients.
            process.send_signal(signal.SIGQUIT)
            process.wait(60)
    finally:
        shutil.rmtree(directory)


def _start(
    found: Path, directory: Path, user: str | None, shared_buffers: str, host: str
) -> tuple[subprocess.Popen[bytes], int]:
    log = directory / "server.log"
    for _ in range(_TRIES):  # between choosing a free port and taking it another process may take it
        with socket.create_server((host, 0)) as probe:
            port = probe.getsockname()[1]
        command = [found / "postgres", "-D", directory / "data", "-h", host, "-p", str(port), "-k", directory]
        settings = ["fsync=off", "max_connections=60", f"shared_buffers={shared_buffers}", "log_min_messages=warning"]
        with log.open("wb") as output:
            process = subprocess.Popen(
                [*map(str, command), *(word for setting in settings for word in ("-c", setting))],
                stdout=output,
                stderr=output,
                cwd="/",
                user=user,
            )
        if _answers(found, process, host, port):
            return process, port
    pytest.fail(f"PostgreSQL does not start:\n{log.read_text()}")


def _answers(found: Path, process: subprocess.Popen[bytes], host: str, port: int) -> bool:
    deadline = time.monotonic() + START_S
    while process.poll() is None:
        probe = [str(found / "pg_isready"), "-q", "-h", host, "-p", str(port)]
        if subprocess.run(probe, timeout=60).returncode == 0:
            return True
        if time.monotonic() > deadline:
            process.kill()
            process.wait()
            pytest.fail(f"PostgreSQL did not answer within {START_S:.0f} s")
        time.sleep(0.05)
    return False


def _run(command: list[str | Path], user: str | None) -> None:
    done = subprocess.run(
        [str(word) for word in command], capture_output=True, text=True, cwd="/", user=user, timeout=120
    )
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[PostgresServer]:
    """One server for all tests of this process."""
    with running_server() as server:
        yield server
