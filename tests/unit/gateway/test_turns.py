"""Looking at many things gives way to others, and misses none."""

from __future__ import annotations

import asyncio

import pytest

from pai_backend.access.gateway.turns import MOST, in_turns

pytestmark = pytest.mark.asyncio


@pytest.mark.parametrize("count", [0, 1, MOST, 3 * MOST + 1])
async def test_everything_is_seen_once_in_its_order(count: int) -> None:
    assert [each async for each in in_turns(range(count))] == list(range(count))


async def test_others_get_their_turn_in_between() -> None:
    seen: list[int] = []
    at: list[int] = []

    async def look() -> None:
        async for each in in_turns(range(3 * MOST)):
            seen.append(each)

    async def others() -> None:
        while len(seen) < 3 * MOST:
            at.append(len(seen))
            await asyncio.sleep(0)

    await asyncio.gather(look(), others())
    assert at == [MOST, 2 * MOST]


async def test_what_goes_and_comes_meanwhile_disturbs_nothing() -> None:
    things = dict.fromkeys(range(2 * MOST))
    seen = []
    async for each in in_turns(things):
        things.pop(each, None)
        things[-each - 1] = None
        seen.append(each)
    assert seen == list(range(2 * MOST))
