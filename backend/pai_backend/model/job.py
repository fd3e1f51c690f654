"""A job and its tasks as they are now. Only ``lifecycle`` makes new versions of these."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum

from pydantic import Field, SerializationInfo, field_serializer
from pydantic.alias_generators import to_camel

from pai_backend.model.base import Model
from pai_backend.model.ids import JobUid, TaskUid
from pai_backend.model.node import Placement
from pai_backend.model.spec import DocumentWarning, JobSpec
from pai_backend.model.wording import KeepsWording, StoredText, UserText


class State(StrEnum):
    """States users see; OpenPAI's words (REST v2)."""

    WAITING = "WAITING"
    RUNNING = "RUNNING"
    STOPPING = "STOPPING"
    STOPPED = "STOPPED"
    SUCCEEDED = "SUCCEEDED"
    FAILED = "FAILED"

    @property
    def final(self) -> bool:
        """Whether nothing will change any more, unless the job is restarted."""
        return self in (State.STOPPED, State.SUCCEEDED, State.FAILED)


class Phase(StrEnum):
    """The state in plain words, finer than :class:`State`."""

    QUEUED = "queued"
    PULLING = "pulling"
    STARTING = "starting"
    RUNNING = "running"
    BACKING_OFF = "backing off"
    KEPT = "kept for debugging"
    STOPPING = "stopping"
    ENDED = "ended"


class Desired(StrEnum):
    """What the user wants of a job (OpenPAI executionType)."""

    START = "START"
    STOP = "STOP"


class StopCause(StrEnum):
    """Who or what asked a job to end."""

    USER = "user"
    IDLE = "idle"
    """Its ``idleTimeout``: nothing had used it for that long."""
    DURATION = "duration"
    """Its ``maxDuration``, or the longest run of its virtual cluster: it had run for that long."""


class Causer(StrEnum):
    """Who an exit is charged to; only the user's own failures cost a retry."""

    USER = "user"
    PLATFORM = "platform"
    RESOURCE = "resource"


class ExitKind(StrEnum):
    """What may be hoped of running the same thing again (OpenPAI's exit behaviours)."""

    SUCCESS = "success"
    TRANSIENT = "transient"
    TRANSIENT_CONFLICT = "transient-conflict"
    PERMANENT = "permanent"
    UNKNOWN = "unknown"

    @property
    def free(self) -> bool:
        """Whether a retry after it costs nothing and has no limit: the task was taken from the user."""
        return self in (ExitKind.TRANSIENT, ExitKind.TRANSIENT_CONFLICT)


class TaskExit(KeepsWording):
    """How a task ended: as the engine saw it, and in words that ``lifecycle`` adds."""

    code: int | None = Field(default=None, description="Exit status 0..255, or None when a signal ended it.")
    signal: int | None = Field(default=None, description="Number of the signal that ended it.")
    reason: str = Field(
        default="exited",
        description="exited, signalled, stopped, start-failed, start-forbidden, input-failed, image-pull-failed, "
        "ssh-barrier, out-of-memory, disk-full, storage-exceeded, deadline-exceeded, port-conflict, preempted, "
        "evicted, drained, refused, lost, vanished",
    )
    message: UserText = Field(default="", description="One sentence for the user.")
    causer: Causer = Causer.USER
    unexplained: bool = Field(
        default=False, description="Something took the task away, and it may have been the task itself."
    )
    at: datetime

    @property
    def status(self) -> int:
        """One number as a shell has it: the code, 128+signal, or 255 when neither is known.

        255 also of what was taken away, or went beyond a limit, and exited with 0 when it was told to end: that is no
        success, for every reader of the number.
        """
        if self.code == 0 and self.reason not in ("exited", "stopped"):
            return 255
        if self.code is not None:
            return self.code
        return 128 + self.signal if self.signal is not None else 255


class Retries(Model):
    """Runs so far beyond the first, by who caused them: of a job's attempts, or of one task within an attempt.

    ``resource`` are conflicts over what a node has; that others came first is counted by itself.
    """

    user: int = 0
    platform: int = 0
    resource: int = 0
    preempted: int = 0
    free: int = Field(default=0, description="How many of these did not count against the limit.")

    @property
    def total(self) -> int:
        """All retries together."""
        return self.user + self.by_platform + self.resource

    @property
    def by_platform(self) -> int:
        """Those that OpenPAI counts as the platform's: preemption is one of its transient failures."""
        return self.platform + self.preempted

    @property
    def charged(self) -> int:
        """Those that count against the limit."""
        return self.total - self.free


class Task(Model):
    """One run of an instance of a role."""

    uid: TaskUid
    role: str
    index: int
    attempt: int
    state: State = State.WAITING
    phase: Phase = Phase.QUEUED
    placement: Placement | None = None
    exit: TaskExit | None = None
    started_at: datetime | None = None
    ended_at: datetime | None = None
    forgotten: bool = Field(default=False, description="The engine has been told to remove what is left.")
    job_attempt: int = Field(
        default=0, description="Attempt of the job it belongs to; ``attempt`` counts all runs of this slot."
    )
    retries: Retries = Field(
        default=Retries(), description="Runs of this slot alone, without its job, in this attempt of the job."
    )
    backoff_until: datetime | None = Field(default=None, description="Before this it is not run again.")
    kept_until: datetime | None = Field(default=None, description="When a task kept for debugging is released.")
    released_by: str = Field(
        default="", description="What let a kept task go: user, stop, clock, lost, preempted; else empty."
    )
    reserved: Placement | None = Field(
        default=None, description="The place, without ports, that is kept for it while others are stopped there."
    )
    preempted_by: StoredText = Field(default="", description="Why it was asked to make way, in words; else empty.")

    @property
    def name(self) -> str:
        """``role-index``, the name users and peers use."""
        return f"{self.role}-{self.index}"

    @property
    def is_over(self) -> bool:
        """Whether its command has ended, though the task may be kept for debugging."""
        return self.phase in (Phase.KEPT, Phase.ENDED)

    @property
    def holds_place(self) -> bool:
        """Whether what it was placed on is taken by it."""
        return self.placement is not None and self.phase not in (Phase.QUEUED, Phase.BACKING_OFF, Phase.ENDED)


class JobExit(KeepsWording):
    """Why the job as a whole ended: the task that decided it, or the stop request."""

    status: int
    message: UserText
    remedy: str = Field(default="", description="What the user can do about a failure, in a sentence.")
    cause: StopCause | None = Field(default=None, description="Of a stopped job: who or what stopped it.")
    role: str | None = None
    index: int | None = None


class Verdict(Model):
    """How the current attempt ends: decided, but other tasks may still have to be stopped."""

    outcome: State
    causer: Causer = Causer.USER
    kind: ExitKind = Field(
        default=ExitKind.UNKNOWN, description="Of a failure: the kind of the task's exit that decided it."
    )
    exit: JobExit


class Job(Model):
    """A job and the tasks of its current attempt, of each instance the latest run."""

    uid: JobUid
    name: str
    user: str
    alias: str
    spec: JobSpec
    warnings: tuple[DocumentWarning, ...] = ()
    tags: tuple[str, ...] = ()
    state: State = State.WAITING
    phase: Phase = Phase.QUEUED
    why: UserText = Field(default="", description="Why it waits, in one sentence; empty when it does not.")
    desired: Desired = Desired.START
    stop_reason: StoredText = ""
    stop_cause: StopCause = Field(default=StopCause.USER, description="Who or what asked it to stop, if it was asked.")
    attempt: int = 0
    retries: Retries = Retries()
    tasks: tuple[Task, ...] = ()
    submitted_at: datetime
    turn_at: datetime | None = Field(
        default=None,
        description="Stands for submitted_at in the queue's order, once it was moved or put off.",
    )
    put_off_s: int | None = Field(
        default=None, description="By how much the rules of the queue have put off its turn; empty until they do."
    )
    launched_at: datetime | None = None
    completed_at: datetime | None = None
    backoff_until: datetime | None = None
    released: tuple[TaskUid, ...] = Field(
        default=(), description="Kept tasks that the user releases; removed when that is done."
    )
    restarting: bool = Field(
        default=False, description="It had ended and its user restarted it; its next attempt has not begun yet."
    )
    replaces: JobUid | None = Field(
        default=None, description="The earlier job of its name, which it waits for: until that has ended."
    )
    exit: JobExit | None = None
    verdict: Verdict | None = Field(
        default=None, description="Decided but not yet carried out: other tasks are still being stopped."
    )
    version: int = Field(default=0, description="Incremented by every write; writes are fenced by it.")

    @property
    def virtual_cluster(self) -> str:
        """The virtual cluster it was submitted to."""
        return self.spec.virtual_cluster

    @property
    def gpu_types(self) -> tuple[str, ...]:
        """Types of the GPUs that its roles ask for, and of those that the tasks of its current attempt hold or held.

        In alphabetical order; a role without GPUs asks for no type.
        """
        asked = {role.sku_type or self.spec.gpu_type for role in self.spec.task_roles if role.resources.gpus}
        places = (task.placement for task in self.tasks)
        held = {place.gpu_type for place in places if place is not None and place.gpus}
        return tuple(sorted(filter(None, asked | held)))

    @property
    def core(self) -> tuple[Task, ...]:
        """Tasks of a job without gang allocation that start together, before any other: the first of each role.

        Empty once they have started in this attempt of the job, and when no role has ``min_instances``.
        """
        least = {role.name: role.min_instances for role in self.spec.task_roles if role.min_instances is not None}
        if not least or self.spec.scheduling.gang_allocation:
            return ()
        if any(task.phase is not Phase.QUEUED or task.retries.total for task in self.tasks):
            return ()
        return tuple(task for task in self.tasks if task.index < least.get(task.role, 0))

    @property
    def kept(self) -> tuple[Task, ...]:
        """The tasks that are kept for debugging now."""
        return tuple(task for task in self.tasks if task.phase is Phase.KEPT)

    def task(self, uid: TaskUid) -> Task | None:
        """The task of the current attempt with that uid, if any."""
        for task in self.tasks:
            if task.uid == uid:
                return task
        return None

    @property
    def id(self) -> str:
        """``user~name``, OpenPAI's framework id, used in REST paths."""
        return f"{self.user}~{self.name}"


class Event(Model):
    """One line of a job's history; ``seq`` counts from 1 without gaps within a job."""

    job: JobUid
    seq: int
    at: datetime
    type: str = Field(description="What has happened, e.g. job.state; docs/events.md lists all.")
    payload: dict[str, object] = Field(default_factory=dict)

    @field_serializer("payload")
    def _sent_in_camel_case(self, payload: dict[str, object], info: SerializationInfo) -> dict[str, object]:
        """The payload as it is stored, or with the names of its fields as they are sent."""
        return {to_camel(name): value for name, value in payload.items()} if info.by_alias else payload


@dataclass(frozen=True)
class NewEvent:
    """An event before the store gives it its sequence number."""

    type: str
    payload: Mapping[str, object] = field(default_factory=dict)
