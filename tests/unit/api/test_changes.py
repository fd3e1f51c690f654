"""One waiter for all followers."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from typing import cast

import pytest

from pai_backend.api.changes import Changes, JobFollower
from pai_backend.model.errors import Unavailable
from pai_backend.model.ids import JobUid
from pai_backend.model.job import Event
from pai_backend.store.sql import Store


class Marks:
    """A store of which only the waiting is used; a test releases each wait with a mark or an error."""

    def __init__(self) -> None:
        self.releases: asyncio.Queue[int | Exception] = asyncio.Queue()
        self.waits = 0

    @property
    def changes(self) -> Marks:
        return self

    async def wait(self, seen: int, timeout_s: float) -> int:
        self.waits += 1
        if seen == -1:
            return 0
        release = await self.releases.get()
        if isinstance(release, Exception):
            raise release
        return release


def changes_of(store: Marks) -> Changes:
    return Changes(cast(Store, store))


@pytest.mark.asyncio
async def test_all_followers_wake_at_one_change() -> None:
    store = Marks()
    changes = changes_of(store)
    await asyncio.wait_for(changes.wait(changes.number), 60)  # the first wait of a waiter returns at once
    seen = changes.number
    followers = [asyncio.create_task(changes.wait(seen)) for _ in range(10)]
    await asyncio.sleep(0)
    assert changes.followers == 10
    store.releases.put_nowait(1)
    await asyncio.wait_for(asyncio.gather(*followers), 60)
    assert changes.followers == 0
    await changes.aclose()


@pytest.mark.asyncio
async def test_a_change_between_reading_and_waiting_is_not_missed() -> None:
    changes = changes_of(Marks())
    seen = changes.number
    await asyncio.wait_for(changes.wait(seen), 60)
    await asyncio.wait_for(changes.wait(seen), 60)
    await changes.aclose()


@pytest.mark.asyncio
async def test_nobody_waits_on_the_store_without_followers() -> None:
    store = Marks()
    changes = changes_of(store)
    assert store.waits == 0
    await changes.wait(changes.number)
    await asyncio.sleep(0)
    waits = store.waits
    store.releases.put_nowait(1)
    await asyncio.sleep(0.05)
    assert store.waits <= waits + 1
    await changes.aclose()


@pytest.mark.asyncio
async def test_a_database_that_is_away_only_delays(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pai_backend.api.changes.RETRY_S", 0.01)
    store = Marks()
    changes = changes_of(store)
    await changes.wait(changes.number)
    for release in (Unavailable("away"), 2):
        follower = asyncio.create_task(changes.wait(changes.number))
        store.releases.put_nowait(release)
        await asyncio.wait_for(follower, 60)
    await changes.aclose()


@pytest.mark.asyncio
async def test_a_broken_waiter_is_told_to_its_followers() -> None:
    store = Marks()
    changes = changes_of(store)
    await changes.wait(changes.number)
    follower = asyncio.create_task(changes.wait(changes.number + 5))
    store.releases.put_nowait(RuntimeError("broken"))
    with pytest.raises(RuntimeError, match="broken"):
        await asyncio.wait_for(follower, 60)


class Log(Marks):
    """The same with a log of events, whose readings are counted."""

    def __init__(self) -> None:
        super().__init__()
        self.log: list[Event] = []
        self.readings = 0

    def append(self, job: str) -> None:
        """Commit an event of a job."""
        self.log.append(Event(job=JobUid(job), seq=1, at=datetime.now(UTC), type="job.state"))
        self.releases.put_nowait(len(self.log))

    @property
    def events(self) -> Log:
        return self

    async def recent(self, position: str | None, user: str | None, limit: int) -> tuple[list[Event], str]:
        self.readings += 1
        after = len(self.log) if position is None else int(position)
        page = self.log[after : after + limit]
        return page, str(after + len(page))


async def _quiet(changes: Changes, *news: JobFollower) -> list[asyncio.Task[None]]:
    """Followers of jobs that have read all there was, and wait."""
    for each in news:
        await asyncio.wait_for(each.wait(), 60)  # whoever begins to follow is woken once
        each.take_note()
    waiting = [asyncio.create_task(each.wait()) for each in news]
    await asyncio.sleep(0)
    assert changes.followers == len(news)
    return waiting


@asynccontextmanager
async def _following(log: Log) -> AsyncIterator[tuple[JobFollower, asyncio.Task[None]]]:
    """Somebody who follows one job, has read all there was of it, and waits."""
    changes = changes_of(log)
    with changes.of_job(JobUid("mine")) as mine:
        (waiting,) = await _quiet(changes, mine)
        yield mine, waiting
    await changes.aclose()


@pytest.mark.asyncio
async def test_who_follows_a_job_is_woken_by_its_own_events_alone() -> None:
    store = Log()
    changes = changes_of(store)
    with changes.of_job(JobUid("mine")) as mine, changes.of_job(JobUid("other")) as other:
        of_mine, of_other = await _quiet(changes, mine, other)
        readings = store.readings
        store.append("other")
        await asyncio.wait_for(of_other, 60)
        assert not of_mine.done()
        store.append("mine")
        await asyncio.wait_for(of_mine, 60)
    assert store.readings <= readings + 3  # one for each change, not for each follower, and one by who was late
    await changes.aclose()


@pytest.mark.asyncio
async def test_what_a_job_has_to_tell_while_its_follower_reads_is_not_missed() -> None:
    store = Log()
    async with _following(store) as (mine, waiting):
        store.append("mine")
        await asyncio.wait_for(waiting, 60)
        mine.take_note()
        store.append("mine")  # comes while the follower reads what was there before
        await asyncio.wait_for(mine.wait(), 60)


@pytest.mark.asyncio
async def test_a_log_that_is_away_for_a_while_wakes_everybody(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pai_backend.api.changes.RETRY_S", 0.01)
    store = Log()
    async with _following(store) as (_, waiting):
        store.log.append(Event(job=JobUid("mine"), seq=1, at=datetime.now(UTC), type="job.state"))
        store.releases.put_nowait(Unavailable("away"))  # and nobody is told of the event
        await asyncio.wait_for(waiting, 60)


@pytest.mark.asyncio
async def test_who_follows_a_job_is_told_of_a_broken_waiter() -> None:
    store = Log()
    async with _following(store) as (mine, waiting):
        store.releases.put_nowait(RuntimeError("broken"))
        await asyncio.wait_for(waiting, 60)
        mine.take_note()
        with pytest.raises(RuntimeError, match="broken"):
            await asyncio.wait_for(mine.wait(), 60)
