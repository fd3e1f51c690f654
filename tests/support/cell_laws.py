"""The laws of the cells: no count differs from what the trees say, and every promise can be kept."""

from __future__ import annotations

from pai_backend.scheduling.cells.tree import Chain, Held, Node, PhysicalCell, Quotas, QuotaUnit, State, units_of
from pai_backend.scheduling.core.trees import Trees


def audit(trees: Trees) -> None:
    """Fail with the first law that does not hold. Costs a walk over all cells."""
    for chain in trees.chains.values():
        _free_lists(chain)
        _law(chain.is_safe(), f"chain {chain.name}: a promise could not be kept")
        _law(chain.oppo == sum(node.oppo.bit_count() for node in chain.nodes), "opportunistic leaves are miscounted")
        _law(chain.broken == sum(node.broken.bit_count() for node in chain.nodes), "bad leaves are miscounted")
        _law(chain.reserved == sum(node.reserved.bit_count() for node in chain.nodes), "reserved leaves are miscounted")
        for node in chain.nodes:
            _node(node)
    _promises(trees)
    for quotas in (*trees.quotas.values(), *trees.pinned.values()):
        _quotas(quotas)
    for held in trees.groups.values():
        _group(held)


def _law(holds: bool, law: str) -> None:
    assert holds, law


def _free_lists(chain: Chain) -> None:
    """What is listed is neither taken nor split, buddies are merged, and the counts follow from the lists."""
    buddy = chain.buddy
    left = [0] * len(chain.sizes)
    bad = [0] * len(chain.sizes)
    for level, cells in enumerate(buddy.lists):
        for position, cell in enumerate(cells):
            _law(cell.level == level and cell.position == position, f"{cell} is not where the free list says")
            _law(not cell.split and cell.virtual is None, f"{cell} is listed as free and is not")
            for below in range(1, level + 1):
                left[below] += cell.leaves // chain.sizes[below]
            for each in _within(cell):
                bad[each.level] += bool(each.bad)
    _law(left == buddy.left, f"chain {chain.name}: cells left are {left}, counted {buddy.left}")
    _law(bad == [len(cells) for cells in buddy.bad], f"chain {chain.name}: bad free cells are miscounted")
    for cell in chain.cells:
        made = cell._children  # those of a node are made on first use
        _law(cell.listed == sum(child.position >= 0 for child in made), f"{cell} miscounts free children")
        whole = made and cell.listed == len(made)
        _law(not whole, f"the children of {cell} are all free and not merged")


def _within(cell: PhysicalCell) -> list[PhysicalCell]:
    found = [cell]
    for child in cell.children if cell.bad else ():
        found.extend(_within(child))
    return found


def _node(node: Node) -> None:
    """No leaf runs two groups, and masks are the union of what groups hold."""
    running = guaranteed = oppo = reserved = 0
    for held, mask in node.running.items():
        _law(not running & mask, f"{node}: a leaf runs two groups")
        running |= mask
        guaranteed |= mask if held.priority >= 0 else 0
        oppo |= mask if held.priority < 0 else 0
    for mask in node.reserving.values():
        _law(not reserved & mask, f"{node}: a leaf is reserved twice")
        reserved |= mask
    masks = (node.guaranteed, node.oppo, node.reserved)
    _law(masks == (guaranteed, oppo, reserved), f"{node}: masks {masks} are not what groups hold")


def _promises(trees: Trees) -> None:
    for chain in trees.chains.values():
        for level in range(1, len(chain.sizes)):
            for vc, free in chain.free[level].items():
                quotas = trees.quotas.get((vc, chain.name))
                roots = () if quotas is None else quotas.roots
                unbound = sum(root.level == level and root.physical is None for root in roots)
                _law(
                    free == unbound,
                    f"{vc} has {unbound} unbound cells of level {level} in {chain.name}, counted {free}",
                )
            total = sum(chain.free[level].values())
            _law(total == chain.promised[level], f"chain {chain.name}: {total} cells promised, counted otherwise")


def _quotas(quotas: Quotas) -> None:
    """Bindings are mutual and match level by level; owners lie inside the cell of their unit."""
    owners: dict[Held, int] = {}
    for root in quotas.roots:
        for unit in units_of(root):
            used = 0
            for held, mask in unit.owners.items():
                _law(not used & mask, f"{unit}: a leaf has two owners")
                used |= mask
                owners[held] = owners.get(held, 0) + mask.bit_count()
            _law(used == unit.used, f"{unit}: used leaves are miscounted")
            _unit(unit)
    _law(owners == quotas.owners, f"{quotas.vc}: leaves per group are miscounted")
    priorities: dict[int, int] = {}
    for held, leaves in owners.items():
        priorities[held.group.priority] = priorities.get(held.group.priority, 0) + leaves
    _law(priorities == quotas.owned, f"{quotas.vc}: leaves per priority are miscounted")


def _unit(unit: QuotaUnit) -> None:
    real = unit.physical
    if real is None:
        _law(not unit.used, f"{unit} is in use and stands on nothing")
        return
    _law(real.virtual is unit and real.level == unit.level, f"{unit} and {real} do not agree")
    _law(not unit.used & ~real.mask, f"{unit} uses leaves outside {real}")
    _law(bool(real.node and unit in real.node.units), f"{real} does not know {unit}")
    parent = unit.parent
    while parent is not None:
        above = None if real is None else real.parent
        _law(parent.physical is above and above is not None, f"{parent} does not stand on {above}")
        real, parent = above, parent.parent


def _group(held: Held) -> None:
    for spot in held.spots:
        holders = spot.node.reserving if held.state is State.PREEMPTING else spot.node.running
        _law(holders.get(held, 0) & spot.mask == spot.mask, f"{held.group.name} does not hold its leaves")
        _law(spot.mask.bit_count() > 0, f"{held.group.name} has a pod without leaves")
        if spot.unit is not None:
            _law(spot.unit.physical is spot.cell, f"{held.group.name}: a unit stands elsewhere")
    chains = {spot.node.chain.name for spot in held.spots}
    _law(len(chains) <= 1 or held.displaced_by != "" or held.group.spread, "a group is in two chains")
    _law((held.state is State.BEING_PREEMPTED) == bool(held.pursuers), f"{held.group.name}: pursued or not")
