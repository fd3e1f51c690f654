"""Applies the idle rules of virtual clusters during one tenure: warns, takes warnings back, asks jobs to stop.

What is decided is decided in ``lifecycle.underuse``; the samples are those of ``use_sampler``, which calls :meth:`look`
after each round. What an earlier controller has sampled is read from the kept series.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from pai_backend.controller.reconciler import Reconciler
from pai_backend.engine.use_series import UseSample, UseSeries
from pai_backend.lifecycle.underuse import GpuSample, IdleRule, UnderuseTurn, judged, rule_of, stop_sentence
from pai_backend.model.ids import JobUid, TaskUid
from pai_backend.model.job import Desired, Job, Phase, Task
from pai_backend.model.rule_clock import UnderuseClock
from pai_backend.store.base import NewEvent
from pai_backend.store.rule_clocks import RuleKind

if TYPE_CHECKING:
    from pai_backend.store.sql import Store

log = logging.getLogger(__name__)

UNDERUSED, OVER = "job.underused", "job.underused-over"
"""Types of events, see docs/idle.md."""
_KEPT_WINDOWS = 2
"""Of a job's samples so many windows are kept: one to judge by, and one in which GPUs could not be read."""


class UnderuseKeeper:
    """How the idle rules stand with all jobs."""

    def __init__(
        self,
        store: Store,
        tenure: Reconciler,
        series: UseSeries,
        *,
        sample_s: float,
        epoch: int,
        clock: Callable[[], datetime],
    ) -> None:
        self._store, self._tenure, self._series = store, tenure, series
        self._pause = timedelta(seconds=sample_s)
        self._epoch, self._clock = epoch, clock
        self._samples: dict[JobUid, deque[GpuSample]] = {}
        self._clocks: dict[JobUid, UnderuseClock] = {}

    async def look(self, at: int, round_: Mapping[TaskUid, UseSample]) -> None:
        """Judge all jobs after a round of samples. Raises Fenced, Unavailable."""
        watched = {job.uid: job for job in self._tenure.jobs.values() if self._is_watched(job)}
        for gone in (self._samples.keys() | self._clocks.keys()) - watched.keys():
            self._samples.pop(gone, None)
            self._clocks.pop(gone, None)
        if unknown := [uid for uid in watched if uid not in self._clocks]:
            self._clocks.update(await self._store.rule_clocks.underuse(unknown))
        for job in watched.values():
            tasks, began = _measured(job), _began(job)
            if not tasks or began is None:
                continue
            rule = self._rule(job)
            if job.uid not in self._samples:
                self._samples[job.uid] = await asyncio.to_thread(self._recalled, tasks, at, rule)
            sample = _sample(at, {uid: round_.get(uid) for uid in tasks}, tasks)
            kept = self._samples[job.uid]
            kept.append(sample)
            if rule is not None:
                since = sample.at - _KEPT_WINDOWS * (rule.window + rule.grace)
                while kept[0].at < since:
                    kept.popleft()
            await self._judge(job, rule, began)

    def _rule(self, job: Job) -> IdleRule | None:
        kept = self._tenure.vc_rules.get(job.virtual_cluster)
        return None if kept is None else rule_of(kept.rules)

    def _is_watched(self, job: Job) -> bool:
        """Whether the rule holds for the job, or it has been warned by one that is gone."""
        goes_on = not job.state.final and job.verdict is None and job.desired is Desired.START
        return goes_on and (self._rule(job) is not None or job.uid in self._clocks)

    def _recalled(self, tasks: Mapping[TaskUid, int], at: int, rule: IdleRule | None) -> deque[GpuSample]:
        """What was sampled before this controller, or before the rule was set. A disk that refuses leaves a gap."""
        if rule is None:
            return deque()
        since = at - int((_KEPT_WINDOWS * (rule.window + rule.grace)).total_seconds())
        rounds: dict[int, dict[TaskUid, UseSample]] = {}
        firsts: dict[TaskUid, int] = {}
        for uid in tasks:
            try:
                found = self._series.read(uid, since)
            except OSError as error:
                log.warning("what task %s used cannot be read: %s", uid, error)
                return deque()
            for sample in found:
                if sample.at < at:
                    rounds.setdefault(sample.at, {})[uid] = sample
            firsts[uid] = found[0].at if found else at
        return deque(
            _sample(moment, {uid: rounds[moment].get(uid) for uid in tasks if firsts[uid] <= moment}, tasks)
            for moment in sorted(rounds)
        )

    async def _judge(self, job: Job, rule: IdleRule | None, began: datetime) -> None:
        stored = before = self._clocks.get(job.uid)
        if before is None or before.attempt != job.attempt:
            before = UnderuseClock(attempt=job.attempt, counted_from=began)
        now = self._clock()
        clock, turn = judged(before, self._samples[job.uid], rule, began, self._pause)
        self._clocks[job.uid] = clock
        if turn is UnderuseTurn.STOP:
            assert rule is not None
            reason = stop_sentence(rule)
            if await self._store.rule_clocks.stop_underused(job.uid, job.attempt, reason, now, self._epoch):
                log.info("job %s is asked to stop: %s", job.uid, reason)
        elif turn is not UnderuseTurn.NONE or (stored is not None and clock != stored):
            told = None if turn is UnderuseTurn.NONE else _event(clock, turn, rule)
            await self._store.rule_clocks.keep(job.uid, RuleKind.UNDERUSE, clock, told, now, self._epoch)


def _event(clock: UnderuseClock, turn: UnderuseTurn, rule: IdleRule | None) -> NewEvent:
    if turn is UnderuseTurn.OVER or rule is None:
        return NewEvent(OVER, {})
    stop_at = None if clock.stop_at is None else clock.stop_at.isoformat()
    window_s = int(rule.window.total_seconds())
    told = {"below_percent": rule.below, "for_s": window_s, "stop_at": stop_at, "text": clock.text}
    return NewEvent(UNDERUSED, told)


def _measured(job: Job) -> dict[TaskUid, int]:
    """The running tasks that have GPUs, and how many."""
    return {task.uid: gpus for task in job.tasks if task.phase is Phase.RUNNING and (gpus := _gpus(task))}


def _gpus(task: Task) -> int:
    return len(task.placement.gpus) if task.placement is not None else 0


def _began(job: Job) -> datetime | None:
    return min((task.started_at for task in job.tasks if task.started_at is not None), default=None)


def _sample(at: int, found: Mapping[TaskUid, UseSample | None], gpus: Mapping[TaskUid, int]) -> GpuSample:
    """That of the job at one round: the mean of all its GPUs, unless one of them could not be read."""
    worked, count = 0.0, 0
    for uid, sample in found.items():
        if sample is None or sample.gpu_percent is None or sample.is_partial:
            return GpuSample(datetime.fromtimestamp(at, UTC), None)
        worked, count = worked + sample.gpu_percent * gpus[uid], count + gpus[uid]
    return GpuSample(datetime.fromtimestamp(at, UTC), worked / count if count else None)
