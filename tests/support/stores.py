"""Stores for tests, on both databases: a test that asks for ``store`` or ``database_url`` runs twice."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
import pytest_asyncio

from pai_backend.store.sql import Store
from tests.support.postgres import PostgresServer
from tests.support.sealing import KEYS

DATABASES = ("sqlite", "postgresql")


@pytest.fixture(params=DATABASES)
def database_url(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """The URL of an empty database."""
    if request.param == "sqlite":
        yield f"sqlite:///{tmp_path}/pai.sqlite"
        return
    server: PostgresServer = request.getfixturevalue("postgres_server")
    url = server.new_database()
    yield url
    server.take_back(url)


@asynccontextmanager
async def opened(url: str) -> AsyncIterator[Store]:
    """An open store, closed at the end."""
    store = Store(url, KEYS)
    await store.open()
    try:
        yield store
    finally:
        await store.aclose()


@pytest_asyncio.fixture
async def store(database_url: str) -> AsyncIterator[Store]:
    """An open store on an empty database."""
    async with opened(database_url) as one:
        yield one


@pytest_asyncio.fixture
async def other_store(store: Store, database_url: str) -> AsyncIterator[Store]:
    """A second store on the same database, with connections of its own: as another process has it."""
    async with opened(database_url) as one:
        yield one
