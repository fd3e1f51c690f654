"""Why a group found no place: arithmetic first, then the same search again with one obstacle removed.

Only called after everything failed, so it may cost about as much as the search did.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice

from pai_backend.scheduling.cells.ranking import could_hold
from pai_backend.scheduling.cells.tree import Held, State
from pai_backend.scheduling.core.elastic import empty, has_to_spread, spread
from pai_backend.scheduling.core.place import Option, Planner
from pai_backend.scheduling.core.scope import parts_of
from pai_backend.scheduling.core.search import Limits, Spare
from pai_backend.scheduling.core.trees import Trees
from pai_backend.scheduling.request import MOST_HOLDERS, OPPORTUNISTIC, Group, Reason, WaitCode


def diagnose(trees: Trees, group: Group, options: Sequence[Option], limits: Limits | None) -> Reason:
    """The binding constraint, the numbers behind it and who holds what is needed."""
    return _Diagnosis(trees, group, options, limits).reason()


class _Diagnosis:
    """One question: numbers are those of the chain that comes closest."""

    def __init__(self, trees: Trees, group: Group, options: Sequence[Option], limits: Limits | None) -> None:
        self.trees = trees
        self.group = group
        self.options = options
        self.limits = limits
        self.parts = parts_of(group, group.least)
        self.sizes = Counter(pod.leaves for part in self.parts for pod in part.pods)
        self.spread = has_to_spread(group, options)
        self.needed = sum(size * count for size, count in self.sizes.items())

    def reason(self) -> Reason:
        """The first constraint that applies, most permanent first."""
        if not self.options:
            return Reason(WaitCode.QUOTA, self.group.vc, self.needed, max(self.sizes))
        if self._most(_owned) < self.needed:
            return self._of(WaitCode.QUOTA)
        alone = [empty(option) for option in self.options]
        together = [sum(alone, Counter[int]())] if self.spread else alone
        if not any(could_hold(units.items(), self.sizes) for units in together):
            return self._of(WaitCode.SHAPE)
        damaged = [option.chain for option in self.options if option.chain.broken]
        bad = [node.name for chain in damaged for node in chain.nodes if node.broken]
        if bad and self._fits_when_healthy():
            return self._of(WaitCode.BAD_NODES, nodes=bad)
        if self.limits is not None and self._fits(None, None):
            every = (node for option in self.options for node in option.chain.nodes)
            return self._of(WaitCode.NOT_SUGGESTED, nodes=(node.name for node in every if not self.limits.get(node)))
        kept = any(option.chain.reserved for option in self.options)
        others = self.trees.groups.values() if kept else ()
        waiting = sorted((held for held in others if held.state is State.PREEMPTING), key=lambda held: held.serial)
        if waiting and self._fits(self.limits, lambda held: held.state is State.PREEMPTING):
            return self._of(WaitCode.RESERVED, holders=waiting)
        if self._most(self._free) >= self.needed:
            return self._of(WaitCode.FRAGMENTED, within=self.group.within, holders=self._holders())
        return self._of(WaitCode.BEYOND_PRIORITY, holders=self._holders())

    def _most(self, count: Callable[[Option], int]) -> int:
        """Leaves of the chain that has the most of them, or of all for a group that lies in several."""
        counts = [count(option) for option in self.options]
        return sum(counts) if self.spread else max(counts)

    def _fits(self, limits: Limits | None, spare: Spare | None) -> bool:
        if self.spread:
            ways = (False, True) if spare is None else (False,)
            place = (spread(self.trees.holding, self.group, self.options, limits, evicting=way) for way in ways)
            return any(plan is not None for plan in place)
        planner = Planner(self.trees.holding, self.group, self.parts, limits)
        if any(planner.look(option, spare) is not None for option in self.options):
            return True
        return spare is None and planner.evicting(self.options) is not None

    def _fits_when_healthy(self) -> bool:
        with self.trees.journal.trial():
            for option in self.options:
                for node in option.chain.nodes:
                    if node.broken:
                        self.trees.health.set(node, 0)
            self.trees.settle(self.options)
            return self._fits(self.limits, None)

    def _free(self, option: Option) -> int:
        """Leaves that no group of this priority or a higher one holds; bad ones do not count."""
        if option.quotas is None:
            return sum(free * count for free, count in enumerate(option.chain.ranking.count))
        if self.group.priority == 0:
            return sum(free * count for free, count in enumerate(option.quotas.ranking.count))
        beyond = sum(leaves for priority, leaves in option.quotas.owned.items() if priority >= self.group.priority)
        broken = sum(
            (unit.physical.mask & unit.physical.node.broken & ~unit.used).bit_count()
            for unit in (option.quotas.units if option.chain.broken else ())
            if unit.physical is not None and unit.physical.node is not None
        )
        return option.quotas.leaves - beyond - broken

    def _holders(self) -> Iterator[Held]:
        """Groups that are in the way and cannot be ended for this one."""
        for option in self.options:
            if option.quotas is not None:
                owners = option.quotas.oldest_first()
                yield from (held for held in owners if held.group.priority >= self.group.priority)
            else:
                others = sorted(self.trees.groups.values(), key=lambda held: held.serial)
                yield from (held for held in others if held.chain == option.chain.name)

    def _of(
        self, code: WaitCode, *, holders: Iterable[Held] = (), nodes: Iterable[str] = (), within: str = ""
    ) -> Reason:
        best = max(self.options, key=self._free)
        ranking = best.chain.ranking if best.quotas is None else best.quotas.ranking
        return Reason(
            code,
            self.group.vc if self.group.priority != OPPORTUNISTIC else "",
            self.needed,
            max(self.sizes),
            owned=self._most(_owned),
            free=max(0, self._most(self._free)),
            largest=max((free for free, count in enumerate(ranking.count) if count), default=0),
            within=within,
            holders=tuple(held.group.name for held in islice(holders, MOST_HOLDERS)),
            nodes=tuple(islice(_unlike(nodes), MOST_HOLDERS)),
        )


def _owned(option: Option) -> int:
    return option.quotas.leaves if option.quotas is not None else sum(top.leaves for top in option.chain.tops)


def _unlike(names: Iterable[str]) -> Iterator[str]:
    """Each once."""
    seen: set[str] = set()
    for name in names:
        if name not in seen:
            seen.add(name)
            yield name
