"""CPU and memory of nodes: what is taken, what is left, and where a task that needs no cells goes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

from pai_backend.model.ids import TaskUid
from pai_backend.model.node import Node
from pai_backend.scheduling.jobs.demand import Ask

Allows = Callable[[Node, Ask], bool]
"""Whether a node may be used for a task, apart from what is counted here."""


class Room:
    """Nodes, and what each task holds of them. A node may be overdrawn while tasks on it are being replaced."""

    def __init__(self) -> None:
        self.nodes: dict[str, Node] = {}
        self._held: dict[TaskUid, tuple[str, Ask]] = {}
        self._used: dict[str, tuple[int, int]] = {}

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

    def free(self, name: str, leaving: Iterable[TaskUid] = ()) -> tuple[int, int]:
        """CPUs and MiB left on a node, once the tasks in ``leaving`` have left it too."""
        node, (cpus, memory_mb) = self.nodes[name], self._used.get(name, (0, 0))
        for uid in leaving:
            held = self._held.get(uid)
            if held is not None and held[0] == name:
                cpus -= held[1].cpus
                memory_mb -= held[1].memory_mb
        return node.cpus - cpus, node.memory_mb - memory_mb

    def having(self, ask: Ask) -> frozenset[str]:
        """Nodes with room for the task now."""
        return frozenset(name for name, node in self.nodes.items() if node.ready and _fits(ask, self.free(name)))

    def large_enough(self, ask: Ask) -> frozenset[str]:
        """Nodes that would have room for the task if nothing else ran on them."""
        return frozenset(
            name
            for name, node in self.nodes.items()
            if node.ready and ask.cpus <= node.cpus and ask.memory_mb <= node.memory_mb
        )

    def that_fit(self, name: str, asks: Sequence[Ask], leaving: Iterable[TaskUid] = ()) -> int:
        """How many of these tasks, from the first on, fit on the node together."""
        cpus, memory_mb = self.free(name, leaving)
        for count, ask in enumerate(asks):
            cpus -= ask.cpus
            memory_mb -= ask.memory_mb
            if (cpus < 0 and ask.cpus) or (memory_mb < 0 and ask.memory_mb):
                return count
        return len(asks)

    def first_fit(self, asks: Sequence[Ask], allows: Allows) -> Mapping[TaskUid, str] | Ask:
        """A node for each of these tasks, holding nothing, or the first one that fits nowhere.

        Nodes without GPUs come first, so that those with some stay free for tasks that need them; then by name.
        """
        order = sorted(self.nodes.values(), key=lambda node: (bool(node.gpus), node.name))
        left = {node.name: self.free(node.name) for node in order if node.ready}
        found: dict[TaskUid, str] = {}
        for ask in asks:
            name = next((n.name for n in order if n.ready and _fits(ask, left[n.name]) and allows(n, ask)), None)
            if name is None:
                return ask
            cpus, memory_mb = left[name]
            left[name] = (cpus - ask.cpus, memory_mb - ask.memory_mb)
            found[ask.uid] = name
        return found


def _fits(ask: Ask, free: tuple[int, int]) -> bool:
    return (ask.cpus <= free[0] or not ask.cpus) and (ask.memory_mb <= free[1] or not ask.memory_mb)
