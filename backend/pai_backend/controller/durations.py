"""Asks jobs to stop that have run for as long as they may, during one tenure.

When that is, is decided in ``lifecycle.durations``. The stop is an intent like a user's, and takes the same way.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from pai_backend.controller.reconciler import SAFETY_S, Reconciler
from pai_backend.lifecycle.durations import end_of

if TYPE_CHECKING:
    from pai_backend.store.sql import Store

log = logging.getLogger(__name__)


class DurationKeeper:
    """The ends of all jobs that may not run until they are done. ``longest_run`` is that of a virtual cluster."""

    def __init__(
        self,
        store: Store,
        tenure: Reconciler,
        longest_run: Callable[[str], timedelta | None],
        *,
        epoch: int,
        clock: Callable[[], datetime],
    ) -> None:
        self._store = store
        self._tenure = tenure
        self._longest_run = longest_run
        self._epoch = epoch
        self._clock = clock

    async def run(self) -> None:
        """Stop them, for ever. Raises Fenced when another controller has taken over, Unavailable without a store."""
        while True:
            now = self._clock()
            found = [(end_of(job, self._longest_run(job.virtual_cluster)), job) for job in self._tenure.jobs.values()]
            ends = [(end, job) for end, job in found if end is not None]
            for end, job in ends:
                if end.at <= now and await self._store.jobs.stop_overdue(
                    job.uid, job.attempt, now, end.sentence, self._epoch
                ):
                    log.info("job %s is asked to stop: %s", job.uid, end.sentence)
            rests = [(end.at - now).total_seconds() for end, _ in ends if end.at > now]
            await asyncio.sleep(min([SAFETY_S, *rests]))
