"""``python -m pai_backend backup DIRECTORY`` and ``restore DIRECTORY``: a copy of the database, and back.

A backup is taken while the backend runs: SQLite's online backup, or ``pg_dump``; each sees one moment. With ``--logs``
the kept output of tasks is copied after the database, so that it has all that the database knows of. Keys are not in a
backup (docs/operations.md). A restore wants the backend stopped, and keeps what it replaces.
"""

from __future__ import annotations

import json
import os
import shutil
import sqlite3
import subprocess
import sys
import tempfile
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path

from sqlalchemy import URL, make_url

from pai_backend.config.files import ConfigError
from pai_backend.config.load import load
from pai_backend.config.settings import Settings
from pai_backend.processes.generations import SupervisorEnded, take_lock
from pai_backend.processes.supervisor import EXIT_CONFIG, EXIT_FAULT
from pai_backend.store.people_tables import metadata
from pai_backend.store.postgres import APPLICATION

SQLITE, DUMP, LOGS, ABOUT = "database.sqlite", "database.dump", "task-logs", "backup.json"


class BackupError(Exception):
    """It cannot be done; the message names the place, the reason and the remedy."""


def main(arguments: list[str]) -> int:
    """Run ``backup`` or ``restore`` with a directory and the arguments of ``serve``; returns the exit code."""
    act, rest = arguments[0], [word for word in arguments[1:] if word != "--logs"]
    if not rest or rest[0].startswith("-"):
        sys.stderr.write(f"usage: python -m pai_backend {act} DIRECTORY [--logs] [--config FILE] [--KEY VALUE ...]\n")
        return EXIT_CONFIG
    try:
        settings, place = load(rest[1:]).settings, Path(rest[0]).absolute()
        if act == "backup":
            backup(settings, place, logs="--logs" in arguments)
        else:
            restore(settings, place, logs="--logs" in arguments)
    except ConfigError as error:
        sys.stderr.writelines(f"pai_backend: {line}\n" for line in error.lines)
        return EXIT_CONFIG
    except (BackupError, SupervisorEnded) as error:
        sys.stderr.write(f"pai_backend: {error}\n")
        return EXIT_FAULT
    except (OSError, sqlite3.Error) as error:
        sys.stderr.write(
            f"pai_backend: the {act} failed: {error}; check free space and permissions there, and run it again\n"
        )
        return EXIT_FAULT
    return 0


def backup(settings: Settings, place: Path, *, logs: bool) -> None:
    """Copy the database into an empty or new directory, which is complete when it has its ``backup.json``.

    Raises BackupError, OSError, sqlite3.Error.
    """
    if place.exists() and any(place.iterdir()):
        raise BackupError(f"{place} is not empty; name a new directory, so that no older backup is overwritten")
    place.mkdir(mode=0o700, parents=True, exist_ok=True)
    url = make_url(settings.database_url)
    at = datetime.now(UTC).isoformat()
    if url.get_backend_name() == "sqlite":
        _copy_sqlite(_sqlite_file(url), place / SQLITE)
    else:
        _run([*_program("pg_dump", url), "--format=custom", "--no-owner", "--file", str(place / DUMP)], url)
    if logs and (kept := settings.data_dir / LOGS).exists():
        shutil.copytree(kept, place / LOGS)
    about = json.dumps({"at": at, "database": url.get_backend_name(), "logs": logs})
    _durable(place / ABOUT, about.encode())
    sys.stdout.write(f"{place}: the database as it was at {at}.\n")
    sys.stdout.write(f"Keep the secret key apart from it ({_keys(settings)}): without it the backup cannot be read.\n")


def restore(settings: Settings, place: Path, *, logs: bool) -> None:
    """Put a backup in the place of the database; what was there is kept beside it.

    Raises BackupError, SupervisorEnded when a backend runs in the data directory, OSError, sqlite3.Error.
    """
    if not (place / ABOUT).exists():
        raise BackupError(f"{place} is not a complete backup: it has no {ABOUT}; name a directory that `backup` made")
    lock = take_lock(settings.data_dir)
    try:
        url = make_url(settings.database_url)
        if url.get_backend_name() == "sqlite":
            _put_sqlite(_present(place / SQLITE), _sqlite_file(url))
        else:
            _put_postgres(_present(place / DUMP), url)
        if logs and (place / LOGS).exists():
            shutil.copytree(place / LOGS, settings.data_dir / LOGS, dirs_exist_ok=True)
    finally:
        os.close(lock)
    sys.stdout.write("Restored. Start the backend: it takes back the jobs that began since and still run;\n")
    sys.stdout.write("`pai cluster orphans` lists what it could not, and nothing of that is ended.\n")


def _keys(settings: Settings) -> str:
    return "`secret_key`" if settings.secret_keys else str(settings.secret_key_path)


def _present(file: Path) -> Path:
    if not file.exists():
        raise BackupError(f"{file} is not there: the backup is of another kind of database than `database` names")
    return file


def _sqlite_file(url: URL) -> Path:
    if not url.database or url.database == ":memory:":
        raise BackupError("`database` does not name a file")
    return Path(url.database)


def _copy_sqlite(source: Path, target: Path) -> None:
    """Copy by SQLite's online backup, in one step: it sees one moment, while others write."""
    if not source.exists():
        raise BackupError(f"{source} is not there; name the data directory or database of the backend")
    target.touch(mode=0o600)
    with closing(sqlite3.connect(source)) as present, closing(sqlite3.connect(target)) as copy:
        present.backup(copy)
        copy.execute("PRAGMA journal_mode=DELETE")  # one file
        if (found := copy.execute("PRAGMA integrity_check").fetchone()[0]) != "ok":
            raise BackupError(f"the copy of {source} is damaged: {found}")
    _sync(target)


def _put_sqlite(copy: Path, place: Path) -> None:
    """Move what is there aside, with its log, then give the copy its name in one step."""
    place.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    fresh = place.with_name(f".{place.name}.restoring")
    fresh.unlink(missing_ok=True)
    _copy_sqlite(copy, fresh)
    aside = f"before-restore-{datetime.now(UTC):%Y%m%dT%H%M%S%f}"
    for ending in ("-wal", "-shm", ""):
        old = place.with_name(place.name + ending)
        if old.exists():
            os.rename(old, place.with_name(f"{place.name}.{aside}{ending}"))
    os.rename(fresh, place)
    _sync(place.parent)
    sys.stdout.write(f"{place.name}.{aside} is the database that was there.\n")


def _put_postgres(dump: Path, url: URL) -> None:
    """Replace our tables, in one transaction: also those that a newer version made, which the dump does not have.

    Raises BackupError, also while a backend is connected, on whatever machine.
    """
    asked = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND application_name = '%s'"
    psql = [*_program("psql", url), "--no-psqlrc", "--quiet", "--tuples-only", "--no-align", "--set=ON_ERROR_STOP=1"]
    if (found := _run([*psql, "--command", asked % APPLICATION], url).strip()) != "0":
        raise BackupError(f"a backend is connected to the database ({found} connections); stop it first")
    drops = "".join(f'DROP TABLE IF EXISTS "{name}" CASCADE;' for name in metadata.tables)
    with tempfile.TemporaryDirectory() as directory:  # of mode 0700
        text = Path(directory) / "dump.sql"
        _run(["pg_restore", "--clean", "--if-exists", "--no-owner", "--file", str(text), str(dump)], url)
        _run([*psql, "--single-transaction", "--output=/dev/null", "--command", drops, "--file", str(text)], url)


def _program(name: str, url: URL) -> list[str]:
    """One of PostgreSQL's programs with the options that say where the server is; the password goes by its variable."""
    host = url.host or url.query.get("host")
    server = {"--host": host, "--port": url.port, "--username": url.username, "--dbname": url.database}
    return [name, *(word for key, value in server.items() if value is not None for word in (key, str(value)))]


def _run(command: list[str], url: URL) -> str:
    """What a program writes. Raises BackupError."""
    environment = dict(os.environ) | ({"PGPASSWORD": str(url.password)} if url.password else {})
    if (mode := url.query.get("ssl") or url.query.get("sslmode")) is not None:
        environment["PGSSLMODE"] = str(mode)
    program = command[0]
    try:
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    except FileNotFoundError:
        raise BackupError(f"{program} is not on PATH; install PostgreSQL's client programs") from None
    if done.returncode:
        raise BackupError(f"{program} failed: {done.stderr.strip()[-2000:]}")
    return done.stdout


def _durable(path: Path, data: bytes) -> None:
    path.write_bytes(data)
    _sync(path)
    _sync(path.parent)


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
