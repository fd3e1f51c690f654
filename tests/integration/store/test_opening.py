"""Opening: the schema, the file, and what a user is told when it does not work."""

from __future__ import annotations

import sqlite3
import stat
import subprocess
import sys
from pathlib import Path

import psutil
import pytest
from alembic.autogenerate import compare_metadata
from alembic.config import Config
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import Connection, inspect, make_url, text
from sqlalchemy.engine.interfaces import ReflectedIndex

from pai_backend.model.errors import Bug, InvalidParameters, Unavailable
from pai_backend.store import migrate, sqlite
from pai_backend.store.base import JobFilter
from pai_backend.store.database import Database
from pai_backend.store.people_tables import metadata
from pai_backend.store.postgres import PostgresBacking
from pai_backend.store.sql import Store
from pai_backend.testing.builders import make_job
from pai_backend.testing.free_ports import free_port
from tests.support.postgres import PostgresServer
from tests.support.sealing import KEYS
from tests.support.stores import opened

SECRET = "hunter2-is-no-password"


def empty(url: str) -> Database:
    """A database without our tables."""
    parsed = make_url(url)
    return Database(sqlite.SqliteBacking(parsed) if parsed.get_backend_name() == "sqlite" else PostgresBacking(parsed))


def options(index: ReflectedIndex) -> dict[str, object]:
    """What is special about an index: the condition of a partial one."""
    return index.get("dialect_options", {})


def shape(conn: Connection) -> dict[str, object]:
    """The schema as the database has it."""
    looker = inspect(conn)
    return {
        table: (
            [{**column, "type": str(column["type"])} for column in looker.get_columns(table)],
            looker.get_pk_constraint(table),
            sorted(looker.get_unique_constraints(table), key=str),
            sorted(looker.get_foreign_keys(table), key=str),
            sorted(
                (index["name"], index["column_names"], index["unique"], list(map(str, options(index).values())))
                for index in looker.get_indexes(table)
            ),
        )
        for table in sorted(looker.get_table_names())
    } | {"triggers": triggers(conn)}


def triggers(conn: Connection) -> list[str]:
    """What the database does by itself, in its own words."""
    if conn.dialect.name == "sqlite":
        found = "SELECT sql FROM sqlite_master WHERE type = 'trigger' ORDER BY name"
    else:
        found = (
            "SELECT pg_get_triggerdef(pg_trigger.oid) || pg_get_functiondef(tgfoid) FROM pg_trigger"
            " WHERE NOT tgisinternal ORDER BY tgname"
        )
    statements: list[str] = list(conn.exec_driver_sql(found).scalars())
    assert len(statements) == 3
    return statements


@pytest.mark.asyncio
async def test_the_migrations_lead_to_the_schema_of_the_tables(database_url: str, tmp_path: Path) -> None:
    database = empty(database_url)
    await database.open()
    try:
        await database.write(lambda conn: migrate.upgrade(conn, None), announce=False)

        postgres = "postgres" in database_url

        def differences(conn: Connection) -> list[object]:
            context = MigrationContext.configure(
                conn,
                opts={
                    "compare_type": True,
                    "compare_server_default": True,
                    # Alembic does not ask an index which database it is for.
                    "include_object": lambda index, *_: "_down" not in (index.name or "") or postgres,
                },
            )
            return list(compare_metadata(context, metadata))

        assert await database.read(differences) == []
        assert await database.read(migrate.revision) == migrate.HEAD
        migrated = await database.read(shape)
    finally:
        await database.aclose()

    if "sqlite" in database_url:
        fresh_url = f"sqlite:///{tmp_path}/fresh.sqlite"
        async with opened(fresh_url) as store:
            assert await store._database.read(shape) == migrated


@pytest.mark.asyncio
async def test_a_new_database_and_a_migrated_one_are_the_same_on_postgresql(postgres_server: PostgresServer) -> None:
    database = empty(postgres_server.new_database())
    await database.open()
    try:
        await database.write(lambda conn: migrate.upgrade(conn, None), announce=False)
        migrated = await database.read(shape)
    finally:
        await database.aclose()
    async with opened(postgres_server.new_database()) as store:
        assert await store._database.read(shape) == migrated


def test_head_is_the_newest_migration_and_every_table_is_in_one() -> None:
    config = Config()
    config.set_main_option("script_location", str(migrate.SCRIPTS))

    assert ScriptDirectory.from_config(config).get_heads() == [migrate.HEAD]


@pytest.mark.asyncio
async def test_a_store_can_be_opened_again_and_keeps_what_it_had(database_url: str) -> None:
    async with opened(database_url) as store:
        job = await store.jobs.submit(make_job(), b"x", "", "", [])
    async with opened(database_url) as store:
        assert await store.jobs.get(job.uid) == job


@pytest.mark.asyncio
async def test_a_schema_of_a_newer_version_is_refused_with_the_remedy(database_url: str) -> None:
    async with opened(database_url) as store:
        await store._database.write(
            lambda conn: conn.execute(text("UPDATE alembic_version SET version_num = '9999'")), announce=False
        )

    with pytest.raises(Unavailable, match="9999") as refusal:
        await Store(database_url, KEYS).open()

    assert "Upgrade jupyter-pai" in refusal.value.hint


def test_an_ordinary_start_imports_neither_alembic_nor_asyncpg(tmp_path: Path) -> None:
    code = (
        "import asyncio, sys\n"
        "from pai_backend.store.sql import Store\n"
        "from tests.support.sealing import KEYS\n"
        "async def main():\n"
        f"    store = Store('sqlite:///{tmp_path}/pai.sqlite', KEYS); await store.open(); await store.aclose()\n"
        "asyncio.run(main())\n"
        "sys.exit(', '.join(sorted({'alembic', 'asyncpg'} & set(sys.modules))) or 0)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)

    assert (done.returncode, done.stderr) == (0, "")


# ---- SQLite ------------------------------------------------------------------------------------


@pytest.mark.asyncio
async def test_the_file_is_for_its_owner_only_and_safe_against_a_power_cut(tmp_path: Path) -> None:
    path = tmp_path / "new" / "directory" / "pai.sqlite"
    async with opened(f"sqlite:///{path}") as store:
        await store.jobs.submit(make_job(), b"", "", "", [])
        found = {file.name: stat.S_IMODE(file.stat().st_mode) for file in path.parent.iterdir()}
        writing = await store._database.write(pragmas, announce=False)
        reading = await store._database.read(pragmas)

    assert set(found) >= {"pai.sqlite", "pai.sqlite-wal", "pai.sqlite-shm"}
    assert {mode & 0o077 for mode in found.values()} == {0}
    assert writing == {"journal_mode": "wal", "synchronous": 2, "foreign_keys": 1, "query_only": 0}
    assert reading == {"journal_mode": "wal", "synchronous": 2, "foreign_keys": 0, "query_only": 1}


def pragmas(conn: Connection) -> dict[str, object]:
    names = ("journal_mode", "synchronous", "foreign_keys", "query_only")
    return {name: conn.exec_driver_sql(f"PRAGMA {name}").scalar() for name in names}


@pytest.mark.asyncio
@pytest.mark.parametrize(
    ("prepare", "sentence"),
    [
        (lambda path: path.write_bytes(b"not a database, but long enough to be looked at" * 99), "is not a SQLite"),
        (lambda path: path.mkdir(), "cannot be created: Is a directory"),
        (lambda path: (path.parent / "pai.sqlite-wal").mkdir(), "cannot be opened|has a disk error"),
    ],
)
async def test_a_file_that_cannot_be_a_database_is_named(tmp_path: Path, prepare: object, sentence: str) -> None:
    path = tmp_path / "pai.sqlite"
    prepare(path)  # type: ignore[operator]

    with pytest.raises(Unavailable, match=sentence) as refusal:
        await Store(f"sqlite:///{path}", KEYS).open()

    assert str(path) in refusal.value.message
    assert refusal.value.hint


@pytest.mark.asyncio
async def test_opening_can_be_tried_again(tmp_path: Path) -> None:
    path = tmp_path / "pai.sqlite"
    path.write_bytes(b"not a database, but long enough to be looked at" * 99)
    store = Store(f"sqlite:///{path}", KEYS)
    with pytest.raises(Unavailable):
        await store.open()
    path.unlink()

    await store.open()
    try:
        assert (await store.jobs.submit(make_job(), b"", "", "", [])).version == 1
    finally:
        await store.aclose()


@pytest.mark.asyncio
async def test_a_database_that_another_program_keeps_locked_is_unavailable(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sqlite, "BUSY_S", 0.1)
    path = tmp_path / "pai.sqlite"
    async with opened(f"sqlite:///{path}") as store:
        other = sqlite3.connect(path, isolation_level=None)
        try:
            other.execute("BEGIN IMMEDIATE")
            with pytest.raises(Unavailable, match="locked by another process"):
                await store.jobs.submit(make_job(), b"", "", "", [])
            assert await store.jobs.page(JobFilter()) == ([], 0), "reading goes on"
            other.execute("ROLLBACK")
            assert (await store.jobs.submit(make_job(), b"", "", "", [])).version == 1
        finally:
            other.close()


@pytest.mark.asyncio
async def test_a_full_disk_is_said_and_survived(tmp_path: Path) -> None:
    path = tmp_path / "pai.sqlite"
    async with opened(f"sqlite:///{path}") as store:
        pages = await store._database.write(
            lambda conn: conn.exec_driver_sql("PRAGMA page_count").scalar_one(), announce=False
        )
        # A limit on the file's pages is answered exactly as a full disk is (SQLITE_FULL).
        await store._database.write(
            lambda conn: conn.exec_driver_sql(f"PRAGMA max_page_count={pages}").scalar_one(), announce=False
        )
        with pytest.raises(Unavailable, match="the disk is full"):
            await store.jobs.submit(make_job(), b"x" * 1_000_000, "", "", [])
        await store._database.write(
            lambda conn: conn.exec_driver_sql("PRAGMA max_page_count=1000000").scalar_one(), announce=False
        )
        assert (await store.jobs.submit(make_job(), b"x" * 1_000_000, "", "", [])).version == 1


@pytest.mark.parametrize(
    "url", ["sqlite://", "sqlite:///:memory:", "sqlite:///x.db?mode=ro", "mysql://h/d", "nonsense"]
)
def test_a_url_that_cannot_be_used_is_refused_with_an_example(url: str) -> None:
    with pytest.raises(InvalidParameters) as refusal:
        Store(url, KEYS)
    assert "sqlite" in refusal.value.hint


@pytest.mark.asyncio
async def test_a_store_that_is_not_open_says_so(tmp_path: Path) -> None:
    store = Store(f"sqlite:///{tmp_path}/pai.sqlite", KEYS)
    with pytest.raises(Bug, match="not open"):
        await store.jobs.dirty()
    await store.open()
    await store.aclose()
    await store.aclose()
    with pytest.raises(Bug, match="closed"):
        await store.jobs.submit(make_job(), b"", "", "", [])


@pytest.mark.asyncio
async def test_no_file_is_left_open_after_closing(tmp_path: Path) -> None:
    async with opened(f"sqlite:///{tmp_path}/pai.sqlite") as store:
        await store.jobs.submit(make_job(), b"", "", "", [])
        assert any(tmp_path in Path(file.path).parents for file in psutil.Process().open_files())

    assert not any(tmp_path in Path(file.path).parents for file in psutil.Process().open_files())


# ---- PostgreSQL --------------------------------------------------------------------------------


@pytest.mark.asyncio
async def test_a_server_that_is_not_there_is_named_without_its_password() -> None:
    port = free_port()

    with pytest.raises(Unavailable) as refusal:
        await Store(f"postgresql://pai:{SECRET}@127.0.0.1:{port}/jobs", KEYS).open()

    assert f"127.0.0.1:{port}, database jobs, cannot be reached" in refusal.value.message
    assert SECRET not in f"{refusal.value!r} {refusal.value.body()!r} {refusal.value.__cause__!r}"


@pytest.mark.asyncio
async def test_a_database_that_does_not_exist_is_said(postgres_server: PostgresServer) -> None:
    url = postgres_server.new_database()

    with pytest.raises(Unavailable, match="has no database of that name") as refusal:
        await Store(f"{url}_other", KEYS).open()

    assert "createdb" in refusal.value.hint


@pytest.mark.asyncio
async def test_a_server_that_was_away_is_used_again(postgres_server: PostgresServer) -> None:
    url = postgres_server.new_database()
    database = url.rsplit("/", 1)[1]
    async with opened(url) as store:
        job = await store.jobs.submit(make_job(), b"", "", "", [])
        postgres_server.sql(f"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '{database}'")

        assert await store.jobs.get(job.uid) == job
