"""A value that is read once a second, and never older than a change that this process made."""

from __future__ import annotations

import asyncio

import pytest

from pai_backend.auth.fresh import AHEAD_S, FRESH_S, Fresh

pytestmark = pytest.mark.asyncio


class Database:
    """A number that is read slowly when asked to."""

    def __init__(self) -> None:
        self.value, self.reads, self.now = 0, 0, 100.0
        self.asked = asyncio.Event()
        self.may_answer = asyncio.Event()
        self.may_answer.set()

    async def read(self) -> int:
        self.reads += 1
        self.asked.set()
        value = self.value
        await self.may_answer.wait()
        return value

    def clock(self) -> float:
        return self.now


async def test_one_read_serves_all_of_a_second() -> None:
    database = Database()
    fresh = Fresh(database.read, database.clock)
    assert await asyncio.gather(*(fresh.get() for _ in range(50))) == [0] * 50
    database.value = 1
    assert (await fresh.get(), database.reads) == (0, 1)
    database.now += FRESH_S
    assert (await fresh.get(), database.reads) == (1, 2)


async def test_nobody_waits_for_a_value_that_is_read_ahead() -> None:
    database = Database()
    fresh = Fresh(database.read, database.clock)
    await fresh.get()
    database.value, database.now = 1, database.now + AHEAD_S
    database.may_answer.clear()
    database.asked.clear()
    assert await asyncio.gather(*(fresh.get() for _ in range(50))) == [0] * 50
    await database.asked.wait()
    assert (await fresh.get(), database.reads) == (0, 2)
    database.now += FRESH_S - AHEAD_S
    late = asyncio.create_task(fresh.get())
    await asyncio.sleep(0)
    assert not late.done(), "the old value counts no longer"
    database.may_answer.set()
    assert (await late, database.reads) == (1, 2)


async def test_what_was_being_read_while_it_changed_is_read_again() -> None:
    database = Database()
    fresh = Fresh(database.read, database.clock)
    database.may_answer.clear()
    asking = asyncio.create_task(fresh.get())
    await database.asked.wait()
    database.value = 1
    fresh.forget()
    database.may_answer.set()
    assert (await asking, database.reads) == (1, 2)


async def test_a_read_that_fails_is_told_and_tried_again() -> None:
    database = Database()

    async def failing() -> int:
        if database.reads == 0:
            database.reads += 1
            raise OSError("gone")
        return await database.read()

    fresh = Fresh(failing, database.clock)
    with pytest.raises(OSError, match="gone"):
        await fresh.get()
    assert await fresh.get() == 0
