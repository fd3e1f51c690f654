"""The engine interface and the values that cross it.

A call is idempotent by task uid: the controller repeats it after a crash. Nothing here decides
anything: node, devices, ports, environment, command and keys are fixed in the plan.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from enum import StrEnum
from typing import TYPE_CHECKING, Protocol, runtime_checkable

from pai_backend.model.ids import JobUid, TaskUid
from pai_backend.model.job import TaskExit
from pai_backend.model.node import Node, Placement
from pai_backend.model.plan import SshPlan as SshPlan
from pai_backend.model.plan import TaskPlan as TaskPlan
from pai_backend.model.task_note import TaskNote

if TYPE_CHECKING:
    from pai_backend.engine.holding import ControllerClaim, EngineHolder


class TaskState(StrEnum):
    """What an engine can know of a task."""

    PULLING = "pulling"
    STARTING = "starting"
    RUNNING = "running"
    EXITED = "exited"


@dataclass(frozen=True)
class NodeSeen:
    """A node as it is now (first listing, or a change)."""

    node: Node


@dataclass(frozen=True)
class NodeGone:
    """A node that is no longer part of the engine."""

    name: str


@dataclass(frozen=True)
class TaskSeen:
    """A task as it is now. ``exit`` is set exactly when ``state`` is EXITED.

    A task that the engine had and can no longer account for (shim killed, directory gone) is EXITED
    with reason ``lost`` or ``vanished`` and causer PLATFORM. ``since`` is when its command started,
    also once it has exited; None when it never did.
    """

    uid: TaskUid
    state: TaskState
    exit: TaskExit | None = None
    since: datetime | None = None
    message: str = ""


@dataclass(frozen=True)
class Listed:
    """The first listing is complete: a task not seen before this mark is unknown to the engine."""


EngineEvent = NodeSeen | NodeGone | TaskSeen | Listed


class LogStream(StrEnum):
    """Which output of a task."""

    STDOUT = "stdout"
    STDERR = "stderr"
    ALL = "all"


@dataclass(frozen=True)
class LogTime:
    """When output came: the byte at ``offset``, and what follows it up to the next such time, within a second."""

    offset: int
    at: datetime

    @classmethod
    def of(cls, offset: int, at_ms: int) -> LogTime:
        """From milliseconds since 1970."""
        return cls(offset, datetime.fromtimestamp(at_ms / 1000, UTC))


@dataclass(frozen=True)
class Connection:
    """A byte stream into a task. Close the writer to end it; ``write_eof`` half-closes."""

    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter


class EngineError(Exception):
    """The engine could not do it now; the message is fit for users, and repeating may help."""


class StartRefused(EngineError):
    """The plan can never start as it is (no such node, command cannot be executed)."""


class StartForbidden(StartRefused):
    """The cluster's administrator does not allow what the document asks for: no other place and no later try helps."""


@dataclass(frozen=True)
class Records:
    """What a task carries so that a database that lost it can take it back: see ``TaskPlan``. Sealed texts."""

    database: str = ""
    """Identity of the database; empty for a task of a version that had none."""
    job: str = ""
    task: str = ""


class Engine(Protocol):
    """What runs tasks. See ``pai_backend.testing.engine_contract`` for the tests that define it."""

    async def holder(self) -> EngineHolder | None:
        """The record of the database that this engine belongs to; None before the first claim. Raises EngineError."""
        ...

    async def hold(self, claim: ControllerClaim, *, renewing: bool = False) -> EngineHolder:
        """Write the claim unless the engine belongs to another database; atomic among controllers, durable on return.

        Raises HeldByAnother (see ``engine.holding.claimed``), EngineError when a later try may succeed.
        """
        ...

    async def hand_over(self, identity: str) -> None:
        """Let the engine belong to the database of this identity; tasks stay. Raises EngineError."""
        ...

    async def records(self, uid: TaskUid) -> Records:
        """What a live task carries; empty texts for an unknown one, or where there was no room. Raises EngineError."""
        ...

    async def recall(self, uid: TaskUid) -> TaskSeen | None:
        """How a task ended that was forgotten, as far as that is still known. Raises EngineError."""
        ...

    def watch(self) -> AsyncIterator[EngineEvent]:
        """All nodes and tasks as they are, then ``Listed``, then changes; never ends by itself.

        Events of one task come in order; intermediate states may be skipped, EXITED never is.
        """
        ...

    async def start(self, plan: TaskPlan) -> None:
        """Start the task unless this uid was ever started or stopped before. Idempotent.

        One that was forgotten is not started again: the watch reports its end once more, as far as it is known. A
        database that was restored from a backup asks for such a start.
        When it returns, the start is durable: after a crash of the caller the task is listed.
        Inputs are fetched and outputs made before the command runs; when that fails, the task is EXITED
        with reason ``input-failed``. A task with ``keep_on_failure`` whose command failed is EXITED too,
        but its SSH server, files and peers' view stay until :meth:`forget`.
        Raises StartRefused when it can never start, EngineError when a later try may succeed.
        """
        ...

    async def stop(self, uid: TaskUid, grace: float) -> None:
        """Ask the task to end: TERM now, KILL after ``grace`` seconds. Idempotent.

        Returns once the request is durable. The watch then yields EXITED for this uid, also when the
        uid was never started (reason ``stopped``): a start that comes later is then a no-op.
        """
        ...

    async def refresh(self, uid: TaskUid, job_info: str) -> None:
        """Replace the file that PAI_JOB_INFO_FILE names in a task, atomically for its readers. Idempotent.

        A task that is over or unknown is left alone. Raises EngineError when a later try may succeed.
        """
        ...

    def logs(self, uid: TaskUid, stream: LogStream, offset: int, follow: bool) -> AsyncIterator[bytes]:
        """Output from byte ``offset`` on; with ``follow`` goes on until the task has ended and all is read.

        Offsets count from the first byte ever written; an offset below what rotation kept starts at
        the oldest byte kept. Negative offsets count from the end. Raises KeyError for an unknown uid.
        """
        ...

    async def log_extent(self, uid: TaskUid, stream: LogStream) -> tuple[int, int]:
        """(oldest byte still kept, end) of a log now, in the offsets of :meth:`logs`; (0, 0) before any output.

        Raises KeyError for an unknown uid.
        """
        ...

    async def log_times(self, uid: TaskUid, stream: LogStream, start: int, end: int) -> Sequence[LogTime]:
        """When the bytes from ``start`` up to ``end`` came, in their order; the first is that of byte ``start``.

        Nothing for what is not known; there may be one for each byte. Raises KeyError for an unknown uid.
        """
        ...

    async def dial(self, placement: Placement, uid: TaskUid, port: int) -> Connection:
        """A byte stream to the port inside the task, at 127.0.0.1 or ::1. Raises EngineError when nothing answers."""
        ...

    async def forget(self, uid: TaskUid) -> None:
        """The exit is recorded elsewhere: stop reporting this task. Logs stay readable. Idempotent."""
        ...

    async def erase(self, job: JobUid) -> None:
        """Remove logs, files and records of a deleted job, all of whose tasks are forgotten. Idempotent.

        What its tasks left in a storage stays. Raises EngineError when a later try may succeed.
        """
        ...

    def task_address(self, node: Node, role: str, index: int) -> str:
        """Where a task on that node is reached by its peers: known before it starts, and for good."""
        ...

    async def busy_ports(self, machine: str, ports: Sequence[int]) -> set[int]:
        """Which of these ports something on the machine already uses."""
        ...

    async def aclose(self) -> None:
        """Stop watching; running tasks go on."""
        ...


@runtime_checkable
class TakesNotes(Protocol):
    """What an engine is beside :class:`Engine` if administrators of what is below it see why its tasks are stopped."""

    def note(self, note: TaskNote) -> None:
        """Let them know. Returns at once, never fails, and promises nothing."""
        ...


@dataclass(frozen=True)
class GpuWork:
    """What one GPU does: percent of the last moments in which it worked, and its memory in use; None: not told."""

    percent: int | None = None
    memory_mb: int | None = None


@dataclass(frozen=True)
class GpuUse:
    """How much the GPUs of a task work: percent of the last moments in which the busiest did, of those that tell.

    ``unread``: why others do not tell, which then may work all the same; empty when all do. ``gpus``: each by itself.
    """

    percent: int
    unread: str = ""
    gpus: tuple[GpuWork, ...] = field(default=(), compare=False)


@runtime_checkable
class GpuMeter(Protocol):
    """What an engine is beside :class:`Engine` if it can tell how much GPUs work."""

    async def gpu_use(self, placement: Placement, uid: TaskUid) -> GpuUse:
        """How much the GPUs of a running task work now; the task goes on as it did.

        Raises EngineError, saying why in words for users, when none of them can be read.
        """
        ...


@dataclass(frozen=True)
class TaskUse:
    """What a task uses at a moment, all its processes together; None for what is not known.

    ``cpus``: how many it kept busy since it was looked at before. ``memory_mb``: without what the kernel can drop.
    """

    cpus: float | None = None
    memory_mb: float | None = None
    gpus: tuple[GpuWork, ...] = ()


@runtime_checkable
class UseMeter(Protocol):
    """What an engine is beside :class:`Engine` if it can tell what its tasks use."""

    async def uses(self, tasks: Mapping[TaskUid, Placement]) -> Mapping[TaskUid, TaskUse]:
        """What these running tasks use now; those of which nothing is known are left out. Raises EngineError."""
        ...
