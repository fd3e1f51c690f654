"""A shared read is never older than a question that it answers, and many questions make few reads."""

from __future__ import annotations

import asyncio

import pytest

from pai_backend.controller.shared_reads import Shared


class Source:
    """Counts its reads; each waits to be let go."""

    def __init__(self) -> None:
        self.begun = 0
        self.go = asyncio.Semaphore(0)
        self.broken = False

    async def read(self) -> int:
        self.begun += 1
        mine = self.begun
        await self.go.acquire()
        if self.broken:
            raise ConnectionError("away")
        return mine


async def passes() -> None:
    """Let everything that can run now run."""
    for _ in range(5):
        await asyncio.sleep(0)


@pytest.mark.asyncio
async def test_who_asks_during_a_read_gets_the_next_one() -> None:
    source = Source()
    shared = Shared(source.read)
    early = [asyncio.create_task(shared.ask()) for _ in range(3)]
    await passes()
    late = [asyncio.create_task(shared.ask()) for _ in range(4)]
    await passes()
    assert source.begun == 1
    source.go.release()
    assert await asyncio.gather(*early) == [1, 1, 1]
    await passes()
    assert source.begun == 2
    source.go.release()
    assert await asyncio.gather(*late) == [2, 2, 2, 2]


@pytest.mark.asyncio
async def test_a_failure_is_told_to_those_who_asked_and_not_remembered() -> None:
    source = Source()
    shared = Shared(source.read)
    source.broken = True
    asked = [asyncio.create_task(shared.ask()) for _ in range(2)]
    source.go.release()
    failures = await asyncio.gather(*asked, return_exceptions=True)
    assert [type(each) for each in failures] == [ConnectionError, ConnectionError]
    source.broken = False
    source.go.release()
    assert await shared.ask() == 2


@pytest.mark.asyncio
async def test_one_who_gives_up_takes_the_answer_from_nobody() -> None:
    source = Source()
    shared = Shared(source.read)
    impatient, patient = asyncio.create_task(shared.ask()), asyncio.create_task(shared.ask())
    await passes()
    impatient.cancel()
    await passes()
    source.go.release()
    assert await patient == 1
