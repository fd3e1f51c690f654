"""An engine whose tasks do what a test says, for tests of the controller's decisions alone.

What it promises is the part of the engine contract that the controller relies on: starting and
stopping are idempotent by uid, and a stop before the start keeps the task from ever starting. The real
engine is under the same controller in ``tests/integration/controller``.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from datetime import UTC, datetime

from pai_backend.engine.base import (
    Connection,
    EngineError,
    EngineEvent,
    Listed,
    LogStream,
    LogTime,
    NodeGone,
    NodeSeen,
    Records,
    TaskPlan,
    TaskSeen,
    TaskState,
)
from pai_backend.engine.holding import ControllerClaim, EngineHolder, claimed, handed_over
from pai_backend.model.ids import JobUid, TaskUid
from pai_backend.model.job import TaskExit
from pai_backend.model.node import Gpu, Node, Placement


def lab_node(name: str, gpus: int = 1, cpus: int = 8) -> Node:
    """A node of the seeds' lab: all nodes share one machine's ports."""
    return Node(
        name=name,
        address="127.0.0.1",
        machine="laptop",
        cpus=cpus,
        memory_mb=32768,
        gpus=tuple(Gpu(index=index, type="TITANX", simulated=True) for index in range(gpus)),
        simulated=True,
    )


class ScriptedEngine:
    """See the module."""

    def __init__(self, *nodes: Node) -> None:
        self.nodes = list(nodes) or [lab_node("carol"), lab_node("dan")]
        self.tasks: dict[TaskUid, TaskSeen] = {}
        self.starts: list[TaskPlan] = []
        self.refreshed: list[tuple[TaskUid, str]] = []
        self.forgotten: set[TaskUid] = set()
        self.erased: list[JobUid] = []
        self.busy: set[int] = set()
        self.trouble: list[EngineError] = []
        self.held: EngineHolder | None = None
        self.carried: dict[TaskUid, Records] = {}
        self.ended: dict[TaskUid, TaskSeen] = {}
        """Ends of forgotten tasks that are still known."""
        self._watchers: list[asyncio.Queue[EngineEvent]] = []
        self._changed = asyncio.Condition()

    async def holder(self) -> EngineHolder | None:
        return self.held

    async def hold(self, claim: ControllerClaim, *, renewing: bool = False) -> EngineHolder:
        self.held = claimed(self.held, claim, datetime.now(UTC), "the scripted engine", renewing=renewing)
        return self.held

    async def hand_over(self, identity: str) -> None:
        self.held = handed_over(self.held, identity, datetime.now(UTC))

    async def records(self, uid: TaskUid) -> Records:
        return self.carried.get(uid, Records())

    async def recall(self, uid: TaskUid) -> TaskSeen | None:
        return self.ended.get(uid)

    async def watch(self) -> AsyncIterator[EngineEvent]:
        queue: asyncio.Queue[EngineEvent] = asyncio.Queue()
        self._watchers.append(queue)
        for node in self.nodes:
            yield NodeSeen(node)
        for seen in list(self.tasks.values()):
            yield seen
        yield Listed()
        while True:
            yield await queue.get()

    async def start(self, plan: TaskPlan) -> None:
        if self.trouble:
            raise self.trouble.pop(0)
        if plan.uid in self.ended:
            for queue in self._watchers:
                queue.put_nowait(self.ended[plan.uid])
            return
        if plan.uid in self.tasks:
            return
        self.starts.append(plan)
        self.carried[plan.uid] = Records(plan.database, plan.job_record, plan.task_record)
        await self.say(TaskSeen(plan.uid, TaskState.RUNNING, since=datetime.now(UTC)))

    async def stop(self, uid: TaskUid, grace: float) -> None:
        known = self.tasks.get(uid)
        if known is None or known.state is not TaskState.EXITED:
            await self.exit(uid, signal=15, reason="stopped")

    async def refresh(self, uid: TaskUid, job_info: str) -> None:
        if self.trouble:
            raise self.trouble.pop(0)
        known = self.tasks.get(uid)
        if known is None or known.state is TaskState.EXITED:
            return
        self.refreshed.append((uid, job_info))
        async with self._changed:
            self._changed.notify_all()

    async def log_extent(self, uid: TaskUid, stream: LogStream) -> tuple[int, int]:
        return (0, 0)

    async def forget(self, uid: TaskUid) -> None:
        self.forgotten.add(uid)
        self.carried.pop(uid, None)
        self.tasks.pop(uid, None)
        async with self._changed:
            self._changed.notify_all()

    async def erase(self, job: JobUid) -> None:
        if self.trouble:
            raise self.trouble.pop(0)
        self.erased.append(job)
        async with self._changed:
            self._changed.notify_all()

    async def dial(self, placement: Placement, uid: TaskUid, port: int) -> Connection:
        raise EngineError("a scripted task listens on nothing")

    async def logs(self, uid: TaskUid, stream: LogStream, offset: int, follow: bool) -> AsyncIterator[bytes]:
        raise KeyError(uid)
        yield b""

    async def log_times(self, uid: TaskUid, stream: LogStream, start: int, end: int) -> list[LogTime]:
        raise KeyError(uid)

    def task_address(self, node: Node, role: str, index: int) -> str:
        return node.address

    async def busy_ports(self, machine: str, ports: Sequence[int]) -> set[int]:
        return self.busy & set(ports)

    async def aclose(self) -> None:
        return

    # ---- the script ------------------------------------------------------------------------------

    async def say(self, seen: TaskSeen) -> None:
        """Make this the state of a task and tell everyone who watches."""
        self.tasks[seen.uid] = seen
        for queue in self._watchers:
            queue.put_nowait(seen)
        async with self._changed:
            self._changed.notify_all()

    def show(self, node: Node) -> None:
        """Make this the state of a node and tell everyone who watches."""
        self.nodes = [*(each for each in self.nodes if each.name != node.name), node]
        for queue in self._watchers:
            queue.put_nowait(NodeSeen(node))

    def hide(self, name: str) -> None:
        """Take a node away and tell everyone who watches."""
        self.nodes = [each for each in self.nodes if each.name != name]
        for queue in self._watchers:
            queue.put_nowait(NodeGone(name))

    async def exit(
        self, uid: TaskUid, code: int | None = None, *, signal: int | None = None, reason: str = "exited"
    ) -> None:
        """End a task."""
        gone = TaskExit(code=code, signal=signal, reason=reason, at=datetime.now(UTC))
        await self.say(TaskSeen(uid, TaskState.EXITED, exit=gone))

    async def started(self, count: int) -> list[TaskPlan]:
        """The plans started so far, once there are ``count`` of them."""
        async with self._changed:
            await self._changed.wait_for(lambda: len(self.starts) >= count)
        return self.starts
