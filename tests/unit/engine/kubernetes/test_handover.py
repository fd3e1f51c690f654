"""What waits between a reflector and its consumer: the latest news of each object, in order, and only so much."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from pai_backend.engine.kubernetes.handover import Handover, ObjectGone, ResourceListed, Seen


def pod(uid: str, version: int, name: str = "task") -> dict[str, Any]:
    return {"metadata": {"uid": uid, "name": name, "resourceVersion": str(version)}}


@pytest.mark.asyncio
async def test_later_news_of_an_object_replace_earlier_ones_in_their_place() -> None:
    handover = Handover()
    handover.put([Seen("pods", pod("a", 1)), Seen("pods", pod("b", 1)), Seen("pods", pod("a", 2))])
    assert await handover.take() == [Seen("pods", pod("a", 2)), Seen("pods", pod("b", 1))]
    handover.put([Seen("pods", pod("a", 3))])
    assert await handover.take() == [Seen("pods", pod("a", 3))]


@pytest.mark.asyncio
async def test_the_end_of_an_object_and_its_successor_of_the_same_name_are_both_told() -> None:
    handover = Handover()
    handover.put([Seen("pods", pod("a", 1))])
    handover.put([ObjectGone("pods", pod("a", 2), witnessed=True)])
    handover.put([Seen("pods", pod("b", 3))])
    assert await handover.take() == [ObjectGone("pods", pod("a", 2), witnessed=True), Seen("pods", pod("b", 3))]


@pytest.mark.asyncio
async def test_the_same_uid_of_two_resources_is_two_objects() -> None:
    handover = Handover()
    handover.put(
        [Seen("pods", pod("a", 1)), Seen("nodes", pod("a", 2)), ResourceListed("pods"), ResourceListed("nodes")]
    )
    assert len(await handover.take()) == 4


@pytest.mark.asyncio
async def test_taking_waits_for_news() -> None:
    handover = Handover()
    async with asyncio.timeout(60):
        taking = asyncio.create_task(handover.take())
        await asyncio.sleep(0)
        handover.put([])
        await asyncio.sleep(0)
        assert not taking.done()
        handover.put([ResourceListed("pods")])
        assert await taking == [ResourceListed("pods")]


@pytest.mark.asyncio
async def test_a_reader_is_never_held_up_but_learns_that_there_is_no_room() -> None:
    handover = Handover(limit=2)
    handover.put([Seen("pods", pod("a", 1))])
    assert not handover.full
    handover.put([Seen("pods", pod("a", 2))])
    assert not handover.full  # the same object takes no more room
    handover.put([Seen("pods", pod("b", 1)), Seen("pods", pod("c", 1))])
    assert handover.full
    async with asyncio.timeout(60):
        waiting = asyncio.create_task(handover.room())
        await asyncio.sleep(0)
        assert not waiting.done()
        assert len(await handover.take()) == 3
        await waiting
    assert not handover.full
