"""Writes down when jobs with an idle timeout are used, by whatever passes bytes to them; of a job a line in a while.

The first use after a pause is written at once, so that a job that was idle for long is not stopped under the hands
of a user who has just come back. A store that is away delays what is written; what is noted meanwhile is kept.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from pai_backend.model.errors import Unavailable
from pai_backend.model.idle import UseSource
from pai_backend.model.ids import JobUid

if TYPE_CHECKING:
    from pai_backend.store.idle_clocks import Idling

MOST_PAUSE_S = 10.0
_PARTS = 8  # of the timeout: also a short one hears of a use long before it is over
RETRY_S = 1.0
REMEMBERED = 4096  # last writes that are remembered

log = logging.getLogger(__name__)

_Key = tuple[JobUid, UseSource]


def _utc_now() -> datetime:
    return datetime.now(UTC)


class Uses:
    """The uses of jobs that one process has seen."""

    def __init__(self, store: Callable[[], Idling], clock: Callable[[], datetime] = _utc_now) -> None:
        self._store = store
        self._clock = clock
        self._seen: dict[_Key, datetime] = {}
        self._due: dict[_Key, float] = {}
        self._written: dict[_Key, float] = {}
        self._news = asyncio.Event()

    def note(self, job: JobUid, source: UseSource, timeout_s: int) -> None:
        """The job is used now. ``timeout_s``: its idle timeout. Cheap enough to be called for every message."""
        key = job, source
        self._seen[key] = self._clock()
        if key not in self._due:
            last = self._written.get(key)
            pause = min(MOST_PAUSE_S, timeout_s / _PARTS)
            self._due[key] = 0.0 if last is None else last + pause
            self._news.set()

    async def run(self) -> None:
        """Write until cancelled; a failing store is logged and tried again."""
        loop = asyncio.get_running_loop()
        while True:
            wait = min(self._due.values(), default=float("inf")) - loop.time()
            try:
                async with asyncio.timeout(None if wait == float("inf") else max(0.0, wait)):
                    await self._news.wait()
            except TimeoutError:
                pass
            self._news.clear()
            if not await self._write([key for key, at in self._due.items() if at <= loop.time()]):
                await asyncio.sleep(RETRY_S)

    async def finish(self) -> None:
        """Write what is noted, once: the process ends."""
        if not await self._write(list(self._due)):
            log.error("the store does not answer; the last uses of %d jobs are not written", len(self._due))

    async def _write(self, keys: list[_Key]) -> bool:
        if not keys:
            return True
        uses = {key: self._seen[key] for key in keys}
        try:
            await self._store().note(uses)
        except Unavailable as exc:
            log.warning("the store does not answer (%s); uses of jobs wait", exc.message)
            return False
        now = asyncio.get_running_loop().time()
        for key, at in uses.items():
            del self._due[key]
            self._written[key] = now
            if self._seen[key] == at:
                del self._seen[key]
            else:  # used again while that was written
                self._due[key] = now + MOST_PAUSE_S / _PARTS
        while len(self._written) > REMEMBERED:
            del self._written[next(iter(self._written))]
        return True
