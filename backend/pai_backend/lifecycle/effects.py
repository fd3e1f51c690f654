"""What must be done outside because a job is as it is.

Open effects are a function of the job, so a crash can lose none: after a restart the same function
gives the same list, and each effect may run twice (the engine interface is idempotent by uid).
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


Effect = Start | Stop | Forget


def open_effects(job: Job) -> tuple[Effect, ...]:
    """Everything that is to be done for this job now, in task order."""
    effects: list[Effect] = []
    for task in job.tasks:
        if task.phase in (Phase.STARTING, Phase.PULLING):
            effects.append(Start(task.uid))
        elif task.phase is Phase.STOPPING:
            effects.append(Stop(task.uid))
        elif task.phase is Phase.ENDED and not task.forgotten:
            effects.append(Forget(task.uid))
    return tuple(effects)
