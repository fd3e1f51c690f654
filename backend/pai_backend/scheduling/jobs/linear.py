"""CPU and memory of nodes: what is taken, what is left, and which nodes suit a task."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from types import MappingProxyType

from pai_backend.model.ids import TaskUid
from pai_backend.model.node import Node
from pai_backend.scheduling.jobs.demand import Ask
from pai_backend.scheduling.jobs.node_sets import NodeSets
from pai_backend.scheduling.jobs.terms import Terms

_Size = tuple[int, int, Terms]
"""CPUs, MiB and terms of a task."""


class Room:
    """Nodes, and what each task holds of them. A node may be overdrawn while tasks on it are being replaced."""

    def __init__(self) -> None:
        self._nodes: dict[str, Node] = {}
        self.nodes: Mapping[str, Node] = MappingProxyType(self._nodes)
        """Changed by :meth:`set_node` and :meth:`remove_node` alone."""
        self._held: dict[TaskUid, tuple[str, Ask]] = {}
        self._used: dict[str, tuple[int, int]] = {}
        self._suited: NodeSets[Terms] = NodeSets(self._suits, lambda _: self._nodes)
        self._large: NodeSets[_Size] = NodeSets(self._is_large_enough, lambda size: self._suited.get(size[2]))
        self._free: NodeSets[_Size] = NodeSets(self._has_room, lambda size: self._suited.get(size[2]))

    def set_node(self, node: Node) -> None:
        """A node as it is now; new or changed."""
        self._nodes[node.name] = node
        for known in (self._suited, self._large, self._free):
            known.changed(node.name)

    def remove_node(self, name: str) -> None:
        """The node is gone. What was held there stays held until it is released. Idempotent."""
        if self._nodes.pop(name, None) is not None:
            for known in (self._suited, self._large, self._free):
                known.gone(name)

    @contextmanager
    def as_if(self, nodes: Iterable[Node]) -> Iterator[None]:
        """A what-if: these known nodes are as given, until it ends."""
        before = [(self._nodes[node.name], node) for node in nodes]
        try:
            for _, node in before:
                self.set_node(node)
            yield
        finally:
            for node, _ in before:
                self.set_node(node)

    def hold(self, ask: Ask, node: str) -> None:
        """The task takes what it needs there. Idempotent by uid."""
        self.release(ask.uid)
        self._held[ask.uid] = (node, ask)
        self._count(node, ask.cpus, ask.memory_mb)

    def release(self, uid: TaskUid) -> None:
        """Give back what the task held. Idempotent."""
        held = self._held.pop(uid, None)
        if held is not None:
            node, ask = held
            self._count(node, -ask.cpus, -ask.memory_mb)

    def _count(self, node: str, cpus: int, memory_mb: int) -> None:
        before = self._used.get(node, (0, 0))
        self._used[node] = (before[0] + cpus, before[1] + memory_mb)
        if node in self._nodes:
            self._free.changed(node)

    def free(self, name: str, leaving: Iterable[TaskUid] = ()) -> tuple[int, int]:
        """CPUs and MiB left on a node, once the tasks in ``leaving`` have left it too."""
        node, (cpus, memory_mb) = self._nodes[name], self._used.get(name, (0, 0))
        for uid in leaving:
            held = self._held.get(uid)
            if held is not None and held[0] == name:
                cpus -= held[1].cpus
                memory_mb -= held[1].memory_mb
        return node.cpus - cpus, node.memory_mb - memory_mb

    def is_free_for(self, ask: Ask, name: str) -> bool:
        """Whether the node has the CPU and memory now, may the task use it or not."""
        return fits(ask.cpus, ask.memory_mb, self.free(name))

    def suited(self, ask: Ask) -> frozenset[str]:
        """Nodes that are ready and that the task may use, whatever room they have."""
        return self._suited.get(ask.terms)

    def having(self, ask: Ask) -> frozenset[str]:
        """Suited nodes with room for the task now."""
        return self._free.get((ask.cpus, ask.memory_mb, ask.terms))

    def large_enough(self, ask: Ask) -> frozenset[str]:
        """Suited nodes that would have room for the task if nothing else ran on them."""
        return self._large.get((ask.cpus, ask.memory_mb, ask.terms))

    def _suits(self, terms: Terms, name: str) -> bool:
        node = self._nodes[name]
        return node.ready and terms.objection(node) is None

    def _is_large_enough(self, size: _Size, name: str) -> bool:
        return size[0] <= self._nodes[name].cpus and size[1] <= self._nodes[name].memory_mb

    def _has_room(self, size: _Size, name: str) -> bool:
        return fits(size[0], size[1], self.free(name))

    def that_fit(self, name: str, asks: Sequence[Ask], leaving: Iterable[TaskUid] = ()) -> int:
        """How many of these tasks, from the first on, may use the node and fit there together."""
        cpus, memory_mb = self.free(name, leaving)
        for count, ask in enumerate(asks):
            cpus -= ask.cpus
            memory_mb -= ask.memory_mb
            full = (cpus < 0 and ask.cpus) or (memory_mb < 0 and ask.memory_mb)
            if full or name not in self.suited(ask):
                return count
        return len(asks)


def fits(cpus: int, memory_mb: int, free: tuple[int, int]) -> bool:
    """Whether there is room for CPUs and MiB in what is free; what a task does not ask for may be overdrawn."""
    return (cpus <= free[0] or not cpus) and (memory_mb <= free[1] or not memory_mb)
