"""What the controller does with a running task, and why, for those who see the task from outside of the backend."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from pai_backend.model.ids import TaskUid


class NoteReason(StrEnum):
    """Why a task is asked to end; the value is the reason of an Event of Kubernetes."""

    PREEMPTED = "Preempted"
    USER_STOPPED = "UserStopped"
    IDLE_STOPPED = "IdleStopped"
    DURATION_STOPPED = "DurationStopped"
    JOB_ENDED = "JobEnded"


@dataclass(frozen=True)
class TaskNote:
    """A sentence about a task. It names a job and a task at most: no words of users, no other user."""

    uid: TaskUid
    reason: NoteReason
    text: str
