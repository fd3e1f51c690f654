"""Warns the owners of jobs that have almost run for as long as they may, and asks those to stop that have.

When that is, is decided in ``lifecycle.durations``. The stop is an intent like a user's, and takes the same way. Which
end the owner was warned of is stored with the warning, so that a restart repeats none.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping
from datetime import datetime
from typing import TYPE_CHECKING

from pai_backend.controller.reconciler import SAFETY_S, Reconciler
from pai_backend.lifecycle.durations import End, end_of, notice, warning
from pai_backend.model.ids import JobUid
from pai_backend.model.job import Job
from pai_backend.model.rule_clock import EndWarned
from pai_backend.model.vc_rules import LongestRun
from pai_backend.store.base import NewEvent
from pai_backend.store.rule_clocks import RuleKind

if TYPE_CHECKING:
    from pai_backend.store.sql import Store

log = logging.getLogger(__name__)

ENDING = "job.ending-soon"
"""Type of an event, see docs/events.md."""


class DurationKeeper:
    """The ends of all jobs that may not run until they are done, during one tenure.

    ``longest_run`` is that of a virtual cluster, as it is now.
    """

    def __init__(
        self,
        store: Store,
        tenure: Reconciler,
        longest_run: Callable[[str], LongestRun | None],
        *,
        epoch: int,
        clock: Callable[[], datetime],
    ) -> None:
        self._store = store
        self._tenure = tenure
        self._longest_run = longest_run
        self._epoch = epoch
        self._clock = clock
        self._warned: dict[JobUid, EndWarned | None] = {}

    async def run(self) -> None:
        """Stop them, for ever. Raises Fenced when another controller has taken over, Unavailable without a store."""
        while True:
            rest = await self.look()
            await asyncio.sleep(rest)

    async def look(self) -> float:
        """Look at all jobs once; seconds until the next look. Raises as :meth:`run`."""
        now = self._clock()
        jobs, bookings = self._tenure.jobs.values(), self._tenure.bookings
        found = [(end_of(job, self._longest_run(job.virtual_cluster), bookings), job) for job in jobs]
        ends = [(end, job) for end, job in found if end is not None]
        await self._take_back({job.uid: end for end, job in ends}, now)
        near = [(end, job) for end, job in ends if end.at - notice(end) <= now]
        if unknown := [job.uid for _, job in near if job.uid not in self._warned]:
            kept = await self._store.rule_clocks.ending(unknown)
            self._warned.update({uid: kept.get(uid) for uid in unknown})
        for end, job in near:
            if end.at <= now:
                await self._stop(job, end, now)
            else:
                await self._warn(job, end, now)
        moments = [moment for end, _ in ends for moment in (end.at - notice(end), end.at) if moment > now]
        return min([SAFETY_S, *((moment - now).total_seconds() for moment in moments)])

    async def _take_back(self, ends: Mapping[JobUid, End], now: datetime) -> None:
        """Forget warnings of jobs that are over, and take those back whose end has moved away."""
        for uid, warned in [*self._warned.items()]:
            if uid not in self._tenure.jobs:
                del self._warned[uid]
            elif warned is not None and warned.text:
                end = ends.get(uid)
                if end is None or end.at - notice(end) > now:
                    cleared = warned.model_copy(update={"text": ""})
                    await self._store.rule_clocks.keep(uid, RuleKind.ENDING, cleared, None, now, self._epoch)
                    self._warned[uid] = cleared

    async def _warn(self, job: Job, end: End, now: datetime) -> None:
        """Tell the owner, once of each end: it moves when the rule of the virtual cluster is changed."""
        warned = EndWarned(attempt=job.attempt, ends_at=end.at, text=warning(end))
        if self._warned[job.uid] == warned:
            return
        told = {"attempt": job.attempt, "ends_at": end.at.isoformat(), "text": warned.text}
        event = NewEvent(ENDING, told)
        if await self._store.rule_clocks.keep(job.uid, RuleKind.ENDING, warned, event, now, self._epoch):
            self._warned[job.uid] = warned

    async def _stop(self, job: Job, end: End, now: datetime) -> None:
        if await self._store.jobs.stop_overdue(job.uid, job.attempt, now, end.sentence, self._epoch):
            log.info("job %s is asked to stop: %s", job.uid, end.sentence)
