"""Tokens that are remembered for a moment: never longer than that, and not after this process has ended one."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta

import pytest

from pai_backend.auth import remembered
from pai_backend.auth.remembered import FRESH_S, RememberedTokens
from pai_backend.store.base import AccessToken

pytestmark = pytest.mark.asyncio
NOW = datetime(2026, 11, 25, 12, tzinfo=UTC)


class Database:
    """Tokens that are read slowly when asked to."""

    def __init__(self, **ends: datetime | None) -> None:
        self.tokens = {name: AccessToken(name, "alice", True, NOW, end) for name, end in ends.items()}
        self.reads, self.now = 0, 100.0
        self.asked, self.may_answer = asyncio.Event(), asyncio.Event()
        self.may_answer.set()

    async def read(self, digest: str, now: datetime) -> AccessToken | None:
        self.reads += 1
        found = self.tokens.get(digest)
        self.asked.set()
        await self.may_answer.wait()
        return found

    def remembered(self) -> RememberedTokens:
        return RememberedTokens(self.read, lambda: self.now)


async def test_one_read_serves_a_page() -> None:
    database = Database(a=None)
    tokens = database.remembered()
    for _ in range(100):
        assert await tokens.get("a", NOW) == database.tokens["a"]
    assert database.reads == 1


async def test_a_token_that_another_process_ends_is_soon_refused() -> None:
    database = Database(a=None)
    tokens = database.remembered()
    await tokens.get("a", NOW)
    database.tokens.clear()
    database.now += FRESH_S
    assert await tokens.get("a", NOW) is None


async def test_a_token_that_this_process_ends_is_refused_at_once() -> None:
    database = Database(a=None)
    tokens = database.remembered()
    await tokens.get("a", NOW)
    database.tokens.clear()
    tokens.forget()
    assert await tokens.get("a", NOW) is None


async def test_what_was_being_read_while_it_ended_is_not_remembered() -> None:
    database = Database(a=None)
    tokens = database.remembered()
    database.may_answer.clear()
    asking = asyncio.create_task(tokens.get("a", NOW))
    await asyncio.wait_for(database.asked.wait(), 60)
    database.tokens.clear()
    tokens.forget()
    database.may_answer.set()
    assert await asking is not None, "it was asked before the end"
    assert await tokens.get("a", NOW) is None


async def test_a_token_ends_at_its_own_time() -> None:
    database = Database(a=NOW + timedelta(seconds=1))
    tokens = database.remembered()
    assert await tokens.get("a", NOW) is not None
    assert await tokens.get("a", NOW + timedelta(seconds=1)) is None


async def test_a_new_token_counts_at_once_and_strangers_fill_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(remembered, "MOST", 2)
    database = Database(a=None, b=None, c=None)
    tokens, new = database.remembered(), database.tokens.pop("a")
    assert await tokens.get("a", NOW) is None
    database.tokens["a"] = new
    assert await tokens.get("a", NOW) == new
    for digest in ("b", "c", "x", "y", "z"):
        await tokens.get(digest, NOW)
    reads = database.reads
    for digest in ("c", "b"):
        assert await tokens.get(digest, NOW) is not None
    assert database.reads == reads, "those of strangers have not taken their room"
