"""PostgreSQL: a writer whose process is stopped in the middle of its transaction does not hold up others for ever."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import asyncpg
import pytest
import pytest_asyncio
from sqlalchemy import make_url, text

from pai_backend.model.errors import Unavailable
from pai_backend.store.database import Database
from pai_backend.store.postgres import WRITE_LOCK, PostgresBacking
from tests.support.postgres import PostgresServer

pytestmark = pytest.mark.asyncio
PATIENCE_S = 1.0
LIMIT_S = 60
TAKE = f"SELECT pg_advisory_xact_lock({WRITE_LOCK})"


@pytest_asyncio.fixture
async def database(postgres_server: PostgresServer) -> AsyncIterator[Database]:
    """As another replica has it."""
    url = postgres_server.new_database()
    database = Database(PostgresBacking(make_url(url), PATIENCE_S))
    await database.open()
    yield database
    await database.aclose()
    postgres_server.take_back(url)


@pytest_asyncio.fixture
async def writer(database: Database) -> AsyncIterator[asyncpg.Connection]:
    """A writer of a replica, in its transaction, with the server's settings that a replica asks for."""
    backing = database.backing
    assert isinstance(backing, PostgresBacking)
    assert backing._writer is not None
    async with backing._writer.connect() as connection:
        writer = (await connection.get_raw_connection()).driver_connection
        assert writer is not None
        await writer.execute("BEGIN")
        await writer.execute(TAKE)
        yield writer
        await connection.invalidate()


async def ended(writer: asyncpg.Connection) -> None:
    """Return when the server has ended a session."""
    news = asyncio.Event()
    writer.add_termination_listener(lambda _: news.set())
    async with asyncio.timeout(LIMIT_S):
        while not writer.is_closed():
            await news.wait()


async def write(database: Database) -> int:
    """A write of the other replica."""
    async with asyncio.timeout(LIMIT_S):
        return await database.write(lambda conn: conn.execute(text("SELECT 17")).scalar_one(), announce=True)


async def test_one_that_is_stopped_between_two_statements_is_ended(
    database: Database, writer: asyncpg.Connection
) -> None:
    assert await write(database) == 17
    await ended(writer)


async def test_one_that_is_stopped_while_a_statement_is_prepared_is_ended(
    database: Database, writer: asyncpg.Connection, caplog: pytest.LogCaptureFixture
) -> None:
    await writer.prepare("SELECT 18")  # and nothing follows it
    assert await write(database) == 17
    assert "had a writer that hung for over 1 s; it was ended" in caplog.text
    await ended(writer)


async def test_one_that_works_for_long_is_waited_for_and_not_ended(
    database: Database, writer: asyncpg.Connection
) -> None:
    working = asyncio.create_task(writer.execute(f"SELECT pg_sleep({PATIENCE_S * 3})"))
    with pytest.raises(Unavailable, match="another process holds its lock"):
        await write(database)
    await working
    await writer.execute("COMMIT")
    assert await write(database) == 17
