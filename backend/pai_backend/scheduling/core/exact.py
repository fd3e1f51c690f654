"""The exact search: assigns pods to units, largest first, and takes a choice back when it leads nowhere.

Complete up to :data:`~pai_backend.scheduling.core.search.MOST_STEPS` alternatives. Units with equally many free leaves
are interchangeable, so only one of them is tried, and a state that failed once is not entered again; with sizes that
divide each other (1, 2, 4, 8) the first descent succeeds whenever anything does.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from pai_backend.scheduling.cells.buddy import below
from pai_backend.scheduling.cells.held import Spot
from pai_backend.scheduling.cells.physical import Node, PhysicalCell
from pai_backend.scheduling.cells.virtual import Unit, VirtualCell
from pai_backend.scheduling.core.search import MOST_STEPS, Pod, Search


@dataclass(slots=True)
class _Bin:
    """A unit on a cell, or a node, and what is left of it."""

    place: Unit | Node
    cell: PhysicalCell
    left: int
    pods: list[Pod] = field(default_factory=list)


class Exact:
    """One exact search; uses the rules (what is free, what is allowed) of a :class:`Search`."""

    def __init__(self, search: Search) -> None:
        self.search = search
        self.pods = sorted(search.pods, key=lambda pod: -pod.leaves)
        self.bins: list[_Bin] = []
        self.steps = 0
        self._given = 0
        self._failed: set[tuple[object, ...]] = set()

    def spots(self) -> dict[int, Spot] | None:
        """Spots by pod ordinal, None when there is no place or the bound was reached."""
        search = self.search
        for place in search.candidates(self.pods[-1].leaves):
            cell = place if isinstance(place, Node) else place.physical
            if cell is not None and (left := search.room(cell).bit_count()) >= self.pods[-1].leaves:
                self.bins.append(_Bin(place, cell, left))
        self._given = len(self.bins)
        with search.binder.journal.trial():
            if not self._place(0):
                return None
            packed = [
                (each.place, each.cell, sorted(each.pods, key=lambda pod: (pod.leaves, pod.ordinal)))
                for each in self.bins
                if each.pods
            ]
            return search.spots(packed)

    def _place(self, index: int) -> bool:
        """Place the pods from ``index`` on; leaves everything as it was when that fails."""
        if index == len(self.pods):
            return True
        state = (index, tuple(sorted(each.left for each in self.bins)), frozenset(id(each.cell) for each in self.bins[self._given :]))
        if state in self._failed:
            return False
        pod = self.pods[index]
        tried: set[int] = set()
        for each in sorted(self.bins, key=lambda each: each.left):
            if each.left >= pod.leaves and each.left not in tried and self._count():
                tried.add(each.left)
                if self._put(each, pod, index):
                    return True
        if self.search.quotas is not None and self._open_one(pod, index):
            return True
        self._failed.add(state)
        return False

    def _count(self) -> bool:
        self.steps += 1
        return self.steps < MOST_STEPS

    def _put(self, each: _Bin, pod: Pod, index: int) -> bool:
        each.left -= pod.leaves
        each.pods.append(pod)
        if self._place(index + 1):
            return True
        each.pods.pop()
        each.left += pod.leaves
        return False

    def _open_one(self, pod: Pod, index: int) -> bool:
        """Let one more unit stand on a cell, for each kind of unit and each kind of cell, and go on from there."""
        journal = self.search.binder.journal
        for unit in self._kinds():
            tried: set[tuple[int, int]] = set()
            for cell in self._cells(unit):
                left = self.search.room(cell).bit_count()
                kind = (id(cell.parent), left)
                if left < pod.leaves or kind in tried:
                    continue
                if not self._count():
                    return False
                tried.add(kind)
                mark = journal.mark()
                self.search.binder.bind(unit, cell)
                each = _Bin(unit, cell, left)
                self.bins.append(each)
                if self._put(each, pod, index):
                    return True
                self.bins.remove(each)
                journal.rewind(mark)
        return False

    def _kinds(self) -> Iterator[Unit]:
        """One unbound unit of each kind: the same quota level below the same bound cell."""
        assert self.search.quotas is not None
        seen: set[tuple[object, ...]] = set()
        for unit in self.search.quotas.units:
            if unit.physical is None:
                at: VirtualCell = unit
                while at.parent is not None and at.parent.physical is None:
                    at = at.parent
                kind = (unit.level, at.level, None if at.parent is None else id(at.parent))
                if kind not in seen:
                    seen.add(kind)
                    yield unit

    def _cells(self, unit: Unit) -> Iterator[PhysicalCell]:
        """Physical cells on which an unbound unit may stand."""
        at: VirtualCell = unit
        while at.parent is not None and at.parent.physical is None:
            at = at.parent
        if at.parent is None:
            tops: Iterator[PhysicalCell] = self.search.chain.buddy.every(at.level)
        else:
            assert at.parent.physical is not None
            tops = (each for each in at.parent.physical.children if each.virtual is None)
        for top in tops:
            yield from below(top, unit.level)
