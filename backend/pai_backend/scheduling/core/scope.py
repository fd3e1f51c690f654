"""Parts of a group that must lie within one cell of a type: each such cell is tried as the only place there is."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

from pai_backend.scheduling.cells.buddy import below
from pai_backend.scheduling.cells.holding import Holding
from pai_backend.scheduling.cells.tree import Chain, Held, Node, PhysicalCell, QuotaUnit, Spot, State, VirtualCell
from pai_backend.scheduling.core.search import Limits, Pod, Search
from pai_backend.scheduling.request import OPPORTUNISTIC, Group

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

    place: QuotaUnit | Node
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

    def _representatives(self) -> list[QuotaUnit]:
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

    def _kinds(self) -> Iterator[QuotaUnit]:
        """One unbound unit of each kind: the same quota level below the same bound cell."""
        seen: set[tuple[object, ...]] = set()
        for unit in self._unbound:
            if unit.physical is None:
                top = _unbound_top(unit)
                kind = (unit.level, top.level, None if top.parent is None else id(top.parent))
                if kind not in seen:
                    seen.add(kind)
                    yield unit

    def _cells(self, unit: QuotaUnit) -> Iterator[PhysicalCell]:
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


def _unbound_top(unit: QuotaUnit) -> VirtualCell:
    """The highest virtual cell around an unbound unit that is unbound too."""
    at: VirtualCell = unit
    while at.parent is not None and at.parent.physical is None:
        at = at.parent
    return at


MOST_SCOPES = 500
"""Cells tried for one group with constraints of its own, all parts together."""
MakeSearch = Callable[[Sequence[Pod], Limits | None], Search]


@dataclass(slots=True)
class Part:
    """Pods that share a constraint, sorted by size: one cell of type ``within``, or the leaves of ``inside``."""

    pods: list[Pod]
    within: str = ""
    inside: Limits | None = None


def parts_of(group: Group, counts: Sequence[int]) -> list[Part]:
    """A group's pods with ``counts[i]`` pods of member i; constrained members apart, the rest together at the end."""
    parts: list[Part] = []
    rest = Part([])
    first = 0
    for member, count in zip(group.members, counts, strict=True):
        pods = [Pod(first + index, member.leaves) for index in range(count)]
        first += member.pods
        if member.within:
            parts.append(Part(pods, member.within))
        else:
            rest.pods.extend(pods)
    rest.pods.sort(key=lambda pod: pod.leaves)
    parts.sort(key=lambda part: -sum(pod.leaves for pod in part.pods))
    return [part for part in [*parts, rest] if part.pods]


def find_parts(
    holding: Holding, group: Group, within: str, parts: Sequence[Part], search: MakeSearch, limits: Limits | None
) -> dict[int, Spot] | None:
    """Spots for all parts, each within one cell of its type, all in one of type ``within``; None when there is none."""
    if not within and len(parts) == 1 and not parts[0].within:
        return find(search(parts[0].pods, _meet(limits, parts[0].inside)))
    chain = search(parts[0].pods, limits).chain
    return _Scoped(holding, group, chain, search).find(within, parts, limits)


@dataclass(slots=True)
class _Scoped:
    """One search with constraints: a part at a time, the larger first; a choice is taken back when the rest fails."""

    holding: Holding
    group: Group
    chain: Chain
    search: MakeSearch
    tried: int = 0

    def find(self, within: str, parts: Sequence[Part], limits: Limits | None) -> dict[int, Spot] | None:
        """The first of the outer cells in which all parts find a place."""
        need = sum(pod.leaves for part in parts for pod in part.pods)
        for scope in self._scopes(within, limits, need):
            with self.holding.journal.trial(), self.holding.health.later(settle=False):
                spots = self._rest(parts, scope)
            if spots is not None:
                return spots
        return None

    def _rest(self, parts: Sequence[Part], limits: Limits | None) -> dict[int, Spot] | None:
        """Spots for these parts inside ``limits``; inside a trial."""
        if not parts:
            return {}
        part, journal = parts[0], self.holding.journal
        for scope in self._scopes(part.within, _meet(limits, part.inside), sum(pod.leaves for pod in part.pods)):
            spots = find(self.search(part.pods, scope))
            if spots is None:
                continue
            if len(parts) == 1:
                return spots
            mark = journal.mark()
            self._occupy(spots)
            rest = self._rest(parts[1:], limits)
            if rest is not None:
                return spots | rest
            journal.rewind(mark)
        return None

    def _occupy(self, spots: dict[int, Spot]) -> None:
        """Let the leaves look taken to the parts that follow."""
        stand_in = Held(self.group, list(spots.values()), State.PREEMPTING, 0)
        for spot in spots.values():
            if self.group.priority == OPPORTUNISTIC:
                self.holding.run(stand_in, spot)
            else:
                self.holding.reserve(stand_in, spot)

    def _scopes(self, kind: str, limits: Limits | None, need: int) -> Iterator[Limits | None]:
        """The cells of a type as limits, the tightest with enough leaves first; ``limits`` itself without a type."""
        if not kind:
            yield limits
            return
        level = self.chain.level_of.get(kind)
        if level is None:
            return
        rated = []
        for cell in self.chain.at_level(level):
            scope = scope_of(cell, limits)
            room = sum((mask & node.idle()).bit_count() for node, mask in scope.items())
            if sum(mask.bit_count() for mask in scope.values()) >= need:
                rated.append((room < need, room, cell.number, scope))
        rated.sort(key=lambda each: each[:3])
        for *_, scope in rated:
            self.tried += 1
            if self.tried > MOST_SCOPES:
                return
            yield scope


def _meet(limits: Limits | None, others: Limits | None) -> Limits | None:
    """What both allow."""
    if limits is None or others is None:
        return others if limits is None else limits
    return {node: mask & others[node] for node, mask in limits.items() if others.get(node, 0) & mask}


def scope_of(cell: PhysicalCell, limits: Limits | None) -> dict[Node, int]:
    """The nodes and leaves in a cell, as far as ``limits`` allow."""
    if cell.node is not None:
        found = {cell.node: cell.mask}
    else:
        found = {}
        stack = [cell]
        while stack:
            at = stack.pop()
            if isinstance(at, Node):
                found[at] = at.mask
            else:
                stack.extend(reversed(at.children))
    if limits is None:
        return found
    return {node: mask & limits[node] for node, mask in found.items() if limits.get(node, 0) & mask}
