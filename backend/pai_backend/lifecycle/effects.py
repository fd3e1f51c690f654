"""What must be done outside because a job is as it is.

Open effects are a function of the job, so a crash can lose none: after a restart the same function
gives the same list, and each effect may run twice (the engine interface is idempotent by uid).

A running task of an incremental job has a standing effect: that its peers' addresses are told to it. It carries the
edition of the address book, so a change of any address opens a new one, and after a restart all are told again.
"""

from __future__ import annotations

from dataclasses import dataclass

from pai_backend.model.ids import TaskUid
from pai_backend.model.job import Job, Phase


@dataclass(frozen=True)
class Start:
    """Start this task as placed."""

    uid: TaskUid


@dataclass(frozen=True)
class Stop:
    """Ask this task to end."""

    uid: TaskUid


@dataclass(frozen=True)
class Forget:
    """The exit is recorded: let the engine remove what is left."""

    uid: TaskUid


@dataclass(frozen=True)
class Refresh:
    """Tell this running task the addresses of its peers as they are now."""

    uid: TaskUid
    edition: int


Effect = Start | Stop | Forget | Refresh


def open_effects(job: Job) -> tuple[Effect, ...]:
    """Everything that is to be done for this job now, in task order."""
    effects: list[Effect] = []
    told = None if job.spec.scheduling.gang_allocation or len(job.tasks) == 1 else edition(job)
    for task in job.tasks:
        if task.phase in (Phase.STARTING, Phase.PULLING):
            effects.append(Start(task.uid))
        elif task.phase is Phase.RUNNING and told is not None:
            effects.append(Refresh(task.uid, told))
        elif task.phase is Phase.STOPPING:
            effects.append(Stop(task.uid))
        elif task.phase is Phase.ENDED and not task.forgotten:
            effects.append(Forget(task.uid))
    return tuple(effects)


def edition(job: Job) -> int:
    """A number that grows whenever a task of the job gets or loses its address.

    A slot goes through: run 0 without a place, with one, run 1 without, with one, and so on; it never goes back.
    """
    return sum(2 * task.attempt + (task.placement is not None) for task in job.tasks)
