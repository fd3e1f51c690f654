"""One read for all who ask, unless it began too early for them."""

from __future__ import annotations

import asyncio

import pytest

from pai_backend.platform.shared_read import SharedRead

pytestmark = pytest.mark.asyncio


class Slow:
    """Reads that end when the test lets them, each with its number; a time that the test sets."""

    def __init__(self) -> None:
        self.now, self.ends = 0.0, list[asyncio.Future[None]]()
        self.begun = asyncio.Event()
        self.shared = SharedRead(self.read, lambda: self.now)

    async def read(self) -> int:
        end = asyncio.get_running_loop().create_future()
        self.ends.append(end)
        self.begun.set()
        await end
        return len(self.ends)

    async def until_begun(self, reads: int) -> None:
        """Return when so many reads have begun."""
        while len(self.ends) < reads:
            self.begun.clear()
            await self.begun.wait()

    async def ask(self, oldest: float) -> asyncio.Task[int]:
        """Ask, and return when the read that is under way then has begun."""
        asked = asyncio.create_task(self.shared.since(oldest))
        await asyncio.sleep(0)
        await self.begun.wait()
        return asked


async def test_it_is_shared_by_those_to_whom_it_is_recent_enough() -> None:
    slow = Slow()
    first = await slow.ask(0.0)
    slow.now = 5.0
    shares, waits = await slow.ask(0.0), [await slow.ask(5.0) for _ in range(100)]
    slow.ends[0].set_result(None)
    assert (await first, await shares) == (1, 1)
    await asyncio.sleep(0)
    assert not any(each.done() for each in waits)
    await slow.until_begun(2)
    slow.ends[1].set_result(None)
    assert await asyncio.gather(*waits) == [2] * 100
    assert (len(slow.ends), slow.shared.is_idle) == (2, True)


async def test_all_who_wait_go_on_together() -> None:
    slow = Slow()
    waits = [await slow.ask(0.0) for _ in range(200)]
    slow.ends[0].set_result(None)
    for _ in range(5):
        await asyncio.sleep(0)
    assert all(each.done() for each in waits), "not one after the other, each in a turn of the loop"


async def test_one_who_goes_away_leaves_the_answer_to_the_others() -> None:
    slow = Slow()
    leaves, stays = await slow.ask(0.0), await slow.ask(0.0)
    leaves.cancel()
    slow.ends[0].set_result(None)
    assert await stays == 1
    assert leaves.cancelled()


async def test_a_fault_is_told_to_all_of_it_and_not_to_the_next() -> None:
    slow = Slow()
    waits = [await slow.ask(0.0) for _ in range(3)]
    slow.ends[0].set_exception(OSError("gone"))
    told = await asyncio.gather(*waits, return_exceptions=True)
    assert [str(each) for each in told] == ["gone"] * 3
    again = await slow.ask(0.0)
    await slow.until_begun(2)
    slow.ends[1].set_result(None)
    assert await again == 2


async def test_one_that_was_cancelled_before_it_began_is_not_waited_for() -> None:
    slow = Slow()
    slow.shared.begin(0.0).cancel()
    await asyncio.sleep(0)
    again = await slow.ask(0.0)
    slow.ends[0].set_result(None)
    assert await again == 1
