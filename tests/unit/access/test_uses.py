"""Writing uses of jobs down: at once after a pause, seldom after that, and none is lost while the store is away."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import datetime, timedelta
from typing import cast

import pytest

from pai_backend.access import uses as module
from pai_backend.access.uses import Uses
from pai_backend.model.errors import Unavailable
from pai_backend.model.idle import UseSource
from pai_backend.model.ids import JobUid
from pai_backend.store import idle_clocks
from pai_backend.store.idle_clocks import Idling
from pai_backend.testing.builders import T0, make_uid

JOB = make_uid(1)


class Memory:
    """The part of the store that uses are written to; fails as long as it is told to."""

    def __init__(self) -> None:
        self.kept: dict[tuple[JobUid, UseSource], datetime] = {}
        self.writes = 0
        self.away = False
        self.news = asyncio.Event()

    async def note(self, uses: idle_clocks.Uses) -> None:
        self.writes += 1
        self.news.set()
        if self.away:
            raise Unavailable("The database is away.")
        self.kept.update(uses)

    async def written(self) -> None:
        """The next attempt to write."""
        await asyncio.wait_for(self.news.wait(), 60)
        self.news.clear()


class Clock:
    def __init__(self) -> None:
        self.now = T0

    def __call__(self) -> datetime:
        self.now += timedelta(seconds=1)
        return self.now


@asynccontextmanager
async def writing() -> AsyncIterator[tuple[Uses, Memory]]:
    memory = Memory()
    uses = Uses(lambda: cast("Idling", memory), Clock())
    running = asyncio.create_task(uses.run())
    try:
        yield uses, memory
    finally:
        running.cancel()
        await asyncio.wait([running])


@pytest.mark.asyncio
async def test_the_first_use_is_written_at_once_and_the_last_one_in_any_case() -> None:
    async with writing() as (uses, memory):
        uses.note(JOB, UseSource.SSH, 3600)
        await memory.written()
        for _ in range(1000):
            uses.note(JOB, UseSource.SSH, 3600)
        uses.note(JOB, UseSource.SERVICE, 3600)
        await memory.written()
        assert memory.writes == 2
        assert memory.kept == {
            (JOB, UseSource.SSH): T0 + timedelta(seconds=1),
            (JOB, UseSource.SERVICE): T0 + timedelta(seconds=1002),
        }
    await uses.finish()
    assert memory.kept[JOB, UseSource.SSH] == T0 + timedelta(seconds=1001)


@pytest.mark.asyncio
async def test_a_job_with_a_short_timeout_is_written_more_often() -> None:
    async with writing() as (uses, memory):
        for _ in range(3):
            uses.note(JOB, UseSource.SSH, 1)
            await memory.written()
        assert memory.kept == {(JOB, UseSource.SSH): T0 + timedelta(seconds=3)}


@pytest.mark.asyncio
async def test_a_store_that_is_away_delays_uses_and_loses_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "RETRY_S", 0.01)
    async with writing() as (uses, memory):
        memory.away = True
        uses.note(JOB, UseSource.SSH, 3600)
        await memory.written()
        uses.note(JOB, UseSource.SSH, 3600)
        memory.away = False
        while not memory.kept:
            await memory.written()
        assert memory.kept == {(JOB, UseSource.SSH): T0 + timedelta(seconds=2)}
