"""Steps of a job's life for tests of the pure state machine: placed, running, ended, forgotten."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timedelta

from pai_backend.lifecycle.events import Look, Placed, TaskExited, TaskForgotten, TaskRunning
from pai_backend.lifecycle.step import step
from pai_backend.model.job import Desired, Job, Phase, TaskExit
from pai_backend.model.node import Placement
from pai_backend.testing.builders import T0

HERE = Placement(node="carol", address="127.0.0.1", machine="laptop")


def placed(job: Job, numbers: Iterable[int] | None = None, now: datetime = T0) -> Job:
    """The job with all its tasks, or those of these numbers, given a place."""
    chosen = job.tasks if numbers is None else [job.tasks[number] for number in numbers]
    return step(job, Placed({task.uid: HERE for task in chosen}), now)[0]


def running(job: Job, numbers: Iterable[int] | None = None, now: datetime = T0) -> Job:
    """The job with these tasks placed and running since a second later."""
    numbers = None if numbers is None else list(numbers)
    job = placed(job, numbers, now)
    for number in range(len(job.tasks)) if numbers is None else numbers:
        job, _ = step(job, TaskRunning(job.tasks[number].uid, now + timedelta(seconds=1)), now)
    return job


def ended(
    job: Job,
    number: int = 0,
    code: int | None = 0,
    reason: str = "exited",
    *,
    signal: int | None = None,
    after_s: float = 2,
) -> Job:
    """The job after the end of one task, ``after_s`` seconds after the beginning of all."""
    at = T0 + timedelta(seconds=after_s)
    gone = TaskExit(code=code if signal is None else None, signal=signal, reason=reason, at=at)
    return step(job, TaskExited(job.tasks[number].uid, gone), at)[0]


def lost(job: Job, number: int = 0) -> Job:
    """The job after one task was lost by the platform."""
    return ended(job, number, None, "lost")


def forgotten(job: Job, after_s: float = 3) -> Job:
    """The job after the engine has cleaned up every task that has ended."""
    for task in job.tasks:
        if task.phase is Phase.ENDED and not task.forgotten:
            job, _ = step(job, TaskForgotten(task.uid), T0 + timedelta(seconds=after_s))
    return job


def looked_at(job: Job, now: datetime) -> Job:
    """The job when its time comes."""
    return step(job, Look(), now)[0]


def asked_to_stop(job: Job) -> Job:
    """The job once it has heard that it is to stop."""
    return looked_at(job.model_copy(update={"desired": Desired.STOP}), T0 + timedelta(seconds=4))
