"""One waiter for all followers."""

from __future__ import annotations

import asyncio

import pytest

from pai_backend.api.changes import Changes
from pai_backend.model.errors import Unavailable


class Marks:
    """A store of which only the waiting is used; a test releases each wait with a mark or an error."""

    def __init__(self) -> None:
        self.releases: asyncio.Queue[int | Exception] = asyncio.Queue()
        self.waits = 0

    async def wait_change(self, seen: int, timeout_s: float) -> int:
        self.waits += 1
        if seen == -1:
            return 0
        release = await self.releases.get()
        if isinstance(release, Exception):
            raise release
        return release


@pytest.mark.asyncio
async def test_all_followers_wake_at_one_change() -> None:
    store = Marks()
    changes = Changes(store)
    await asyncio.wait_for(changes.wait(changes.number), 5)  # the first wait of a waiter returns at once
    seen = changes.number
    followers = [asyncio.create_task(changes.wait(seen)) for _ in range(10)]
    await asyncio.sleep(0)
    assert changes.followers == 10
    store.releases.put_nowait(1)
    await asyncio.wait_for(asyncio.gather(*followers), 5)
    assert changes.followers == 0
    await changes.aclose()


@pytest.mark.asyncio
async def test_a_change_between_reading_and_waiting_is_not_missed() -> None:
    changes = Changes(Marks())
    seen = changes.number
    await asyncio.wait_for(changes.wait(seen), 5)
    await asyncio.wait_for(changes.wait(seen), 1)
    await changes.aclose()


@pytest.mark.asyncio
async def test_nobody_waits_on_the_store_without_followers() -> None:
    store = Marks()
    changes = Changes(store)
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
    changes = Changes(store)
    await changes.wait(changes.number)
    for release in (Unavailable("away"), 2):
        follower = asyncio.create_task(changes.wait(changes.number))
        store.releases.put_nowait(release)
        await asyncio.wait_for(follower, 5)
    await changes.aclose()


@pytest.mark.asyncio
async def test_a_broken_waiter_is_told_to_its_followers() -> None:
    store = Marks()
    changes = Changes(store)
    await changes.wait(changes.number)
    follower = asyncio.create_task(changes.wait(changes.number + 5))
    store.releases.put_nowait(RuntimeError("broken"))
    with pytest.raises(RuntimeError, match="broken"):
        await asyncio.wait_for(follower, 5)
