"""An engine's watch and logs, collected for tests that wait on them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from pai_backend.engine.base import Engine, EngineEvent, Listed, LogStream, TaskSeen, TaskState
from pai_backend.model.ids import TaskUid

PATIENCE_S = 60.0  # far above what any step takes, so that only a hang fails


class Watching:
    """An engine's watch, drained in the background into a list that tests wait on."""

    def __init__(self, engine: Engine) -> None:
        self.events: list[EngineEvent] = []
        self._engine = engine
        self._news = asyncio.Condition()

    async def drain(self) -> None:
        """Collect events for ever."""
        async for event in self._engine.watch():
            async with self._news:
                self.events.append(event)
                self._news.notify_all()

    def of(self, uid: TaskUid) -> list[TaskSeen]:
        """The events of one task, in order."""
        return [event for event in self.events if isinstance(event, TaskSeen) and event.uid == uid]

    async def until(self, check: Callable[[], object]) -> None:
        """Return when ``check`` holds after some event. Raises TimeoutError when it never does."""
        async with asyncio.timeout(PATIENCE_S), self._news:
            await self._news.wait_for(check)

    async def listed(self) -> None:
        """Return when the first listing is complete."""
        await self.until(lambda: Listed() in self.events)

    async def state(self, uid: TaskUid, state: TaskState) -> TaskSeen:
        """The first event that has the task in this state, waiting for it if need be."""
        await self.until(lambda: any(seen.state is state for seen in self.of(uid)))
        return next(seen for seen in self.of(uid) if seen.state is state)


@asynccontextmanager
async def watching(engine: Engine) -> AsyncIterator[Watching]:
    """Watch the engine for the length of a block, from after its first listing."""
    watched = Watching(engine)
    drain = asyncio.create_task(watched.drain())
    try:
        listed = asyncio.create_task(watched.listed())
        await asyncio.wait({listed, drain}, return_when=asyncio.FIRST_COMPLETED)
        if drain.done():
            drain.result()
        await listed
        yield watched
    finally:
        drain.cancel()
        await asyncio.gather(drain, return_exceptions=True)


async def read_log(engine: Engine, uid: TaskUid, stream: LogStream, offset: int = 0, *, follow: bool = False) -> bytes:
    """All of a log from an offset on."""
    chunks = []
    async with asyncio.timeout(PATIENCE_S):
        async for chunk in engine.logs(uid, stream, offset, follow):
            chunks.append(chunk)
    return b"".join(chunks)
