"""Deleting jobs: those that were asked for, and finished ones that are not to be kept any longer.

The store has deleted a job's rows, or does so here once its tasks are forgotten; what the engine keeps goes after
them. A mark in the store is closed last, so that a crash at any instant is followed by the rest.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from datetime import datetime
from typing import TYPE_CHECKING, Final

from pai_backend.engine.base import Engine, EngineError
from pai_backend.store.deletion import Deletion, DeletionCause, Retention

if TYPE_CHECKING:
    from pai_backend.engine.use_series import UseSeries
    from pai_backend.store.sql import Store

log = logging.getLogger(__name__)

SWEEP_S: Final = 60.0
"""Time between two looks for jobs that are not to be kept, and for deletions whose engine was away."""
REST_S: Final = 0.5
"""Changes of the store that come closer together cost one look."""
AT_ONCE: Final = 50
"""Jobs whose rows are deleted in one transaction, or whose marks are read at once."""
IN_A_SWEEP: Final = 1000
"""Jobs that retention deletes before others have their turn."""


class Deleter:
    """That of one tenure."""

    def __init__(
        self,
        store: Store,
        engine: Engine,
        keep: Retention,
        *,
        series: UseSeries | None = None,
        epoch: int,
        clock: Callable[[], datetime],
    ) -> None:
        self._store, self._engine, self._keep, self._series = store, engine, keep, series
        self._epoch, self._clock = epoch, clock

    async def run(self) -> None:
        """Delete for ever. Raises Unavailable and Fenced, which end the tenure."""
        loop = asyncio.get_running_loop()
        mark, swept = -1, float("-inf")
        while True:
            mark = await self._store.changes.wait(mark, SWEEP_S)
            if loop.time() - swept >= SWEEP_S:
                await self.retain()
                swept = loop.time()
            await self.finish()
            await asyncio.sleep(REST_S)

    async def finish(self) -> None:
        """Go on with all deletions that are under way."""
        last: Deletion | None = None
        while page := await self._store.deletion.pending(last, AT_ONCE):
            last = page[-1]
            waiting = [each.job for each in page if not each.gone]
            gone = {each.job for each in page if each.gone}
            if waiting:
                gone |= set(await self._store.deletion.remove(waiting, DeletionCause.USER, self._clock(), self._epoch))
            for job in sorted(gone):
                try:
                    await self._engine.erase(job)
                    if self._series is not None:
                        await asyncio.to_thread(self._series.erase, job)
                except EngineError as error:
                    log.warning("job %s is deleted; removing the rest is tried again: %s", job, error)
                    continue
                await self._store.deletion.close(job, self._clock(), self._epoch)

    async def retain(self) -> int:
        """Delete finished jobs that are not to be kept, and forget old deletions; returns how many jobs went."""
        deletion, deleted = self._store.deletion, 0
        await deletion.sweep(self._clock(), self._epoch)
        while deleted < IN_A_SWEEP:
            uids = await deletion.expired(self._keep, self._clock(), AT_ONCE)
            gone = await deletion.remove(uids, DeletionCause.RETENTION, self._clock(), self._epoch) if uids else []
            deleted += len(gone)
            if not gone:
                break
        if deleted:
            log.info(
                "%d finished jobs were deleted: more than jobs.keep_days, keep_number or keep_bytes allow", deleted
            )
        return deleted
