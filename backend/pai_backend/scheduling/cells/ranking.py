"""Nodes in the order in which they are tried: fullest first, kept in step with every change.

The reference sorts all nodes at each attempt with a stable sort, so that nodes of equal rank keep the order that
history gave them. The same order results here from moving only the nodes that changed: one that moves to a later rank
goes before those already there, one that moves to an earlier rank behind them.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Collection, Iterator, Mapping
from heapq import merge
from operator import attrgetter
from typing import Generic, Protocol, TypeVar

from pai_backend.scheduling.cells.journal import Journal


class Ranked(Protocol):
    """What a ranking keeps on a node: ``rank`` (lower is tried first), ``free`` leaves, ``stamp`` within the rank."""

    rank: int
    free: int
    stamp: int
    stale: bool


T = TypeVar("T", bound=Ranked)
_STAMP = attrgetter("stamp")


class Ranking(Generic[T]):
    """Nodes by (rank, stamp), found by how many leaves they have free. ``measure`` gives (rank, free) as of now."""

    def __init__(self, nodes: list[T], measure: Callable[[T], tuple[int, int]], most: int, journal: Journal) -> None:
        self.measure = measure
        self.most = most
        """The largest number of leaves any node can have free."""
        self.journal = journal
        self.count = [0] * (most + 1)
        """Nodes by free leaves."""
        self._ranks = [0] * (most + 1)
        """Per number of free leaves, the ranks present, as bits."""
        self._lists: dict[tuple[int, int], list[T]] = {}
        self._ends: dict[int, tuple[int, int]] = {}
        """Rank -> the lowest and highest stamp given out."""
        self._stale: list[T] = []
        for node in nodes:
            node.rank, node.free = measure(node)
            self._append(node, node.rank)
            self._insert(node)

    def touch(self, node: T) -> None:
        """The node changed; it is moved before the next look.

        Looks in between move it for good, so that a change which may be undone later notes where it was.
        """
        if self.journal.lasting:
            self.journal.note(self._put_back, node, node.rank, node.free, node.stamp, node.stale)
        if not node.stale:
            node.stale = True
            self._stale.append(node)

    def _put_back(self, node: T, rank: int, free: int, stamp: int, stale: bool) -> None:
        if (rank, free, stamp) != (node.rank, node.free, node.stamp):
            self._restore(node, rank, free, stamp)
        if stale:
            self.touch(node)
        node.stale = stale

    def settle(self) -> None:
        """Move what changed. Costs as much as changed, never as much as there is."""
        if not self._stale:
            return
        stale, self._stale = self._stale, []
        moved = []
        for node in stale:
            node.stale = False
            rank, free = self.measure(node)
            if rank != node.rank:
                moved.append((node, rank, free))
            elif free != node.free:
                self._place(node, rank, free, node.stamp)
        if not moved:
            return
        if len(moved) > 1:
            moved.sort(key=lambda move: (move[0].rank, move[0].stamp))
        for node, rank, free in reversed([move for move in moved if move[0].rank < move[1]]):
            low, high = self._ends.get(rank, (0, 0))
            self._ends[rank] = (low - 1, high)
            self._place(node, rank, free, low - 1)
        for node, rank, free in [move for move in moved if move[0].rank > move[1]]:
            low, high = self._ends.get(rank, (0, 0))
            self._ends[rank] = (low, high + 1)
            self._place(node, rank, free, high + 1)

    def fitting(self, least: int) -> Iterator[T]:
        """Nodes with at least ``least`` free leaves, in order."""
        ranks = 0
        for free in range(least, self.most + 1):
            ranks |= self._ranks[free]
        while ranks:
            low = ranks & -ranks
            rank = low.bit_length() - 1
            ranks ^= low
            lists = [nodes for free in range(least, self.most + 1) if (nodes := self._lists.get((rank, free)))]
            if len(lists) == 1:
                yield from lists[0]
            else:
                yield from merge(*lists, key=_STAMP)

    def everything(self) -> Iterator[T]:
        """All nodes in order."""
        return self.fitting(0)

    def holds(self, sizes: Mapping[int, int]) -> bool:
        """Whether the free leaves might hold so many pods of each size; see :func:`could_hold`."""
        return could_hold([(free, count) for free, count in enumerate(self.count) if count], sizes)

    def _append(self, node: T, rank: int) -> None:
        low, high = self._ends.get(rank, (0, 0))
        self._ends[rank] = (low, high + 1)
        node.stamp = high + 1

    def _place(self, node: T, rank: int, free: int, stamp: int) -> None:
        self.journal.note(self._undo, node, node.rank, node.free, node.stamp)
        self._restore(node, rank, free, stamp)

    def _undo(self, node: T, rank: int, free: int, stamp: int) -> None:
        self._restore(node, rank, free, stamp)
        self.touch(node)

    def _restore(self, node: T, rank: int, free: int, stamp: int) -> None:
        self._remove(node)
        node.rank, node.free, node.stamp = rank, free, stamp
        self._insert(node)

    def _insert(self, node: T) -> None:
        nodes = self._lists.setdefault((node.rank, node.free), [])
        if not nodes:
            self._ranks[node.free] |= 1 << node.rank
        nodes.insert(bisect_left(nodes, node.stamp, key=_STAMP), node)
        self.count[node.free] += 1

    def _remove(self, node: T) -> None:
        nodes = self._lists[node.rank, node.free]
        del nodes[bisect_left(nodes, node.stamp, key=_STAMP)]
        if not nodes:
            self._ranks[node.free] &= ~(1 << node.rank)
        self.count[node.free] -= 1


def could_hold(rooms: Collection[tuple[int, int]], sizes: Mapping[int, int]) -> bool:
    """Whether rooms (leaves, how many such) might hold pods (leaves -> how many): no means no.

    A pod of z leaves takes z // s of the slots of s leaves that its room has. For sizes that divide each other yes
    means yes, too.
    """
    for size in sizes:
        slots = sum(count * (leaves // size) for leaves, count in rooms)
        if slots < sum(count * (other // size) for other, count in sizes.items() if other >= size):
            return False
    return True
