"""The exact search: assigns pods to units, largest first, and takes a choice back when it leads nowhere.

Complete as far as its budget goes. Units with equally many free leaves are interchangeable, so only one of them is
tried, and a state that failed once is not entered again; with sizes that divide each other (1, 2, 4, 8) the first
descent succeeds whenever anything does.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from pai_backend.scheduling.cells.buddy import below
from pai_backend.scheduling.cells.tree import Node, PhysicalCell, Spot, Unit, VirtualCell
from pai_backend.scheduling.core.search import Pod, Search

Finder = Callable[[Search], "dict[int, Spot] | None"]


def find(search: Search) -> dict[int, Spot] | None:
    """Spots by pod ordinal: those of the quick way, else of the exact search; None when there is no place."""
    sizes = search.sizes()
    if search.spare is None and search.limits is None and not search.ranking().holds(sizes):
        return None
    spots = search.quick()
    if spots is not None or (not search.packed and len(sizes) == 1):
        # Units are independent of each other, so that equal pods fill them all: there is nothing to search.
        return spots
    return Exact(search).spots()


@dataclass(slots=True)
class _Bin:
    """A unit on a cell, or a node, and the pods in it."""

    place: Unit | Node
    cell: PhysicalCell
    pods: list[Pod] = field(default_factory=list)


class Exact:
    """One exact search; uses the rules (what is free, what is allowed) and the budget of a :class:`Search`."""

    def __init__(self, search: Search) -> None:
        self.search = search
        self.pods = sorted(search.pods, key=lambda pod: -pod.leaves)
        self._bins: list[list[_Bin]] = [[] for _ in range(search.chain.shape.leaves + 1)]
        """Bins by free leaves."""
        self._used: list[_Bin] = []
        self._opened: set[int] = set()
        self._failed: set[tuple[object, ...]] = set()
        self._unbound = [] if search.quotas is None else self._representatives()

    def spots(self) -> dict[int, Spot] | None:
        """Spots by pod ordinal, None when there is no place or the budget is spent."""
        search, least = self.search, self.pods[-1].leaves
        for place in search.candidates(least):
            cell = place if isinstance(place, Node) else place.physical
            if cell is not None and (left := search.room(cell).bit_count()) >= least:
                self._bins[left].append(_Bin(place, cell))
        with search.binder.journal.trial():
            if not self._place(0):
                return None
            return search.spots(
                [
                    (each.place, each.cell, sorted(each.pods, key=lambda pod: (pod.leaves, pod.ordinal)))
                    for each in self._used
                ]
            )

    def _place(self, index: int) -> bool:
        """Place the pods from ``index`` on; leaves everything as it was when that fails."""
        if index == len(self.pods):
            return True
        state = (index, tuple(map(len, self._bins)), frozenset(self._opened))
        if state in self._failed:
            return False
        size = self.pods[index].leaves
        for left in range(size, len(self._bins)):
            if self._bins[left]:
                if not self.search.budget.spend(1):
                    return False
                each = self._bins[left].pop()
                if self._put(each, left, index):
                    return True
                self._bins[left].append(each)
        if self._open_one(index):
            return True
        self._failed.add(state)
        return False

    def _put(self, each: _Bin, left: int, index: int) -> bool:
        """Put the pod into a bin that has been taken out of the list of its size, and go on."""
        pod = self.pods[index]
        if not each.pods:
            self._used.append(each)
        each.pods.append(pod)
        self._bins[left - pod.leaves].append(each)
        if self._place(index + 1):
            return True
        self._bins[left - pod.leaves].remove(each)
        each.pods.pop()
        if not each.pods:
            self._used.remove(each)
        return False

    def _open_one(self, index: int) -> bool:
        """Let one more unit stand on a cell, for each kind of unit and each kind of cell, and go on from there."""
        search, size = self.search, self.pods[index].leaves
        journal = search.binder.journal
        for unit in self._kinds():
            tried: set[tuple[int, int]] = set()
            for cell in self._cells(unit):
                if not search.budget.spend(1):
                    return False
                left = search.room(cell).bit_count()
                kind = (id(cell.parent), left)
                if left < size or kind in tried:
                    continue
                tried.add(kind)
                mark = journal.mark()
                search.binder.bind(unit, cell)
                self._opened.add(id(cell))
                if self._put(_Bin(unit, cell), left, index):
                    return True
                self._opened.discard(id(cell))
                journal.rewind(mark)
        return False

    def _representatives(self) -> list[Unit]:
        """Unbound units, of each kind of quota cell no more than could be needed."""
        assert self.search.quotas is not None
        roots: dict[tuple[int, bool], dict[VirtualCell, None]] = {}
        found = []
        for unit in self.search.quotas.units:
            if unit.physical is None:
                bound = unit.root.physical is not None
                known = roots.setdefault((unit.root.level, bound), {})
                if bound or unit.root in known or len(known) < len(self.pods):
                    known[unit.root] = None
                    found.append(unit)
        return found

    def _kinds(self) -> Iterator[Unit]:
        """One unbound unit of each kind: the same quota level below the same bound cell."""
        seen: set[tuple[object, ...]] = set()
        for unit in self._unbound:
            if unit.physical is None:
                top = _unbound_top(unit)
                kind = (unit.level, top.level, None if top.parent is None else id(top.parent))
                if kind not in seen:
                    seen.add(kind)
                    yield unit

    def _cells(self, unit: Unit) -> Iterator[PhysicalCell]:
        """Physical cells on which an unbound unit may stand."""
        top = _unbound_top(unit)
        tops: Iterator[PhysicalCell]
        if top.parent is None:
            tops = self.search.chain.buddy.every(top.level)
        else:
            assert top.parent.physical is not None
            tops = (each for each in top.parent.physical.children if each.virtual is None)
        for each in tops:
            yield from below(each, unit.level)


def _unbound_top(unit: Unit) -> VirtualCell:
    """The highest virtual cell around an unbound unit that is unbound too."""
    at: VirtualCell = unit
    while at.parent is not None and at.parent.physical is None:
        at = at.parent
    return at
