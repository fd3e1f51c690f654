"""A place for a group in one part of the cluster: first the quick way, which is HiveD's, then the exact one.

The quick way takes pods by size, smallest first, and goes through the nodes, fullest first, without ever going back;
then finds physical cells for virtual ones that have none; then chooses leaves. It can miss a feasible gang of unequal
pods, so what it does not find :mod:`~pai_backend.scheduling.core.scope` looks for.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from pai_backend.scheduling.cells.binding import Binder
from pai_backend.scheduling.cells.ranking import Ranking
from pai_backend.scheduling.cells.tree import Chain, Held, Node, PhysicalCell, Quotas, QuotaUnit, Spot, VirtualCell

BUDGET = 4_000
"""How many cells the exact searches for one decision may look at, some 10 ms. A gang of unequal pods whose search space
is larger and that no simple order fits may wait although a place exists; so may a smaller set of victims be missed."""

Spare = Callable[[Held], bool]
Limits = Mapping[Node, int]
"""Nodes that may be used, with the leaves of each that may."""


@dataclass(slots=True)
class Budget:
    """What is left to spend on one decision."""

    left: int = BUDGET

    def spend(self, cost: int) -> bool:
        """Whether there was enough."""
        self.left -= cost
        return self.left >= 0


@dataclass(slots=True)
class Pod:
    """One pod to place."""

    ordinal: int
    leaves: int


@dataclass(slots=True)
class Plan:
    """Spots by pod ordinal, and what must make way: ``evicted`` ends, ``cancelled`` gives up its reservation.

    ``displaced`` was lazily preempted before this place was looked for.
    """

    spots: dict[int, Spot]
    evicted: list[Held] = field(default_factory=list)
    cancelled: list[Held] = field(default_factory=list)
    displaced: list[Held] = field(default_factory=list)


@dataclass(slots=True)
class Search:
    """One look for a place. ``quotas`` None looks among all nodes of the chain, as opportunistic groups do.

    ``spare`` says whose leaves count as free; no group's when None. ``gone`` are groups that end anyway.
    """

    chain: Chain
    quotas: Quotas | None
    pods: Sequence[Pod]
    binder: Binder
    spare: Spare | None = None
    limits: Limits | None = None
    places: Sequence[QuotaUnit] | None = None
    """Where to look instead, in this order; None for everywhere, fullest first."""
    budget: Budget = field(default_factory=Budget)
    packed: bool = False
    """Whether the quick way got as far as assigning pods to units."""

    def sizes(self) -> dict[int, int]:
        """Pods by number of leaves."""
        return Counter(pod.leaves for pod in self.pods)

    def ranking(self) -> Ranking[QuotaUnit] | Ranking[Node]:
        """The order in which places are tried."""
        return self.chain.ranking if self.quotas is None else self.quotas.ranking

    def quick(self) -> dict[int, Spot] | None:
        """Spots by pod ordinal as the quick way finds them, None when it finds none."""
        packed = self._pack()
        if packed is None:
            return None
        self.packed = True
        if self.quotas is None:
            opened: dict[QuotaUnit, PhysicalCell] = {}
        else:
            found = self._open(
                {unit: sum(pod.leaves for pod in pods) for unit, pods in packed if isinstance(unit, QuotaUnit)}
            )
            if found is None:
                return None
            opened = found
        return self.spots(
            [(place, opened.get(place) if isinstance(place, QuotaUnit) else place, pods) for place, pods in packed]
        )

    def spots(
        self, packed: Sequence[tuple[QuotaUnit | Node, PhysicalCell | None, Sequence[Pod]]]
    ) -> dict[int, Spot] | None:
        """Choose leaves for pods that are assigned to units (or to nodes, when opportunistic)."""
        spots: dict[int, Spot] = {}
        gone: set[Held] = set()
        for place, cell, pods in packed:
            unit = place if isinstance(place, QuotaUnit) else None
            real = place.physical if isinstance(place, QuotaUnit) and place.physical is not None else cell
            if real is None or real.node is None:
                return None
            node = real.node
            room = make_room(node, self.room(real), sum(pod.leaves for pod in pods), gone)
            owned = "" if unit is None else self.chain.types[unit.root.level]
            avoid = 0 if unit is None else node.oppo & ~room
            for pod in pods:
                mask = node.shape.choose(room & node.idle(), pod.leaves, avoid) or node.shape.choose(
                    room, pod.leaves, avoid
                )
                if not mask:
                    return None
                room &= ~mask
                spots[pod.ordinal] = Spot(node, mask, unit, None if unit is None else real, owned)
        return spots

    def room(self, cell: PhysicalCell) -> int:
        """Leaves of a cell at or below the node level that this search may use."""
        node = cell.node
        if node is None:
            return 0
        if self.spare is None:
            room = cell.mask & node.idle()
        else:
            taken = node.broken
            for holders in (node.running, node.reserving):
                for held, mask in holders.items():
                    if not self.spare(held):
                        taken |= mask
            room = cell.mask & ~taken
        return room if self.limits is None else room & self.limits.get(node, 0)

    def capacity(self, place: QuotaUnit | Node) -> int:
        """Leaves a unit or node offers; an unbound unit offers all, if a cell for it is found."""
        if self.spare is None and self.limits is None:
            return place.free
        if isinstance(place, Node):
            return self.room(place).bit_count()
        return place.size if place.physical is None else self.room(place.physical).bit_count()

    def candidates(self, least: int) -> Iterator[QuotaUnit | Node]:
        """Units or nodes in the order in which they are tried."""
        if self.places is not None:
            return iter(self.places)
        return self.ranking().fitting(least) if self.spare is None else self.ranking().everything()

    def _pack(self) -> list[tuple[QuotaUnit | Node, list[Pod]]] | None:
        """Pods assigned to units or nodes: smallest pods first, a pointer that only moves forward."""
        packed: list[tuple[QuotaUnit | Node, list[Pod]]] = []
        places = self.candidates(self.pods[0].leaves)
        left, size = -1, self.pods[0].leaves
        for pod in self.pods:
            if pod.leaves != size and left < pod.leaves:
                size = pod.leaves
                places = self._onward(packed[-1][0], size)
            while left < pod.leaves:
                place = next(places, None)
                if place is None:
                    return None
                left = self.capacity(place)
                if left >= pod.leaves:
                    packed.append((place, []))
            packed[-1][1].append(pod)
            left -= pod.leaves
        return packed

    def _onward(self, last: QuotaUnit | Node, least: int) -> Iterator[QuotaUnit | Node]:
        """Candidates behind ``last``."""
        if self.places is not None:
            places = iter(self.places)
            for place in places:
                if place is last:
                    break
            return places
        at = (last.rank, last.stamp)
        return (place for place in self.candidates(least) if (place.rank, place.stamp) > at)

    # -- virtual cells that stand on nothing yet --------------------------------------------------------------------

    def _open(self, needs: Mapping[QuotaUnit, int]) -> dict[QuotaUnit, PhysicalCell] | None:
        """Physical cells for the unbound ones of these units, which need so many leaves each."""
        wanted: dict[VirtualCell, list[QuotaUnit]] = {}
        for unit in needs:
            if unit.physical is None:
                wanted.setdefault(unit.root, []).append(unit)
        if not wanted:
            return {}
        if len(wanted) == 1:
            ((root, units),) = wanted.items()
            return self._place_root(root, units, needs)
        opened: dict[QuotaUnit, PhysicalCell] = {}
        with self.binder.journal.trial():
            for root, units in wanted.items():
                found = self._place_root(root, units, needs)
                if found is None:
                    return None
                opened.update(found)
                for unit, cell in found.items():
                    self.binder.bind(unit, cell)
        return opened

    def _place_root(
        self, root: VirtualCell, units: Sequence[QuotaUnit], needs: Mapping[QuotaUnit, int]
    ) -> dict[QuotaUnit, PhysicalCell] | None:
        """Cells for units of one quota cell, which itself may need one."""
        paths = _paths(units)
        if root.physical is not None:
            return self._match(root, root.physical, paths, needs)
        found: dict[QuotaUnit, PhysicalCell] = {}

        def fits(cell: PhysicalCell) -> bool:
            match = self._match(root, cell, paths, needs)
            if match is None:
                return False
            found.update(match)
            return True

        idle = sum(needs[unit] for unit in units) if self.spare is None else 0
        return found if self.chain.buddy.first(root.level, fits, idle) is not None else None

    def _match(
        self,
        cell: VirtualCell,
        real: PhysicalCell,
        paths: Mapping[VirtualCell, Sequence[VirtualCell]],
        needs: Mapping[QuotaUnit, int],
    ) -> dict[QuotaUnit, PhysicalCell] | None:
        """Let ``cell`` stand on ``real`` and find places for what is needed below it; tries alternatives in order."""
        if isinstance(cell, QuotaUnit):
            return {cell: real} if self.room(real).bit_count() >= needs[cell] else None
        children = paths[cell]
        bound = [child for child in children if child.physical is not None]
        found: dict[QuotaUnit, PhysicalCell] = {}
        for child in bound:
            assert child.physical is not None
            match = self._match(child, child.physical, paths, needs)
            if match is None:
                return None
            found.update(match)
        open_children = [child for child in children if child.physical is None]
        places = (each for each in real.children if each.virtual is None)
        ordered = sorted(places, key=_load) if real.opportunistic else list(places)
        rest = self._assign(open_children, ordered, paths, needs)
        return None if rest is None else found | rest

    def _assign(
        self,
        cells: Sequence[VirtualCell],
        places: Sequence[PhysicalCell],
        paths: Mapping[VirtualCell, Sequence[VirtualCell]],
        needs: Mapping[QuotaUnit, int],
    ) -> dict[QuotaUnit, PhysicalCell] | None:
        """Each cell on its own place; backtracks, since an early choice may take a later one's only place."""
        if not cells:
            return {}
        if all(isinstance(cell, QuotaUnit) for cell in cells):
            return self._assign_units([cell for cell in cells if isinstance(cell, QuotaUnit)], places, needs)
        for index, place in enumerate(places):
            match = self._match(cells[0], place, paths, needs) if self.budget.spend(1) else None
            if match is None:
                continue
            rest = self._assign(cells[1:], [*places[:index], *places[index + 1 :]], paths, needs)
            if rest is not None:
                return match | rest
        return None

    def _assign_units(
        self, units: Sequence[QuotaUnit], places: Sequence[PhysicalCell], needs: Mapping[QuotaUnit, int]
    ) -> dict[QuotaUnit, PhysicalCell] | None:
        """Each unit on the first place that will do, in order; where that fails, the neediest first.

        The second is exact: a place that serves the neediest serves the others too.
        """
        rooms = [(place, self.room(place).bit_count()) for place in places]
        found = self._first_fit(units, rooms, needs)
        if found is None and len({needs[unit] for unit in units}) > 1:
            found = self._first_fit(sorted(units, key=lambda unit: -needs[unit]), rooms, needs)
        return found

    def _first_fit(
        self, units: Sequence[QuotaUnit], rooms: Sequence[tuple[PhysicalCell, int]], needs: Mapping[QuotaUnit, int]
    ) -> dict[QuotaUnit, PhysicalCell] | None:
        found: dict[QuotaUnit, PhysicalCell] = {}
        left = list(rooms)
        for unit in units:
            at = next((index for index, (_, room) in enumerate(left) if room >= needs[unit]), None)
            if at is None:
                return None
            found[unit] = left.pop(at)[0]
        return found


def _load(cell: PhysicalCell) -> int:
    return cell.opportunistic


def _paths(units: Sequence[QuotaUnit]) -> dict[VirtualCell, list[VirtualCell]]:
    """For each virtual cell above the units, its children on the way to them, in order of first use."""
    paths: dict[VirtualCell, list[VirtualCell]] = {}
    for unit in units:
        at: VirtualCell = unit
        while at.parent is not None:
            children = paths.setdefault(at.parent, [])
            if at in children:
                break
            children.append(at)
            at = at.parent
    return paths


# -- leaves that are still in use --------------------------------------------------------------------------------------


def make_room(node: Node, room: int, count: int, gone: set[Held]) -> int:
    """At least ``count`` leaves of ``room`` as a mask, at the price of the fewest groups; 0 when there are not so many.

    Idle leaves first, those of groups that go anyway, then whole groups: opportunistic ones before guaranteed ones, and
    of those the largest, unless a smaller one is enough. That is the smallest number of groups, since no two share a
    leaf. Adds to ``gone`` who must go.
    """
    if room.bit_count() < count:
        return 0
    idle = room & node.idle()
    if idle.bit_count() >= count:
        return idle
    holders = _holders(node, room)
    for held, mask in holders:
        if held in gone:
            idle |= mask
    blocks = [(held, mask) for held, mask in holders if held not in gone]
    missing = count - idle.bit_count()
    cheap = [block for block in blocks if block[0].priority < 0]
    dear = [block for block in blocks if block[0].priority >= 0]
    from_dear = _fewest(dear, missing - sum(mask.bit_count() for _, mask in cheap))
    missing -= sum(mask.bit_count() for _, mask in from_dear)
    for held, mask in (*from_dear, *_fewest(cheap, missing)):
        idle |= mask
        gone.add(held)
    return idle


def _holders(node: Node, room: int) -> list[tuple[Held, int]]:
    """Groups on these leaves; a preemptor only with leaves on which nothing runs any more."""
    running = [(held, mask & room) for held, mask in node.running.items() if mask & room]
    busy = node.guaranteed | node.oppo
    waiting = [(held, mask & room & ~busy) for held, mask in node.reserving.items() if mask & room & ~busy]
    return sorted(running + waiting, key=lambda block: block[1] & -block[1])


def _fewest(blocks: list[tuple[Held, int]], missing: int) -> list[tuple[Held, int]]:
    """The fewest blocks with ``missing`` leaves in all: the largest ones, and last the first that is enough."""
    left = list(blocks)
    taken = []
    while missing > 0 and left:
        enough = (block for block in left if block[1].bit_count() >= missing)
        block = next(enough, None) or max(left, key=lambda each: each[1].bit_count())
        left.remove(block)
        taken.append(block)
        missing -= block[1].bit_count()
    return taken
