"""Backups of a PostgreSQL database, by PostgreSQL's own programs."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest
from alembic import command
from alembic.config import Config
from sqlalchemy import Connection, make_url
from sqlalchemy.ext.asyncio import create_async_engine

from pai_backend.store.migrate import HEAD, SCRIPTS
from tests.integration.app.test_restore_drill import ROOM, all_in, gate, leave, names, pids, run, states, submit
from tests.support.backend_process import backend
from tests.support.postgres import PostgresServer, running_server

__all__ = ["gate"]

pytestmark = pytest.mark.timeout(600)

OLDER = "0006"
"""A schema of before this version's, which lacks some of its tables."""


@pytest.fixture(scope="module")
def server() -> Iterator[PostgresServer]:
    with running_server() as made:
        yield made


@pytest.fixture
def database(server: PostgresServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    url = server.new_database()
    monkeypatch.setenv("PAI_BACKEND_DATABASE", url)
    return url


def test_a_restored_database_of_a_server_kills_nothing_and_knows_every_job(
    database: str, tmp_path: Path, gate: Path
) -> None:
    data, ran, place = tmp_path / "data", tmp_path / "ran", tmp_path / "backup"
    with backend(data, ROOM) as running, running.client() as client:
        for number in range(2):
            submit(client, f"old{number}", gate, ran)
        all_in(running, names("old", 2, "RUNNING"))
        done = run("backup", str(place), "--data-dir", str(data))
        assert (done.returncode, done.stderr) == (0, ""), done
        submit(client, "new0", gate, ran)
        all_in(running, names("new", 1, "RUNNING"))
        refused = run("restore", str(place), "--data-dir", str(tmp_path / "elsewhere"))
        assert refused.returncode == 1
        assert "a backend is connected" in refused.stderr, "as one on another machine is"
        assert states(client)["new0"] == "RUNNING"
        alive = pids(data)
        leave(running)
    done = run("restore", str(place), "--data-dir", str(data))
    assert (done.returncode, done.stderr) == (0, ""), done
    with backend(data, ROOM) as running:
        all_in(running, {**names("old", 2, "RUNNING"), "new0": "RUNNING"})
        assert pids(data) == alive
        gate.touch()
        all_in(running, {**names("old", 2, "SUCCEEDED"), "new0": "SUCCEEDED"})
    assert len(ran.read_text().split()) == 3, "each ran once"


def test_a_backup_of_an_older_version_is_restored_over_a_newer_schema(
    server: PostgresServer, database: str, tmp_path: Path
) -> None:
    """As when an upgrade is taken back: tables that only the newer one has would be in the way of the next upgrade."""
    data, place = tmp_path / "data", tmp_path / "backup"
    data.mkdir()
    asyncio.run(older(database))
    assert run("backup", str(place), "--data-dir", str(data)).returncode == 0
    with backend(data, ROOM):
        assert revision(server, database) == HEAD
    done = run("restore", str(place), "--data-dir", str(data))
    assert (done.returncode, done.stderr) == (0, ""), done
    assert revision(server, database) == OLDER
    with backend(tmp_path / "other", ROOM):  # a database of that age has no identity yet, so its place is another one
        assert revision(server, database) == HEAD


def test_a_backup_that_breaks_off_is_none_and_a_restore_that_fails_changes_nothing(
    server: PostgresServer, database: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data, place = tmp_path / "data", tmp_path / "backup"
    with backend(data, ROOM):
        pass
    assert run("backup", str(place), "--data-dir", str(data)).returncode == 0
    dump = place / "database.dump"
    whole = dump.read_bytes()
    dump.write_bytes(whole[: len(whole) * 9 // 10])
    broken = run("restore", str(place), "--data-dir", str(data))
    assert broken.returncode == 1
    assert "failed" in broken.stderr
    assert revision(server, database) == HEAD
    with backend(data, ROOM):
        pass
    monkeypatch.setenv("PAI_BACKEND_DATABASE", "postgresql://127.0.0.1:1/none")
    gone = run("backup", str(tmp_path / "other"), "--data-dir", str(data))
    assert gone.returncode == 1
    assert not (tmp_path / "other" / "backup.json").exists()


async def older(database: str) -> None:
    """Make the tables of an older version."""

    def make(conn: Connection) -> None:
        config = Config()
        config.set_main_option("script_location", str(SCRIPTS))
        config.attributes["connection"] = conn
        command.upgrade(config, OLDER)

    engine = create_async_engine(make_url(database).set(drivername="postgresql+asyncpg"))
    async with engine.begin() as conn:
        await conn.run_sync(make)
    await engine.dispose()


def revision(server: PostgresServer, database: str) -> str:
    return server.sql("SELECT version_num FROM alembic_version", database.rsplit("/", 1)[1])
