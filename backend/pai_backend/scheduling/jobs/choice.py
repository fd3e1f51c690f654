"""Which nodes tasks without cells go to."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from heapq import heapify, heappop, heappush

from pai_backend.model.ids import TaskUid
from pai_backend.model.node import Node
from pai_backend.scheduling.core.room import Room, fits
from pai_backend.scheduling.request import Need
from pai_backend.scheduling.terms import Terms

Allows = Callable[[Node, Need], bool]
"""Whether a node may be used for a task, apart from what a room knows of it."""


def choose(room: Room, needs: Sequence[Need], allows: Allows) -> Mapping[TaskUid, str] | Need:
    """A node for each of these tasks, holding nothing, or the first one that fits nowhere.

    Nodes with a PreferNoSchedule taint that the task does not tolerate come last. Of the others, nodes without GPUs
    come first, so that those with some stay free for tasks that need them. Of nodes without, the one whose CPUs and
    memory are taken the least: tasks that start together then do not wait for one another. Of nodes with GPUs the first
    by name, so that few of them lose CPUs that their GPUs are used with. Where one of several tasks does not fit that
    way, all go to the first by name, which leaves large ones more room.
    """
    found = _Choice(room, allows, spreads=True).of(needs)
    if isinstance(found, Need) and len(needs) > 1:
        return _Choice(room, allows, spreads=False).of(needs)
    return found


_Size = tuple[int, int, Terms]
"""CPUs, MiB and terms of a task."""

_Preference = tuple[bool, bool, float, str]
"""How late a node's turn comes: avoided, has GPUs, the share of it that is taken, name."""


class _Choice:
    """Nodes for several tasks, one after the other; see :func:`choose`."""

    def __init__(self, room: Room, allows: Allows, *, spreads: bool) -> None:
        self._room = room
        self._allows = allows
        self._spreads = spreads
        self._left: dict[str, tuple[int, int]] = {}
        self._orders: dict[_Size, list[_Preference]] = {}  # heaps; what a task has taken since is not in them

    def of(self, needs: Sequence[Need]) -> dict[TaskUid, str] | Need:
        """A node for each, or the first task that has none."""
        found: dict[TaskUid, str] = {}
        for need in needs:
            name = self._best(need)
            if name is None:
                return need
            cpus, memory_mb = self._free(name)
            self._left[name] = (cpus - need.cpus, memory_mb - need.memory_mb)
            found[need.uid] = name
        return found

    def _best(self, need: Need) -> str | None:
        order, passed = self._order(need), []
        try:
            while order:
                entry = heappop(order)
                name = entry[-1]
                now = self._preference(need, name) if name in self._left else entry
                if now > entry:
                    heappush(order, now)
                    continue
                passed.append(entry)
                if fits(need.cpus, need.memory_mb, self._free(name)) and self._allows(self._room.nodes[name], need):
                    return name
            return None
        finally:
            for entry in passed:
                heappush(order, entry)

    def _order(self, need: Need) -> list[_Preference]:
        """The nodes with room for such a task, as a heap."""
        size = (need.cpus, need.memory_mb, need.terms)
        order = self._orders.get(size)
        if order is None:
            order = self._orders[size] = [self._preference(need, name) for name in self._room.having(need)]
            heapify(order)
        return order

    def _preference(self, need: Need, name: str) -> _Preference:
        node = self._room.nodes[name]
        taken = _share_taken(node, self._free(name)) if self._spreads and not node.gpus else 0.0
        return need.terms.avoids(node), bool(node.gpus), taken, name

    def _free(self, name: str) -> tuple[int, int]:
        return self._left.get(name) or self._room.free(name)


def _share_taken(node: Node, free: tuple[int, int]) -> float:
    """The larger one of the shares of CPUs and of memory that are not free."""
    there = (node.cpus, free[0]), (node.memory_mb, free[1])
    return max(((whole - left) / whole for whole, left in there if whole), default=0.0)
