"""A plan for a whole group: which chain, which scope, and at what price to others.

Nothing is evicted while any chain has room. Then opportunistic groups go, then groups of lower priority of the same
virtual cluster; among such plans the one that ends the fewest.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, partial

from pai_backend.scheduling.cells.holding import Holding
from pai_backend.scheduling.cells.tree import Chain, Held, Quotas, QuotaUnit, Spot, State
from pai_backend.scheduling.core.scope import Part, find_parts
from pai_backend.scheduling.core.search import Budget, Limits, Plan, Pod, Search, Spare
from pai_backend.scheduling.core.sieve import Sieve, nodes_of
from pai_backend.scheduling.request import OPPORTUNISTIC, Group

COUNT_COST = 2
"""What it costs of the budget to count whether a set of victims could be enough, and as much for each of their pods."""
TRIAL_COST = 20
"""What it costs to look for a place at the expense of a set of victims, apart from the nodes that are looked at."""
NODE_COST = 3
"""What each of these costs."""


@dataclass(slots=True)
class Option:
    """A chain in which a group may be placed; ``quotas`` None for opportunistic groups."""

    chain: Chain
    quotas: Quotas | None

    def holds(self, sizes: Mapping[int, int]) -> bool:
        """Whether what idles might hold so many pods of so many leaves each; no means no."""
        return (self.chain.ranking if self.quotas is None else self.quotas.ranking).holds(sizes)


@dataclass(slots=True)
class Planner:
    """Plans one group. ``parts`` are its pods, by the cell that must contain them."""

    holding: Holding
    group: Group
    parts: Sequence[Part]
    limits: Limits | None = None
    whole: bool = True
    """Whether ``parts`` are the whole group, which then has to lie in one cell of the type it names."""
    budget: Budget = field(default_factory=Budget)

    def evicting(self, options: Sequence[Option]) -> Plan | None:
        """The cheapest plan that ends others, None when even that makes no room."""
        if self.group.priority == OPPORTUNISTIC:
            return None
        for ceiling in (0, self.group.priority):
            plans = [
                plan
                for option in options
                if _worth_trying(option, ceiling) and (plan := self._evict(option, ceiling)) is not None
            ]
            if plans:
                return min(plans, key=price)
        return None

    def look(self, option: Option, spare: Spare | None, places: Sequence[QuotaUnit] | None = None) -> Plan | None:
        """A place in one chain, whatever is on leaves of groups that ``spare`` accepts; in ``places`` when given."""
        binder = self.holding.binder

        def search(pods: Sequence[Pod], limits: Limits | None) -> Search:
            return Search(option.chain, option.quotas, pods, binder, spare, limits, places, self.budget)

        within = self.group.within if self.whole else ""
        spots = find_parts(self.holding, self.group, within, self.parts, search, self.limits)
        return None if spots is None else make_plan(spots)

    def _evict(self, option: Option, ceiling: int) -> Plan | None:
        """The plan HiveD would make, or a cheaper one."""

        def spare(held: Held) -> bool:
            return held.priority < ceiling

        plan = self._displacing(option, self.look(option, spare), spare)
        if plan is None or price(plan) <= _least_price(option, ceiling):
            return plan
        assert option.quotas is not None
        places = sorted(option.quotas.ranking.everything(), key=_load)
        other = self._displacing(option, self.look(option, spare, places), spare)
        plan = plan if other is None else min(plan, other, key=price)
        return self._refine(option, plan, ceiling)

    def _displacing(self, option: Option, plan: Plan | None, spare: Spare) -> Plan | None:
        """Victims that allow it are turned opportunistic first, and the place is looked for again."""
        if plan is None:
            return None
        lazy = [held for held in plan.evicted if is_lazy(held)]
        if not lazy:
            return plan
        with self.holding.journal.trial():
            self._displace(option, lazy)
            again = self.look(option, None) or self.look(option, _below(0)) or self.look(option, spare)
            if again is not None:
                again.displaced = lazy
            return again

    def _displace(self, option: Option, lazy: Sequence[Held]) -> None:
        """Turn these opportunistic, inside a trial; units that they leave are found at once."""
        for held in lazy:
            displace(self.holding, held, self.group.name)
        if option.quotas is not None:
            option.quotas.ranking.settle()

    def _refine(self, option: Option, plan: Plan, ceiling: int) -> Plan:
        """Look for a smaller set of groups that is enough, smallest sets first, as far as the budget goes."""
        dear, cheap = _victims(option, ceiling)
        none = cache(partial(self._sieve, option, (*dear, *cheap), ()))
        if ceiling == 0:
            return self._sparing(option, none, (), cheap, plan)
        most = self._sieve(option, dear, cheap)
        giving_way = sum(_gives_way(held) for held in dear)
        best = plan
        for count in range(1, price(plan)[0] + 1):
            least = (count, max(0, count - giving_way))
            for ending in most.sets(dear, count):
                found = self._ending(option, most, ending)
                if found is not None:
                    best = self._sparing(option, none, ending, cheap, min(best, found, key=price))
                if price(best) <= least:
                    return best
            if price(best) <= least or self.budget.left < 0:
                return best
        return best

    def _sparing(
        self, option: Option, sieve: Callable[[], Sieve], dear: Sequence[Held], cheap: Sequence[Held], best: Plan
    ) -> Plan:
        """The cheapest plan that ends only ``dear`` and some of ``cheap``, or ``best`` when none is cheaper."""
        ended = sum(not _gives_way(held) for held in dear)
        for count in range(0 if dear else 1, price(best)[1] - ended if price(best)[0] == len(dear) else 0):
            for ending in sieve().sets(cheap, count, dear):
                found = self._ending(option, sieve(), (*dear, *ending))
                if found is not None:
                    return min(best, found, key=price)
        return best

    def _sieve(self, option: Option, victims: Sequence[Held], gone: Sequence[Held]) -> Sieve:
        assert option.quotas is not None
        sizes = Counter(pod.leaves for part in self.parts for pod in part.pods)
        return Sieve(option.quotas, sizes, victims, gone, self.limits, self.budget)

    def _ending(self, option: Option, sieve: Sieve, victims: Sequence[Held]) -> Plan | None:
        """A plan when exactly these, and who is gone anyway, may be ended or displaced."""
        lazy = [held for held in victims if is_lazy(held)]
        if not self.budget.spend(COUNT_COST * (1 + sum(len(held.spots) for held in victims))):
            return None
        if not sieve.admits(victims, lazy):
            return None
        ending = sieve.gone | dict.fromkeys(victims)
        with self.holding.journal.trial():
            self._displace(option, lazy)
            places = self._near(sieve.quotas, ending)
            if not self.budget.spend(TRIAL_COST + NODE_COST * len(places)):
                return None
            plan = self.look(option, ending.__contains__, places)
            if plan is not None:
                plan.displaced = lazy
            return plan

    def _near(self, quotas: Quotas, victims: Collection[Held]) -> list[QuotaUnit]:
        """Units with room for the smallest pod when these make way: where the fewest groups are first, then fullest."""
        found = dict.fromkeys(quotas.ranking.fitting(min(pod.leaves for part in self.parts for pod in part.pods)))
        found.update((unit, None) for node in nodes_of(victims) for unit in node.units if unit.quotas is quotas)
        return sorted(found, key=lambda unit: (*_load(unit), unit.rank, unit.stamp))


def price(plan: Plan) -> tuple[int, int]:
    """Groups that lose what their virtual cluster owns (or a reservation), then groups that end."""
    displaced = set(plan.displaced)
    dear = sum(held.priority >= 0 and held not in displaced for held in plan.evicted)
    return dear + len(plan.displaced) + len(plan.cancelled), len(plan.evicted)


def make_plan(spots: dict[int, Spot]) -> Plan:
    """A plan for these spots, with everybody who is in the way."""
    evicted: dict[Held, None] = {}
    cancelled: dict[Held, None] = {}
    for spot in spots.values():
        busy = spot.mask & (spot.node.guaranteed | spot.node.oppo | spot.node.reserved)
        if busy:
            evicted.update((held, None) for held, mask in spot.node.running.items() if mask & busy)
            cancelled.update((held, None) for held, mask in spot.node.reserving.items() if mask & busy)
    return Plan(spots, sorted(evicted, key=_serial), sorted(cancelled, key=_serial))


def in_the_way(held: Held) -> Iterator[Held]:
    """Who still runs on cells that are kept for this group; once for each of its pods."""
    for spot in held.spots:
        for other, mask in spot.node.running.items():
            if mask & spot.mask:
                yield other


def displace(holding: Holding, held: Held, by: str) -> None:
    """Lazy preemption of a whole group: it keeps its leaves and loses its claim on the quota."""
    for spot in held.spots:
        if spot.unit is not None:
            holding.displace(held, spot)
            holding.journal.set(spot, "unit", None)
            holding.journal.set(spot, "cell", None)
    holding.journal.set(held, "displaced_by", by)


def _serial(held: Held) -> int:
    return held.serial


def is_lazy(held: Held) -> bool:
    """Whether it runs on opportunistically instead of being ended."""
    return held.group.lazy_preemption and not held.displaced_by and held.state is State.ALLOCATED and held.priority >= 0


def _gives_way(held: Held) -> bool:
    """Whether it loses what it has without ending."""
    return held.state is State.PREEMPTING or is_lazy(held)


def _least_price(option: Option, ceiling: int) -> tuple[int, int]:
    """The price below which there can be none once nothing idles."""
    if ceiling == 0 or option.quotas is None:
        return (0, 1)
    return (1, 0 if any(held.priority < ceiling and _gives_way(held) for held in option.quotas.owners) else 1)


def _below(ceiling: int) -> Callable[[Held], bool]:
    return lambda held: held.priority < ceiling


def _load(unit: QuotaUnit) -> tuple[int, int]:
    """Guaranteed and other groups that run on a unit."""
    cell = unit.physical
    if cell is None or cell.node is None:
        return (0, 0)
    dear = others = 0
    for held, mask in cell.node.running.items():
        if mask & cell.mask:
            if held.priority < 0:
                others += 1
            else:
                dear += 1
    return (dear, others)


def _worth_trying(option: Option, ceiling: int) -> bool:
    """Whether anybody is there who could be ended, so that most waits cost nothing more."""
    if ceiling == 0:
        return option.chain.oppo > 0
    return option.quotas is not None and any(priority < ceiling for priority in option.quotas.owned)


def _victims(option: Option, ceiling: int) -> tuple[list[Held], list[Held]]:
    """Groups that may lose their quota, and opportunistic ones: lowest priority first, the latest of them first."""
    assert option.quotas is not None
    dear = [held for held in option.quotas.owners if held.priority < ceiling]
    cheap: dict[Held, None] = {}
    for node in option.chain.nodes:
        if node.oppo:
            cheap.update((held, None) for held in node.running if held.priority < 0)
    order: Callable[[Held], tuple[int, int]] = lambda held: (held.priority, -held.serial)  # noqa: E731
    return sorted(dear, key=order), sorted(cheap, key=order)
