"""Which sets of victims could be enough at all: told by counting, so that only those are searched.

A pod of s leaves needs one of the ``leaves // s`` slots that a unit has for it. Enough slots for every size are
necessary, not sufficient; and what is counted is never less than what a search could use, so that no set is left out
that would do.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import accumulate

from pai_backend.scheduling.cells.tree import Held, Node, Quotas, QuotaUnit
from pai_backend.scheduling.core.search import Budget, Limits

VICTIMS_A_CELL = 16
"""How many victims are gone through at the cost of looking at one cell."""
_TINY = 1e-9
"""Sums of worths may be so much too small."""
Rows = Sequence[Sequence[float]]
"""Per size, the worth of each victim."""
Change = tuple[int, int]
"""Leaves that are free before and after some groups end."""


class Sieve:
    """Counts for one quota and the pods of one group; good as long as the cluster does not change."""

    def __init__(
        self,
        quotas: Quotas,
        sizes: Mapping[int, int],
        victims: Collection[Held],
        gone: Collection[Held],
        limits: Limits | None,
        budget: Budget,
    ) -> None:
        """``sizes`` are pods by number of leaves; any ``victims`` may make way, those that are ``gone`` end anyway."""
        self.quotas = quotas
        self.limits = limits
        self.gone = dict.fromkeys(gone)
        self._victims = frozenset(victims)
        self.budget = budget
        self._unbound: Counter[int] = Counter(unit.size for unit in quotas.units if unit.physical is None)
        """Units that stand on nothing, by number of leaves."""
        self._open: Counter[int] = Counter()
        """Nodes by the free leaves that belong to no unit; counted only where units stand on nothing."""
        self._missing: dict[int, int] = {}
        """Per size, the slots that units which stand on something lack."""
        self._worth: dict[int, dict[Held, float]] = {size: {} for size in sizes}
        """Per size and group, at most so many slots more when it makes way, be it with others."""
        rooms = self._weigh()
        for size in sizes:
            needed = sum(count * (other // size) for other, count in sizes.items())
            self._missing[size] = needed - _slots(rooms, size)

    def _weigh(self) -> Counter[int]:
        """Count what is free and what each group is worth; answers units that stand on something by free leaves."""
        rooms: Counter[int] = Counter()
        for unit in self.quotas.units:
            cell = unit.physical
            if cell is not None and cell.node is not None:
                free = (self._free(cell.node) & cell.mask).bit_count()
                rooms[free] += 1
                self._credit(cell.node, cell.mask, free)
        for node in self.quotas.chain.nodes if self._unbound else ():
            mask = _unowned(node) if node.virtual is None else 0
            free = (self._free(node) & mask).bit_count() if mask else 0
            self._open[free] += 1
            if mask:
                self._credit(node, mask, free)
        return rooms

    def _credit(self, node: Node, mask: int, free: int) -> None:
        """Of these leaves ``free`` idle: what are the groups on the others worth?

        The next slot of s leaves comes when s - free % s more are free, each further one after s more. A curve through
        these points that bends down gives groups together no more than each alone, so that worths may be summed up.
        """
        if self.limits is not None:
            mask &= self.limits.get(node, 0)
        found = [
            (held, (where & mask).bit_count())
            for holders in (node.running, node.reserving)
            for held, where in holders.items()
            if held in self._victims and where & mask
        ]
        for size, worth in self._worth.items() if found else ():
            next_slot = size - free % size
            for held, leaves in found:
                more = leaves / next_slot if leaves <= next_slot else 1 + (leaves - next_slot) / size
                worth[held] = worth.get(held, 0.0) + more

    def sets(self, victims: Sequence[Held], count: int, always: Collection[Held] = ()) -> Iterator[tuple[Held, ...]]:
        """Sets of so many victims that together with ``always`` could be worth enough.

        In the order of ``victims``, while there is budget.
        """
        lacking, rows = [], []
        for size, missing in sorted(self._missing.items(), reverse=True):
            short = missing - self._openings(size, ()) - sum(self._worth_of(held, size) for held in always)
            if short > _TINY:
                lacking.append(short)
                rows.append([self._worth_of(held, size) for held in victims])
        best = [list(accumulate(sorted(row, reverse=True)[:count], initial=0.0)) for row in rows]
        for indexes in self._choose(rows, best, 0, count, lacking, len(victims)) if count <= len(victims) else ():
            yield tuple(victims[index] for index in indexes)

    def _choose(
        self, rows: Rows, best: Rows, first: int, count: int, lacking: Sequence[float], end: int
    ) -> Iterator[tuple[int, ...]]:
        """Numbers from ``first`` on, so many of them, whose worths make up for what is lacking of each size.

        ``best`` are, for each size, the highest sums of the worths of 0, 1, ... of them.
        """
        if not count:
            if not lacking:
                yield ()
            return
        if not self.budget.spend(2 + (end - first) // VICTIMS_A_CELL):
            return
        found: Sequence[int] = range(first, end - count + 1)
        for row, short, most in zip(rows, lacking, best, strict=True):
            least = short - most[count - 1] - _TINY
            found = [index for index in found if row[index] >= least]
        for index in found:
            if count == 1:
                yield (index,)
            else:
                rest = [short - row[index] for row, short in zip(rows, lacking, strict=True)]
                for others in self._choose(rows, best, index + 1, count - 1, rest, end):
                    yield (index, *others)
            if self.budget.left < 0:
                return

    def _worth_of(self, held: Held, size: int) -> float:
        """At most so many slots more. One that can be displaced may leave its units, which can then stand elsewhere."""
        more = self._worth[size].get(held, 0.0)
        if held.group.lazy_preemption:
            if self.quotas.chain.broken:
                return more + self.quotas.leaves
            # The unit may stand on another cell, and another unit on this one.
            more += 2 * sum(spot.unit.size for spot in held.spots if spot.unit is not None)
        return more

    def admits(self, victims: Collection[Held], displaced: Collection[Held]) -> bool:
        """Whether there could be room when ``victims`` make way; those of them in ``displaced`` leave their units."""
        if displaced and self.quotas.chain.broken:
            # A cell that is freed may take the place of a bad one elsewhere, which is not counted here.
            return True
        ending = set(victims)
        left = {spot.unit for held in displaced for spot in held.spots}
        owned: list[Change] = []
        opened: list[Change] = []
        for node in nodes_of(victims):
            before, after = self._free(node), self._free(node, ending)
            for unit in node.units:
                if unit.quotas is self.quotas and unit.physical is not None:
                    mask = unit.physical.mask
                    owned.append(
                        ((before & mask).bit_count(), unit.size if unit in left else (after & mask).bit_count())
                    )
            opened.append(((before & _unowned(node)).bit_count(), (after & _unowned(node, left)).bit_count()))
        return all(
            missing <= sum(after // size - before // size for before, after in owned) + self._openings(size, opened)
            for size, missing in self._missing.items()
        )

    def _free(self, node: Node, ending: Collection[Held] = ()) -> int:
        """Healthy leaves that may be used and that idle, once these have ended."""
        if not ending and not self.gone:
            free = node.idle()
        else:
            taken = node.broken
            for holders in (node.running, node.reserving):
                for held, mask in holders.items():
                    if held not in ending and held not in self.gone:
                        taken |= mask
            free = node.mask & ~taken
        return free if self.limits is None else free & self.limits.get(node, 0)

    def _openings(self, size: int, changes: Collection[Change]) -> int:
        """Slots for units that stand on nothing, were they to stand on the nodes that have the most."""
        left = self._unbound.total()
        if not left:
            return 0
        rooms = Counter(self._open)
        for before, after in changes:
            rooms[before] -= 1
            rooms[after] += 1
        found = 0
        for room in sorted(rooms, reverse=True):
            count = min(rooms[room], left)
            found += count * (room // size)
            left -= count
        return min(found, _slots(self._unbound, size))


def nodes_of(victims: Collection[Held]) -> dict[Node, None]:
    """The nodes on which these groups have leaves."""
    return dict.fromkeys(spot.node for held in victims for spot in held.spots)


def _slots(rooms: Mapping[int, int], size: int) -> int:
    return sum(count * (leaves // size) for leaves, count in rooms.items())


def _unowned(node: Node, left: Collection[QuotaUnit | None] = ()) -> int:
    """The leaves of a node on which no unit stands, apart from units that are ``left``."""
    mask = node.mask
    for unit in node.units:
        if unit.physical is not None and unit not in left:
            mask &= ~unit.physical.mask
    return mask
