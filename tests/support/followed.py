"""A reflector at work with a consumer, and what the consumer was told, for tests against a real API server."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from pai_backend.engine.kubernetes.calls import Calls, Patch
from pai_backend.engine.kubernetes.counts import ReflectorHealth
from pai_backend.engine.kubernetes.handover import Change, Handover, ObjectGone, ResourceListed, Seen
from pai_backend.engine.kubernetes.objects import Object, name_of, uid_of, version_of
from pai_backend.engine.kubernetes.reflector import Reflector, Resource, Timing
from pai_backend.engine.kubernetes.retrying import Backoff

QUICK = Timing(silence_s=100.0, backoff=Backoff(base_s=0.05, cap_s=1.0), list_s=5.0)
PATIENCE_S = 60.0

Known = dict[str, str]  # uid -> version


class Followed:
    """What a consumer knows that takes all news at once."""

    def __init__(self, reflector: Reflector, handover: Handover) -> None:
        self.reflector = reflector
        self.known: Known = {}
        self.gone: list[ObjectGone] = []
        self.listed = 0
        self.resurrected: list[str] = []  # seen after they were gone: must stay empty
        self._handover = handover
        self._changed = asyncio.Condition()

    async def consume(self) -> None:
        """Take for ever."""
        while True:
            for change in await self._handover.take():
                self._apply(change)
            async with self._changed:
                self._changed.notify_all()

    async def until_equal(self, expected: Known) -> None:
        """Return once consumer and mirror know exactly this. Fails, with the difference, when that takes too long."""
        try:
            async with asyncio.timeout(PATIENCE_S), self._changed:
                await self._changed.wait_for(lambda: self.listed and self.known == self.mirrored == expected)
        except TimeoutError:
            missing, extra = expected.keys() - self.known.keys(), self.known.keys() - expected.keys()
            raise AssertionError(
                f"after {PATIENCE_S:.0f} s {len(missing)} are missing, {len(extra)} too many, "
                f"versions differ: {self.known.keys() == expected.keys()}; {self.reflector.health}"
            ) from None
        assert self.resurrected == []

    async def until_health(self, wanted: Callable[[ReflectorHealth], bool]) -> None:
        """Return once the reflector is as wanted; nobody is told of that, so it is looked at again and again."""
        async with asyncio.timeout(PATIENCE_S):
            while not wanted(self.reflector.health):  # noqa: ASYNC110
                await asyncio.sleep(0.01)

    @property
    def mirrored(self) -> Known:
        return {uid: version_of(obj) for uid, obj in self.reflector.objects.items()}

    def _apply(self, change: Change) -> None:
        match change:
            case Seen(_, obj):
                if any(uid_of(gone.last) == uid_of(obj) for gone in self.gone):
                    self.resurrected.append(name_of(obj))
                self.known[uid_of(obj)] = version_of(obj)
            case ObjectGone(_, last):
                self.gone.append(change)
                self.known.pop(uid_of(last), None)
            case ResourceListed():
                self.listed += 1


@asynccontextmanager
async def following(
    calls: Calls, resource: Resource, *, streaming: bool = True, timing: Timing = QUICK, limit: int = 20_000
) -> AsyncIterator[Followed]:
    """A reflector and its consumer until the block ends, which fails if either failed by itself."""
    handover = Handover(limit)
    followed = Followed(Reflector(calls, resource, handover, streaming=streaming, timing=timing), handover)
    tasks = [asyncio.create_task(followed.reflector.run()), asyncio.create_task(followed.consume())]
    try:
        yield followed
        assert not any(task.done() for task in tasks), [task.exception() for task in tasks if task.done()]
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def versions(calls: Calls, resource: Resource) -> Known:
    """What the server has."""
    return {uid_of(obj): version_of(obj) async for obj in calls.list(resource.path, query=resource.query)}


class Churn:
    """Objects made, changed and deleted all the time, through whatever happens to the server."""

    def __init__(self, calls: Calls, path: str, prefix: str) -> None:
        self._calls = calls
        self._path = path
        self._prefix = prefix
        self._stopping = False
        self._turned = asyncio.Condition()
        self.rounds = 0

    async def run(self) -> None:
        """Until :meth:`stop`; each round leaves one of three objects behind."""
        while not self._stopping:
            name = f"{self._prefix}-{self.rounds}"
            await self._calls.create(self._path, config_map(name, 0), deadline_s=PATIENCE_S)
            for number in range(1, 3):
                body = {"data": {"number": str(number)}}
                await self._calls.patch(f"{self._path}/{name}", body, Patch.MERGE, deadline_s=PATIENCE_S)
            if self.rounds % 3:
                await self._calls.delete(f"{self._path}/{name}", deadline_s=PATIENCE_S)
            self.rounds += 1
            async with self._turned:
                self._turned.notify_all()

    async def more(self, rounds: int) -> None:
        """Return after that many more rounds."""
        wanted = self.rounds + rounds
        async with asyncio.timeout(PATIENCE_S), self._turned:
            await self._turned.wait_for(lambda: self.rounds >= wanted)

    def stop(self) -> None:
        self._stopping = True


@asynccontextmanager
async def churning(calls: Calls, path: str, prefix: str = "churn") -> AsyncIterator[Churn]:
    """Churn while the block runs; all of it is done when the block has ended."""
    churn = Churn(calls, path, prefix)
    task = asyncio.create_task(churn.run())
    try:
        yield churn
        churn.stop()
        async with asyncio.timeout(PATIENCE_S * 2):
            await task
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


def config_map(name: str, number: int) -> Object:
    """A small object that needs nothing else."""
    return {"metadata": {"name": name, "labels": {"ours": "yes"}}, "data": {"number": str(number)}}
