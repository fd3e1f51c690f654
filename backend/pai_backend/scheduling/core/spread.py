"""A place for a gang in several chains, where none could ever hold it alone.

HiveD keeps a group to one chain, and an administrator who writes chains means them. Where they are only derived from
the shapes of the nodes, a gang that names no type may lie on nodes of several shapes: otherwise two machines with
unequal GPUs could never run two tasks together.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence

from pai_backend.scheduling.cells.holding import Holding
from pai_backend.scheduling.cells.ranking import could_hold
from pai_backend.scheduling.cells.tree import Held
from pai_backend.scheduling.core.place import Option, Planner, is_lazy, make_plan
from pai_backend.scheduling.core.scope import Part
from pai_backend.scheduling.core.search import Budget, Limits, Plan, Pod, Spare
from pai_backend.scheduling.request import OPPORTUNISTIC, Group


def has_to_spread(group: Group, options: Sequence[Option]) -> bool:
    """Whether the group may lie in several chains and none of these could hold it, even if nothing ran there."""
    if not group.spread or len(options) < 2:
        return False
    sizes: Counter[int] = Counter()
    for member in group.members:
        sizes[member.leaves] += member.pods
    return not any(could_hold(empty(option).items(), sizes) for option in options)


def empty(option: Option) -> Counter[int]:
    """Units of a chain by size, as if nothing ran."""
    if option.quotas is None:
        return Counter({option.chain.shape.leaves: len(option.chain.nodes)})
    return option.quotas.sizes


def empty_of_all(options: Sequence[Option]) -> Counter[int]:
    """The same of several chains together."""
    return sum((empty(option) for option in options), Counter[int]())


def spread(
    holding: Holding, group: Group, options: Sequence[Option], limits: Limits | None, *, evicting: bool
) -> Plan | None:
    """A place for all pods, the largest first, in as few chains as their order allows; None when none is found.

    ``evicting``: at the expense of opportunistic groups, then of those of lower priority; none that would be displaced
    instead of ended.
    """
    if not evicting:
        return _among(holding, group, options, limits, None)
    if group.priority == OPPORTUNISTIC:
        return None
    plans = (_among(holding, group, options, limits, _below(ceiling)) for ceiling in (0, group.priority))
    return next((plan for plan in plans if plan is not None), None)


def _below(ceiling: int) -> Spare:
    def spare(held: Held) -> bool:
        return held.priority < ceiling and not is_lazy(held)

    return spare


def _among(
    holding: Holding, group: Group, options: Sequence[Option], limits: Limits | None, spare: Spare | None
) -> Plan | None:
    budget = Budget()

    def look(option: Option, pods: Sequence[Pod]) -> Plan | None:
        ordered = sorted(pods, key=lambda pod: pod.leaves)
        return Planner(holding, group, [Part(ordered)], limits, budget=budget).look(option, spare)

    sizes = [member.leaves for member in group.members for _ in range(member.pods)]
    left = sorted((Pod(number, size) for number, size in enumerate(sizes)), key=lambda pod: -pod.leaves)
    spots = {}
    for option in sorted(options, key=lambda each: -sum(size * count for size, count in empty(each).items())):
        taken, plan = _fill(option, left, look)
        if plan is not None:
            spots.update(plan.spots)
            left = [pod for pod in left if pod not in taken]
        if not left:
            return make_plan(spots)
    return None


def _fill(
    option: Option, pods: Sequence[Pod], look: Callable[[Option, Sequence[Pod]], Plan | None]
) -> tuple[list[Pod], Plan | None]:
    """As many of these pods as one chain has room for, larger ones before smaller ones, and where."""
    taken: list[Pod] = []
    plan: Plan | None = None
    for size in dict.fromkeys(pod.leaves for pod in pods):
        same = [pod for pod in pods if pod.leaves == size]
        low, high = 0, len(same)
        while low < high:
            middle = (low + high + 1) // 2
            found = look(option, [*taken, *same[:middle]])
            if found is None:
                high = middle - 1
            else:
                low, plan = middle, found
        taken += same[:low]
    return taken, plan
