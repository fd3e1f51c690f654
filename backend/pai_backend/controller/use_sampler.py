"""Samples what running tasks use, keeps it as series, and tells owners of GPUs that do nothing.

A round asks the engine once for all tasks. What it cannot tell leaves a gap: a gap is never taken for idleness, and
neither is the time before the first sample. Nothing here can end the controller but the loss of its lease.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections import Counter, deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, Final

from pai_backend.controller.reconciler import Reconciler
from pai_backend.controller.underuse import UnderuseKeeper
from pai_backend.engine.base import Engine, EngineError, TaskUse, UseMeter
from pai_backend.engine.use_series import UseSample, UseSeries, sampled
from pai_backend.model.duration import duration_text
from pai_backend.model.ids import JobUid, TaskUid, job_of
from pai_backend.model.job import Phase
from pai_backend.model.text import Text
from pai_backend.store.base import NewEvent

if TYPE_CHECKING:
    from pai_backend.store.sql import Store

log = logging.getLogger(__name__)

SWEEP_S: Final = 3600.0
_COVERED: Final = 0.9
"""Of the samples of a window so many must be there for GPUs to count as idle for all of it."""


class IdleWindow:
    """The idle GPUs of one task at each of the last samples: how many were idle at all of them. Pure."""

    def __init__(self, window_s: float, sample_s: float) -> None:
        self._window_s, self._expected = window_s, max(2.0, _COVERED * window_s / sample_s)
        self._seen: deque[tuple[int, int]] = deque()

    def add(self, sample: UseSample) -> None:
        """Note a sample; one without a word on GPUs is a gap."""
        if sample.idle_gpus is None:
            return
        self._seen.append((sample.at, sample.idle_gpus))
        while len(self._seen) > 1 and self._seen[1][0] <= sample.at - self._window_s:
            self._seen.popleft()

    @property
    def idle(self) -> int:
        """GPUs that did nothing for the whole window; 0 while it is not covered, and for a window of no length."""
        if not self._window_s or not self._seen or self._seen[-1][0] - self._seen[0][0] < self._window_s:
            return 0
        return min(idle for _, idle in self._seen) if len(self._seen) >= self._expected else 0


@dataclass
class Sampling:
    """How this process samples, and the idle GPUs that it ``found`` last, by job."""

    series: UseSeries
    sample_s: float = 60.0
    idle_gpus_s: float = 7200.0
    found: Mapping[JobUid, int] = field(default_factory=dict)

    def idle_gpus(self) -> Mapping[JobUid, int]:
        """GPUs that did nothing for ``idle_gpus_s``, by job."""
        return self.found


class UseSampler:
    """That of one tenure."""

    def __init__(
        self,
        store: Store,
        tenure: Reconciler,
        engine: Engine,
        sampling: Sampling,
        *,
        epoch: int,
        clock: Callable[[], datetime],
        underuse: UnderuseKeeper | None = None,
    ) -> None:
        """``underuse`` judges by each round."""
        self._underuse = underuse
        self._store, self._tenure, self._engine, self._sampling = store, tenure, engine, sampling
        self._epoch, self._clock = epoch, clock
        self._windows: dict[TaskUid, IdleWindow] = {}
        self._told: set[JobUid] = set()
        self._trouble = ""

    async def run(self) -> None:
        """Sample for ever. Raises Fenced when another controller has taken over, Unavailable without a store."""
        if not isinstance(self._engine, UseMeter):
            return
        loop = asyncio.get_running_loop()
        swept, due = float("-inf"), loop.time()
        while True:
            if loop.time() - swept >= SWEEP_S:
                await asyncio.to_thread(self._sampling.series.sweep, time.time())
                swept = loop.time()
            if self._tenure.knows_nodes:
                await self.sample(self._engine)
            due = max(due + self._sampling.sample_s, loop.time())
            await asyncio.sleep(due - loop.time())

    async def sample(self, meter: UseMeter) -> None:
        """One round."""
        places = {
            task.uid: task.placement
            for job in self._tenure.jobs.values()
            for task in job.tasks
            if task.phase is Phase.RUNNING and task.placement is not None
        }
        for gone in self._windows.keys() - places.keys():
            del self._windows[gone]
            self._sampling.series.finished(gone)
        try:
            uses = await meter.uses(places) if places else {}
        except EngineError as error:
            self._complain("read", str(error))
            return
        at = int(self._clock().timestamp())
        await asyncio.to_thread(self._keep, uses, at)
        await self._tell()
        if self._underuse is not None:
            await self._underuse.look(at, {uid: sampled(at, use) for uid, use in uses.items()})

    def _keep(self, uses: Mapping[TaskUid, TaskUse], at: int) -> None:
        """Write a round. Where the disk refuses, there is a gap, and GPUs are watched all the same."""
        failed = ""
        for uid, use in uses.items():
            sample = sampled(at, use)
            try:
                if uid not in self._windows:
                    self._recall(uid, at)
                self._sampling.series.append(uid, sample)
            except OSError as error:
                failed = str(error)
            self._window(uid).add(sample)
        self._complain("written", failed)

    def _complain(self, act: str, why: str) -> None:
        """Log a trouble when it begins."""
        if why and why != self._trouble:
            log.warning("what tasks use cannot be %s: %s", act, why)
        self._trouble = why

    def _window(self, uid: TaskUid) -> IdleWindow:
        if uid not in self._windows:
            self._windows[uid] = IdleWindow(self._sampling.idle_gpus_s, self._sampling.sample_s)
        return self._windows[uid]

    def _recall(self, uid: TaskUid, at: int) -> None:
        """Take up what an earlier controller has sampled, and told. Raises OSError."""
        sampling = self._sampling
        found = sampling.series.read(uid, at - int(sampling.idle_gpus_s + 3 * sampling.sample_s) - 1)
        window = self._window(uid)
        for sample in found:
            window.add(sample)
        if window.idle:
            self._told.add(job_of(uid))

    async def _tell(self) -> None:
        """Tell the owners of jobs with idle GPUs once, until none of the job's is idle any longer.

        Tasks of a job start one after the other, so it waits until no further GPU joins.
        """
        idle: Counter[JobUid] = Counter()
        for uid, window in self._windows.items():
            if window.idle:
                idle[job_of(uid)] += window.idle
        before, self._sampling.found = self._sampling.found, idle
        settled = {uid for uid, count in idle.items() if before.get(uid) == count}
        told = {uid: self._event(idle[uid]) for uid in settled - self._told}
        if told:
            await self._store.idling.keep({}, told, self._clock(), self._epoch)
        self._told = (self._told | settled) & idle.keys()

    def _event(self, gpus: int) -> NewEvent:
        idle_s = self._sampling.idle_gpus_s
        time = duration_text(round(idle_s))
        text = Text(
            "{gpus} GPUs have done nothing for {time}. Stop the job if it does not need them.", gpus=gpus, time=time
        )
        if gpus == 1:
            text = Text("1 GPU has done nothing for {time}. Stop the job if it does not need them.", time=time)
        return NewEvent("job.gpus-idle", {"gpus": gpus, "idle_s": idle_s, "text": text})
