"""The looks at requests under way: all are looked at, none holds up another, none outlives its request."""

from __future__ import annotations

import asyncio

import pytest

from pai_backend.access.proxy import watch as module
from pai_backend.access.proxy.watch import RequestWatch


@pytest.fixture
def often(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "LOOK_S", 0.001)


class Request:
    """Counts how often it is looked at."""

    def __init__(self, wanted: int = 1) -> None:
        self.looks = 0
        self.enough = asyncio.Event()
        self._wanted = wanted

    async def look(self) -> None:
        self.looks += 1
        if self.looks >= self._wanted:
            self.enough.set()


@pytest.mark.asyncio
@pytest.mark.usefixtures("often")
async def test_each_request_is_looked_at_again_and_again() -> None:
    watch, requests = RequestWatch(), [Request(3), Request(3)]
    for request in requests:
        watch.add(request.look)
    for request in requests:
        await asyncio.wait_for(request.enough.wait(), 60)
    watch.close()


@pytest.mark.asyncio
@pytest.mark.usefixtures("often")
async def test_a_look_that_takes_long_holds_up_no_other_and_is_not_begun_twice() -> None:
    watch, request, begun, cancelled = RequestWatch(), Request(5), 0, asyncio.Event()

    async def endless() -> None:
        nonlocal begun
        begun += 1
        try:
            await asyncio.Event().wait()
        finally:
            cancelled.set()

    watch.add(endless)
    watch.add(request.look)
    await asyncio.wait_for(request.enough.wait(), 60)
    assert begun == 1
    watch.discard(endless)
    await asyncio.wait_for(cancelled.wait(), 60)
    watch.close()


@pytest.mark.asyncio
@pytest.mark.usefixtures("often")
async def test_it_begins_again_after_a_time_without_requests() -> None:
    watch = RequestWatch()
    for _ in range(2):
        request, other = Request(), Request(2)
        watch.add(request.look)
        await asyncio.wait_for(request.enough.wait(), 60)
        watch.discard(request.look)
        looks = request.looks
        watch.add(other.look)
        await asyncio.wait_for(other.enough.wait(), 60)
        watch.discard(other.look)
        assert request.looks == looks
    watch.close()
