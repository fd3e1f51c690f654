"""An engine that keeps the nodes it has named, for readiness and the list of nodes. Passes all calls on unchanged."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Protocol, runtime_checkable

from pai_backend.engine.base import (
    Connection,
    Engine,
    EngineError,
    EngineEvent,
    GpuMeter,
    GpuUse,
    Listed,
    LogStream,
    LogTime,
    NodeGone,
    NodeSeen,
    Records,
    TakesNotes,
    TaskPlan,
    TaskSeen,
    TaskUse,
    UseMeter,
)
from pai_backend.engine.holding import ControllerClaim, EngineHolder
from pai_backend.engine.images import ImageStore, KeepsImages
from pai_backend.model.ids import JobUid, TaskUid
from pai_backend.model.node import Node, Placement
from pai_backend.model.task_note import TaskNote

if TYPE_CHECKING:
    from prometheus_client.registry import Collector


@runtime_checkable
class Insight(Protocol):
    """What the engine of a cluster tells of its knowledge of it, besides events."""

    def troubles(self) -> Sequence[str]:
        """Why that cannot be relied on now, in words."""
        ...

    async def silences(self, nodes: Iterable[str]) -> Mapping[str, float]:
        """Seconds since those of these nodes were heard of that are late. Raises EngineError."""
        ...

    def figures(self) -> Collector:
        """Figures for metrics, read when they are scraped."""
        ...

    def follow_nodes(self) -> AsyncIterator[EngineEvent]:
        """Nodes as they are, ``Listed``, then changes, beside the watch of another process."""
        ...


class NodeCachingEngine:
    """An engine that keeps the nodes that it has named, and whether its first listing is complete."""

    def __init__(self, engine: Engine, insight: Insight | None = None) -> None:
        self._engine = engine
        self.insight = insight
        self.nodes: dict[str, Node] = {}
        self.listed = False
        self._ended_by = ""

    def troubles(self) -> list[str]:
        """Why what is known of nodes and tasks cannot be relied on now, in words; empty when it can."""
        if self.insight is not None and (said := list(self.insight.troubles())):
            return said
        return [] if self.listed else [self._ended_by or "is not listed yet"]

    async def silences(self, nodes: Iterable[str]) -> Mapping[str, float]:
        """Seconds since those of these nodes were heard of that are late; nothing where that cannot be known."""
        if self.insight is None:
            return {}
        try:
            return await self.insight.silences(nodes)
        except EngineError:
            return {}  # why it cannot be asked is among the troubles

    async def follow_nodes(self) -> None:
        """Keep :attr:`nodes` current where nothing watches in this process, for ever. Raises EngineError.

        An engine without a cluster has the nodes that are configured: nothing is to be followed.
        """
        if self.insight is not None:
            async for _ in self._noted(self.insight.follow_nodes()):
                pass

    async def watch(self) -> AsyncIterator[EngineEvent]:
        """As the engine; the memory is for this watch and empty after it."""
        async for event in self._noted(self._engine.watch()):
            yield event

    async def _noted(self, events: AsyncIterator[EngineEvent]) -> AsyncIterator[EngineEvent]:
        try:
            async for event in events:
                if isinstance(event, NodeSeen):
                    self.nodes[event.node.name] = event.node
                elif isinstance(event, NodeGone):
                    self.nodes.pop(event.name, None)
                elif isinstance(event, Listed):
                    self.listed, self._ended_by = True, ""
                yield event
        except EngineError as error:
            self._ended_by = str(error)
            raise
        finally:
            self.nodes.clear()
            self.listed = False

    async def holder(self) -> EngineHolder | None:
        """As the engine."""
        return await self._engine.holder()

    async def hold(self, claim: ControllerClaim, *, renewing: bool = False) -> EngineHolder:
        """As the engine."""
        return await self._engine.hold(claim, renewing=renewing)

    async def hand_over(self, identity: str) -> None:
        """As the engine."""
        await self._engine.hand_over(identity)

    async def records(self, uid: TaskUid) -> Records:
        """As the engine."""
        return await self._engine.records(uid)

    async def recall(self, uid: TaskUid) -> TaskSeen | None:
        """As the engine."""
        return await self._engine.recall(uid)

    async def start(self, plan: TaskPlan) -> None:
        """As the engine."""
        await self._engine.start(plan)

    def note(self, note: TaskNote) -> None:
        """As the engine, if it takes notes."""
        if isinstance(self._engine, TakesNotes):
            self._engine.note(note)

    async def stop(self, uid: TaskUid, grace: float) -> None:
        """As the engine."""
        await self._engine.stop(uid, grace)

    async def refresh(self, uid: TaskUid, job_info: str) -> None:
        """As the engine."""
        await self._engine.refresh(uid, job_info)

    def logs(self, uid: TaskUid, stream: LogStream, offset: int, follow: bool) -> AsyncIterator[bytes]:
        """As the engine."""
        return self._engine.logs(uid, stream, offset, follow)

    async def log_extent(self, uid: TaskUid, stream: LogStream) -> tuple[int, int]:
        """As the engine."""
        return await self._engine.log_extent(uid, stream)

    async def log_times(self, uid: TaskUid, stream: LogStream, start: int, end: int) -> Sequence[LogTime]:
        """As the engine."""
        return await self._engine.log_times(uid, stream, start, end)

    async def dial(self, placement: Placement, uid: TaskUid, port: int) -> Connection:
        """As the engine."""
        return await self._engine.dial(placement, uid, port)

    async def gpu_use(self, placement: Placement, uid: TaskUid) -> GpuUse:
        """As the engine, if it can tell; else raises EngineError."""
        if not isinstance(self._engine, GpuMeter):
            raise EngineError("this engine does not report it")
        return await self._engine.gpu_use(placement, uid)

    async def uses(self, tasks: Mapping[TaskUid, Placement]) -> Mapping[TaskUid, TaskUse]:
        """As the engine, if it can tell; else nothing is known of any."""
        return await self._engine.uses(tasks) if isinstance(self._engine, UseMeter) else {}

    @property
    def images(self) -> ImageStore | None:
        """Those of the engine; None where it keeps none."""
        return self._engine.images if isinstance(self._engine, KeepsImages) else None

    async def forget(self, uid: TaskUid) -> None:
        """As the engine."""
        await self._engine.forget(uid)

    async def erase(self, job: JobUid) -> None:
        """As the engine."""
        await self._engine.erase(job)

    def task_address(self, node: Node, role: str, index: int) -> str:
        """As the engine."""
        return self._engine.task_address(node, role, index)

    async def busy_ports(self, machine: str, ports: Sequence[int]) -> set[int]:
        """As the engine."""
        return await self._engine.busy_ports(machine, ports)

    async def aclose(self) -> None:
        """As the engine."""
        await self._engine.aclose()
