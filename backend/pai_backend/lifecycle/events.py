"""What can happen to a job, as values. Those about one task carry its uid."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from pai_backend.model.ids import TaskUid
from pai_backend.model.job import TaskExit
from pai_backend.model.node import Placement


@dataclass(frozen=True)
class Look:
    """Nothing new but the time, or an intent already written on the job (``desired``)."""


@dataclass(frozen=True)
class Waiting:
    """The job cannot go on now, for this reason. ``reserved`` are all places kept for it; None: as before.

    ``put_off_s``: by so much the rules of the queue put off its turn, if they do.
    """

    why: str
    reserved: Mapping[TaskUid, Placement] | None = None
    put_off_s: int | None = None


@dataclass(frozen=True)
class Placed:
    """Placement decided: for every task of a gang at once, for some of the queued tasks of an incremental job."""

    placements: Mapping[TaskUid, Placement]


@dataclass(frozen=True)
class PredecessorEnded:
    """The job that this one replaces has ended."""


@dataclass(frozen=True)
class Preempted:
    """These tasks must make way for another job, ``by``, of this priority; they are run again free of charge."""

    uids: tuple[TaskUid, ...]
    by: str
    priority: int


@dataclass(frozen=True)
class Displaced:
    """These tasks run on, but without their claim on the quota, or with it again.

    ``config`` is the version of the cluster configuration in force.
    """

    uids: tuple[TaskUid, ...]
    displaced: bool
    config: int = 0


@dataclass(frozen=True)
class Unreserved:
    """Cells are no longer kept for the waiting tasks of the job. ``config`` as in :class:`Displaced`."""

    config: int = 0


@dataclass(frozen=True)
class TaskPulling:
    """The engine fetches the task's image."""

    uid: TaskUid


@dataclass(frozen=True)
class TaskDelayed:
    """The task was placed and has not begun, for this reason, such as an image that cannot be fetched."""

    uid: TaskUid
    why: str


@dataclass(frozen=True)
class TaskRunning:
    """The task's command runs."""

    uid: TaskUid
    since: datetime


@dataclass(frozen=True)
class TaskExited:
    """The task is over, or can never start."""

    uid: TaskUid
    exit: TaskExit


@dataclass(frozen=True)
class TaskForgotten:
    """The engine has removed what was left of an ended task."""

    uid: TaskUid


@dataclass(frozen=True)
class TaskGone:
    """The engine no longer has a task that was kept for debugging, so there is nothing left to enter."""

    uid: TaskUid


TaskEvent = TaskPulling | TaskDelayed | TaskRunning | TaskExited | TaskForgotten | TaskGone
JobEvent = Look | Waiting | Placed | PredecessorEnded | Preempted | Displaced | Unreserved | TaskEvent
