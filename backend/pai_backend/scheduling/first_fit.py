"""First fit over nodes in name order and GPUs in index order.

CPU and memory count as linear resources; a GPU belongs to one task. Sound for one machine or a few
equal ones; it gives no guarantee about shapes, which is what cell trees are for.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from pai_backend.model.ids import TaskUid
from pai_backend.model.node import Node
from pai_backend.scheduling.base import Ask, Assignment, Bound, Wait, WaitCode


@dataclass
class _Free:
    """What is left of a node while a gang is being tried."""

    node: Node
    cpus: int
    memory_mb: int
    gpus: list[int] = field(default_factory=list)

    def take(self, ask: Ask) -> Assignment | None:
        """Take the ask's share, or leave all as it is."""
        fitting = [index for index in self.gpus if _is_type(self.node, index, ask.gpu_type)]
        if len(fitting) < ask.gpus or self.cpus < ask.cpus or self.memory_mb < ask.memory_mb:
            return None
        chosen = tuple(fitting[: ask.gpus])
        self.gpus = [index for index in self.gpus if index not in chosen]
        self.cpus -= ask.cpus
        self.memory_mb -= ask.memory_mb
        return Assignment(self.node.name, chosen)


class FirstFit:
    """A :class:`~pai_backend.scheduling.base.Placer` without quotas or cells."""

    def __init__(self) -> None:
        self._nodes: dict[str, Node] = {}
        self._held: dict[TaskUid, tuple[Ask, Assignment]] = {}

    def set_node(self, node: Node) -> None:
        """See :meth:`Placer.set_node`."""
        self._nodes[node.name] = node

    def remove_node(self, name: str) -> None:
        """See :meth:`Placer.remove_node`."""
        self._nodes.pop(name, None)

    def nodes(self) -> Mapping[str, Node]:
        """See :meth:`Placer.nodes`."""
        return self._nodes

    def hold(self, ask: Ask, assignment: Assignment) -> None:
        """See :meth:`Placer.hold`."""
        self._held[ask.uid] = (ask, assignment)

    def release(self, uid: TaskUid) -> None:
        """See :meth:`Placer.release`."""
        self._held.pop(uid, None)

    def try_place(self, asks: Sequence[Ask]) -> Bound | Wait:
        """See :meth:`Placer.try_place`."""
        free = self._free()
        assignments: dict[TaskUid, Assignment] = {}
        for ask in asks:
            place = next((found for room in free if (found := room.take(ask)) is not None), None)
            if place is None:
                return self._why(ask, asks)
            assignments[ask.uid] = place
        return Bound(assignments)

    def _free(self) -> list[_Free]:
        rooms = {
            name: _Free(node, node.cpus, node.memory_mb, [gpu.index for gpu in node.gpus])
            for name, node in sorted(self._nodes.items())
            if node.ready
        }
        for ask, assignment in self._held.values():
            room = rooms.get(assignment.node)
            if room is not None:
                room.cpus -= ask.cpus
                room.memory_mb -= ask.memory_mb
                room.gpus = [index for index in room.gpus if index not in assignment.gpus]
        return list(rooms.values())

    def _fits_when_empty(self, asks: Sequence[Ask]) -> bool:
        """Whether the whole gang would fit if nothing were held and every node were ready."""
        rooms = [_Free(node, node.cpus, node.memory_mb, _indexes(node)) for _, node in sorted(self._nodes.items())]
        return all(any(room.take(ask) is not None for room in rooms) for ask in asks)

    def _why(self, ask: Ask, asks: Sequence[Ask]) -> Wait:
        """The most permanent reason that holds for this ask."""
        wanted = _words(ask)
        nodes = list(self._nodes.values())
        if not nodes:
            return Wait(WaitCode.NO_NODES, "the cluster has no nodes yet")
        typed = [gpu for node in nodes for gpu in node.gpus if ask.gpu_type in (None, gpu.type)]
        if ask.gpus and not typed:
            have = ", ".join(sorted({gpu.type for node in nodes for gpu in node.gpus})) or "no GPU at all"
            kind = f"no node has a GPU of type {ask.gpu_type}" if ask.gpu_type else "no node has a GPU"
            return Wait(WaitCode.NO_SUCH_TYPE, f"{kind}; there is {have}", needed=ask.gpus)
        able = [node for node in nodes if _Free(node, node.cpus, node.memory_mb, _indexes(node)).take(ask)]
        if not able:
            return Wait(WaitCode.TOO_BIG, f"a task needs {wanted}, and no node is that large: {_sizes(nodes)}")
        if not self._fits_when_empty(asks):
            message = f"{len(asks)} tasks at once do not fit into the whole cluster: {_sizes(nodes)}"
            return Wait(WaitCode.TOO_BIG, message, needed=sum(each.gpus for each in asks), available=len(typed))
        if not any(node.ready for node in able):
            return Wait(WaitCode.NOT_READY, "; ".join(f"node {n.name} is not ready: {n.reason}" for n in able))
        together = f", for {len(asks)} tasks at once" if len(asks) > 1 else ""
        return Wait(
            WaitCode.BUSY,
            f"waits for {wanted}{together}: what could serve it is in use",
            needed=sum(each.gpus for each in asks),
            available=len(typed),
        )


def _indexes(node: Node) -> list[int]:
    return [gpu.index for gpu in node.gpus]


def _is_type(node: Node, index: int, wanted: str | None) -> bool:
    return wanted is None or any(gpu.index == index and gpu.type == wanted for gpu in node.gpus)


def _words(ask: Ask) -> str:
    gpus = f"{ask.gpus} {ask.gpu_type + ' ' if ask.gpu_type else ''}GPU, " if ask.gpus else ""
    return f"{gpus}{ask.cpus} CPU and {ask.memory_mb} MiB of memory"


def _sizes(nodes: Sequence[Node]) -> str:
    shown = [f"{n.name} has {len(n.gpus)} GPU, {n.cpus} CPU, {n.memory_mb} MiB" for n in nodes[:4]]
    return ", ".join(shown) + (f" and {len(nodes) - 4} more" if len(nodes) > 4 else "")
