"""Watching what passes between the controller and its engine, for readiness and the list of nodes; changes nothing."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence

from pai_backend.engine.base import (
    Connection,
    Engine,
    EngineEvent,
    Listed,
    LogStream,
    NodeGone,
    NodeSeen,
    TaskPlan,
)
from pai_backend.model.ids import TaskUid
from pai_backend.model.node import Node, Placement


class ObservedEngine:
    """An engine that remembers the nodes it was heard to name, and whether its first listing is complete."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self.nodes: dict[str, Node] = {}
        self.listed = False

    async def watch(self) -> AsyncIterator[EngineEvent]:
        """As the engine; the memory is for this watch and empty after it."""
        try:
            async for event in self._engine.watch():
                if isinstance(event, NodeSeen):
                    self.nodes[event.node.name] = event.node
                elif isinstance(event, NodeGone):
                    self.nodes.pop(event.name, None)
                elif isinstance(event, Listed):
                    self.listed = True
                yield event
        finally:
            self.nodes.clear()
            self.listed = False

    async def start(self, plan: TaskPlan) -> None:
        """As the engine."""
        await self._engine.start(plan)

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

    async def dial(self, placement: Placement, uid: TaskUid, port: int) -> Connection:
        """As the engine."""
        return await self._engine.dial(placement, uid, port)

    async def forget(self, uid: TaskUid) -> None:
        """As the engine."""
        await self._engine.forget(uid)

    def task_address(self, node: Node, role: str, index: int) -> str:
        """As the engine."""
        return self._engine.task_address(node, role, index)

    async def busy_ports(self, machine: str, ports: Sequence[int]) -> set[int]:
        """As the engine."""
        return await self._engine.busy_ports(machine, ports)

    async def aclose(self) -> None:
        """As the engine."""
        await self._engine.aclose()
