"""Short ways to let a placer decide about a job."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from pai_backend.model.ids import TaskUid
from pai_backend.model.job import Job, Task
from pai_backend.model.node import Placement
from pai_backend.scheduling.jobs.answers import Round, Waits
from pai_backend.scheduling.jobs.placer import Placer
from pai_backend.scheduling.jobs.unit import Unit
from pai_backend.testing.builders import T0


def served(placer: Placer, job: Job, tasks: Sequence[Task] | None = None, *, now: datetime = T0) -> Round:
    """Let the job's tasks wait, and the queue decide until nothing is left to ask; all its decisions, as written."""
    placer.catch_up()
    placer.wait(job, job.tasks if tasks is None else tasks)
    started: list[Unit] = []
    kept: list[Unit] = []
    more = True
    while more:
        found = placer.advance(now)
        for unit in (*found.started, *found.kept):
            placer.written(unit)
        started += found.started
        kept += found.kept
        more = found.more
    return Round(tuple(started), tuple(kept))


def placed(placer: Placer, job: Job, tasks: Sequence[Task] | None = None) -> dict[TaskUid, Placement]:
    """The places of the job's tasks that start at once."""
    found = served(placer, job, tasks)
    return {uid: place for unit in found.started if unit.job == job.uid for uid, place in placer.places(unit).items()}


def refused(placer: Placer, job: Job) -> Waits:
    """Why the job's first tasks without a place wait, once the queue has decided."""
    served(placer, job)
    return placer.wait_reason(placer.waiting(job.uid)[0])
