"""What is possible on a small cluster, found by trying everything: slow, obvious, and without the search's tricks.

It shares with the code under test what a tree *is* (binding one cell to another, the safety condition), and nothing of
how a place is looked for: no order, no packing, no pruning.
"""

from __future__ import annotations

from itertools import combinations

from pai_backend.model.errors import Bug
from pai_backend.scheduling import Group, Ledger
from pai_backend.scheduling.cells.tree import Held, Node, PhysicalCell, Quotas, QuotaUnit, State
from pai_backend.scheduling.core.trees import check_group

Price = tuple[int, int]
"""Groups that lose their quota or reservation, groups that end."""


def cheapest(cluster: Ledger, group: Group) -> Price | None:
    """The lowest price at which the group can be placed, None when it cannot at any."""
    options = check_group(cluster, group)
    others = list(cluster.groups.values())
    ended = [held for held in others if held.state is not State.PREEMPTING]
    prices: list[Price] = []
    for count in range(len(others) + 1):
        for gone in combinations(others, count):
            if all(_may_go(held, group) for held in gone):
                price = sum(held.priority >= 0 for held in gone), sum(held in ended for held in gone)
                worth_a_look = not any(known <= price for known in prices)
                if worth_a_look and any(
                    _fits(cluster, option.chain.nodes, option.quotas, group, set(gone)) for option in options
                ):
                    prices.append(price)
    return min(prices, default=None)


def _may_go(held: Held, group: Group) -> bool:
    """Lower priority, and opportunistic or of the same virtual cluster."""
    return held.priority < group.priority and (held.priority < 0 or held.group.vc == group.vc)


def _fits(cluster: Ledger, nodes: list[Node], quotas: Quotas | None, group: Group, gone: set[Held]) -> bool:
    sizes = sorted((member.leaves for member in group.members for _ in range(member.pods)), reverse=True)
    with cluster.journal.trial():
        if quotas is None:
            return _fill(sizes, [_free(node, gone).bit_count() for node in nodes])
        return _assign(cluster, quotas, sizes, {}, gone)


def _fill(sizes: list[int], rooms: list[int]) -> bool:
    """Every way to put pods into nodes."""
    if not sizes:
        return True
    for index, room in enumerate(rooms):
        if room >= sizes[0] and _fill(sizes[1:], [*rooms[:index], room - sizes[0], *rooms[index + 1 :]]):
            return True
    return False


def _assign(cluster: Ledger, quotas: Quotas, sizes: list[int], taken: dict[QuotaUnit, int], gone: set[Held]) -> bool:
    """Every unit for the first pod and every cell for an unbound one, then the rest."""
    if not sizes:
        return True
    for unit in quotas.units:
        for cell in [unit.physical] if unit.physical is not None else quotas.chain.at_level(unit.level):
            mark = cluster.journal.mark()
            if cell.node is not None and _stand(cluster, unit, cell):
                room = _room(cell, gone) - taken.get(unit, 0)
                more = taken | {unit: taken.get(unit, 0) + sizes[0]}
                if room >= sizes[0] and _assign(cluster, quotas, sizes[1:], more, gone):
                    return True
            cluster.journal.rewind(mark)
    return False


def _stand(cluster: Ledger, unit: QuotaUnit, cell: PhysicalCell) -> bool:
    """Whether the unit stands, or can be made to stand, on the cell with every promise kept."""
    if unit.physical is cell:
        return True
    try:
        cluster.binder.bind(unit, cell)
    except Bug:
        return False
    return unit.chain.is_safe()


def _room(cell: PhysicalCell, gone: set[Held]) -> int:
    assert cell.node is not None
    return (_free(cell.node, gone) & cell.mask).bit_count()


def _free(node: Node, gone: set[Held]) -> int:
    """Healthy leaves that nobody who stays runs on or keeps."""
    taken = node.broken
    for holders in (node.running, node.reserving):
        for held, mask in holders.items():
            if held not in gone:
                taken |= mask
    return node.mask & ~taken
