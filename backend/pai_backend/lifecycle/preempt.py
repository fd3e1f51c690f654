"""Making way for a job that comes first: running tasks are stopped, and run again free of charge.

A task that is asked to make way stops like any other. Only if it is then stopped does it count as preempted: one that
ends by itself in that moment has ended by itself. Source: OpenPAI, where preemption is a transient failure of the
platform (exit -101) that costs no retry.
"""

from __future__ import annotations

from collections.abc import Callable

from pai_backend.lifecycle.events import Displaced, Preempted
from pai_backend.lifecycle.table import Happening, advance
from pai_backend.model.ids import TaskUid
from pai_backend.model.job import Job, Phase, Task, TaskExit
from pai_backend.model.text import Text


def make_way(job: Job, event: Preempted) -> Job:
    """The job with these of its tasks asked to stop. Tasks that are over, or stop already, are left as they are."""
    by = Text("{job}, priority {priority}", job=event.by, priority=event.priority)
    return _changed(job, event.uids, lambda task: _asked(task, by))


def as_preempted(task: Task, exit_: TaskExit) -> TaskExit:
    """The exit of a task, told as what it is when it was stopped to make way."""
    if not task.preempted_by or exit_.reason != "stopped":
        return exit_
    return exit_.model_copy(update={"reason": "preempted", "message": Text("preempted by {by}", by=task.preempted_by)})


def displaced(job: Job, event: Displaced) -> Job:
    """The job with these of its tasks running on opportunistically, or on their quota again."""

    def restated(task: Task) -> Task:
        place = task.placement
        if place is None or place.displaced is event.displaced:
            return task
        return task.model_copy(update={"placement": place.model_copy(update={"displaced": event.displaced})})

    return _changed(job, event.uids, restated)


def _asked(task: Task, by: Text) -> Task:
    if not task.holds_place or task.phase is Phase.STOPPING:
        return task
    after = task.model_copy(update={"phase": advance(task.phase, Happening.STOP), "preempted_by": by})
    return after.model_copy(update={"released_by": "preempted"}) if task.phase is Phase.KEPT else after


def _changed(job: Job, uids: tuple[TaskUid, ...], change: Callable[[Task], Task]) -> Job:
    tasks = tuple(change(task) if task.uid in uids else task for task in job.tasks)
    return job.model_copy(update={"tasks": tasks})
