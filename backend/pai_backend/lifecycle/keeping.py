"""Keeping a failed task of a debug job, so that its user can look around in it, and letting it go again.

A task is kept when its own command failed and nothing has asked it to stop. It has failed all the same: completion
counts it at once, but what follows (a retry, the end of the job) waits until it is released by its user, by the
clock, or by a stop of the job. Source: OpenPAI v1 jobEnvs.isDebug, which kept the container for a week and showed the
job as running meanwhile; users found that confusing, hence a phase of its own.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Final

from pai_backend.lifecycle.exits import explain
from pai_backend.lifecycle.table import Happening, advance
from pai_backend.model.job import Desired, Job, Phase, Task, TaskExit

KEEP: Final = timedelta(seconds=604_800)
"""How long a task is kept unless configured otherwise. Source: OpenPAI v1, a week."""


def is_kept(job: Job, task: Task, exit_: TaskExit, keep: timedelta) -> bool:
    """Whether a task that ends so is kept. What the platform took away has nothing left that could be entered."""
    if not job.spec.debug or not keep or job.desired is Desired.STOP or task.phase is not Phase.RUNNING:
        return False
    return exit_.status != 0 and exit_.reason != "stopped" and not explain(exit_).kind.free


def let_go(job: Job, now: datetime) -> Job:
    """Release the kept tasks that their user has let go, and those whose time is over."""
    if not job.kept:
        return job.model_copy(update={"released": ()}) if job.released else job
    tasks = tuple(_let_go(job, task, now) for task in job.tasks)
    return job.model_copy(update={"tasks": tasks, "released": ()})


def released(task: Task, by: str) -> Task:
    """A kept task after its release; its exit stays what it was."""
    return task.model_copy(update={"phase": advance(task.phase, Happening.RELEASED), "released_by": by})


def kept_sentence(job: Job) -> str:
    """Why the job is not over though nothing of it runs; empty when nothing is kept."""
    if not job.kept:
        return ""
    more = f" and {len(job.kept) - 1} more" if len(job.kept) > 1 else ""
    until = min(task.kept_until for task in job.kept if task.kept_until is not None)
    whom = f"task {job.kept[0].name}{more}"
    return f"{whom} failed and is kept for debugging until {until:%Y-%m-%d %H:%M} UTC; `pai release` lets it go"


def _let_go(job: Job, task: Task, now: datetime) -> Task:
    if task.phase is not Phase.KEPT:
        return task
    if task.uid in job.released:
        return released(task, "user")
    if task.kept_until is not None and now >= task.kept_until:
        return released(task, "clock")
    return task
