"""Groups that may start with fewer pods and grow, and groups that may lie in several chains."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence

from pai_backend.scheduling.cells.holding import Holding
from pai_backend.scheduling.cells.ranking import could_hold
from pai_backend.scheduling.cells.tree import Held, Spot
from pai_backend.scheduling.core.place import Option, Planner, is_lazy, make_plan
from pai_backend.scheduling.core.scope import Part, scope_of
from pai_backend.scheduling.core.search import Budget, Limits, Plan, Pod, Spare
from pai_backend.scheduling.request import OPPORTUNISTIC, Group

Holds = Callable[[Mapping[int, int]], bool]
"""Whether there might be room for so many pods of so many leaves each: no means no."""


def sizes_to_try(group: Group, holds: Holds) -> Iterator[list[int]]:
    """Pods per member: all, then fewer, taken from the last elastic member first, down to the least.

    Of the fewer only those for which there is room by counting.
    """
    counts = [member.pods for member in group.members]
    yield list(counts)
    sizes = Counter[int]()
    for member in group.members:
        sizes[member.leaves] += member.pods
    for index in range(len(counts) - 1, -1, -1):
        least = group.members[index].min_pods
        while least is not None and counts[index] > least:
            counts[index] -= 1
            sizes[group.members[index].leaves] -= 1
            if any(counts) and holds(+sizes):
                yield list(counts)


def growths_to_try(held: Held, missing: Sequence[int], holds: Holds) -> Iterator[Sequence[int]]:
    """All of the missing pods, then fewer, as far as there is room for them by counting."""
    leaves = [member.leaves for member in held.group.members for _ in range(member.pods)]
    sizes = Counter(leaves[ordinal] for ordinal in missing)
    for count in range(len(missing), 0, -1):
        if holds(+sizes):
            yield missing[:count]
        sizes[leaves[missing[count - 1]]] -= 1


def missing_pods(held: Held) -> list[int]:
    """Numbers of the pods that have no place yet."""
    have = set(held.ordinals)
    return [ordinal for ordinal in range(held.group.pods) if ordinal not in have]


def growth(held: Held, ordinals: Sequence[int], limits: Limits | None) -> tuple[list[Part], Limits | None]:
    """Parts for these pods, and limits that keep them where the group's other pods oblige them to be.

    The constraint of the group is met by staying in the cell the group already lies in; that of a member, which may
    have pods already, in the same way.
    """
    chain = held.spots[0].node.chain
    if held.group.within:
        limits = _around(held.spots, chain.level_of.get(held.group.within, 0), limits)
    parts: list[Part] = []
    rest = Part([])
    first = 0
    for member in held.group.members:
        numbers = range(first, first + member.pods)
        first += member.pods
        pods = [Pod(ordinal, member.leaves) for ordinal in ordinals if ordinal in numbers]
        own = [spot for ordinal, spot in zip(held.ordinals, held.spots, strict=True) if ordinal in numbers]
        if pods and member.within:
            inside = _around(own, chain.level_of.get(member.within, 0), None) if own else None
            parts.append(Part(pods, "" if own else member.within, inside))
        else:
            rest.pods.extend(pods)
    rest.pods.sort(key=lambda pod: pod.leaves)
    return [*parts, *([rest] if rest.pods else [])], limits


def _around(spots: Sequence[Spot], level: int, limits: Limits | None) -> Limits:
    """The cell of a level that contains the first of these spots, and with it all."""
    node = spots[0].node
    if level <= node.level:
        mask = next(mask for mask in node.shape.masks[level] if mask & spots[0].mask)
        return {node: mask if limits is None else mask & limits.get(node, 0)}
    at = node.parent
    while at is not None and at.level < level:
        at = at.parent
    return scope_of(at, limits) if at is not None else {} if limits is None else limits


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
