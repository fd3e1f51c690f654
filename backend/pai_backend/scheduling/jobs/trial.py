"""Would a job start now? Tried in copies of the cluster, before the job is submitted.

Pure. A copy is rebuilt once for a state of the cluster, with all who wait in line, and tried jobs leave it as it was. A
job that does not even start on the same nodes with nothing on them never starts.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from pai_backend.model.job import Job
from pai_backend.model.waiting import Waiting
from pai_backend.scheduling.jobs.change import Queued, in_order
from pai_backend.scheduling.jobs.placer import Placer
from pai_backend.scheduling.jobs.why import why


class Outcome(StrEnum):
    """What becomes of a job that is submitted now."""

    STARTS = "starts"
    WAITS = "waits"
    NEVER = "never"
    """It does not start on these nodes, even with no other job there."""


@dataclass(frozen=True)
class Tried:
    """What a trial has found; ``waiting`` says why the job does not start, where there is more to say."""

    outcome: Outcome
    waiting: Waiting | None = None


class Trials:
    """Tries jobs on one state of a cluster. One at a time: a trial changes the copy, and puts it back."""

    def __init__(self, copy: Callable[[Sequence[Job]], Placer], jobs: Sequence[Job], waiting: Sequence[Queued]) -> None:
        """``copy`` rebuilds the cluster with what jobs hold; ``jobs`` are all that have not ended."""
        self._copy = copy
        self._jobs = jobs
        self._waiting = waiting
        self._now: Placer | None = None
        self._empty: Placer | None = None

    def tried(self, job: Job, now: datetime) -> Tried:
        """What would become of a job that is not submitted yet."""
        if self._empty is None:
            self._empty = self._copy(())
        outcome, waiting, _ = _try(self._empty, job, now)
        if outcome is not Outcome.STARTS:
            return Tried(Outcome.NEVER, waiting)
        if self._now is None:
            self._now = self._in_line(now)
        outcome, waiting, is_as_before = _try(self._now, job, now)
        if not is_as_before:
            self._now = None
        return Tried(outcome, waiting)

    def _in_line(self, now: datetime) -> Placer:
        """The cluster with all who wait, each of whom was asked."""
        placer = self._copy(self._jobs)
        for each in in_order(self._waiting):
            placer.wait(each.job, each.tasks)
        while placer.advance(now).more:
            pass
        return placer


def _try(placer: Placer, job: Job, now: datetime) -> tuple[Outcome, Waiting | None, bool]:
    """What becomes of the job there, why it waits, and whether the placer is as it was before."""
    placer.wait(job, job.tasks)
    try:
        units = placer.waiting(job.uid)
        if all(placer.queue.would_start(unit.entry, now) for unit in units):
            return Outcome.STARTS, None, True
        more, others = True, False
        while more:
            answer = placer.advance(now)
            others = others or bool(answer.started or answer.kept)
            more = answer.more
        if not placer.waiting(job.uid):
            return Outcome.STARTS, None, False
        return Outcome.WAITS, why(placer, job.uid, now), not others
    finally:
        placer.forget(job.uid)
