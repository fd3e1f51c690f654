"""What is where, as HiveD's inspect API shows it: physical and virtual cell trees, and groups.

Plain JSON values with HiveD's field names. Source: its ``pkg/api/types.go`` (CellStatus, AffinityGroup).
"""

from __future__ import annotations

from collections.abc import Mapping

from pai_backend.model.errors import Bug
from pai_backend.scheduling.cells.shape import bits
from pai_backend.scheduling.cells.tree import (
    Chain,
    Held,
    Node,
    PhysicalCell,
    Quotas,
    State,
    Unit,
    VirtualCell,
    units_of,
)
from pai_backend.scheduling.core.trees import Trees

Status = dict[str, object]
FREE_PRIORITY = -2
"""What HiveD shows for an unused cell."""


def cluster_status(trees: Trees) -> Status:
    """``GET /v1/inspect/clusterstatus``: all physical cells and, per virtual cluster, all virtual ones."""
    return {
        "physicalCluster": physical_status(trees),
        "virtualClusters": {vc: virtual_status(trees, vc) for vc in trees.config.virtual_clusters},
    }


def physical_status(trees: Trees) -> list[Status]:
    """``.../clusterstatus/physicalcluster``: the trees of real cells, chain by chain."""
    found = []
    for chain in trees.chains.values():
        for top in chain.tops:
            found.append({"leafCellType": chain.leaf_type, **_physical(top)})
    return found


def virtual_status(trees: Trees, vc: str) -> list[Status]:
    """``.../clusterstatus/virtualclusters/VC``: its quota cells, then what it runs opportunistically as "-opp" cells.

    Raises KeyError for an unknown virtual cluster.
    """
    if vc not in trees.config.virtual_clusters:
        raise KeyError(vc)
    found: list[Status] = []
    for (owner, _), quotas in (*trees.quotas.items(), *trees.pinned.items()):
        if owner == vc:
            found += [{"leafCellType": quotas.chain.leaf_type, **_virtual(root, quotas)} for root in quotas.roots]
    for held in sorted(trees.groups.values(), key=lambda held: held.serial):
        if held.group.vc == vc and held.priority < 0:
            found += _opportunistic(held)
    return found


def group_status(held: Held) -> Status:
    """``GET /v1/inspect/affinitygroups/NAME``."""
    physical: dict[str, list[int]] = {}
    virtual: dict[str, list[str]] = {}
    for spot in held.spots:
        physical.setdefault(spot.node.name, []).extend(spot.node.devices(spot.mask))
        if spot.unit is not None and spot.cell is not None:
            leaves = [_leaf_address(spot.unit, leaf - _first(spot.cell)) for leaf in bits(spot.mask)]
            virtual.setdefault(spot.unit.root.address, []).extend(leaves)
    names = {
        State.ALLOCATED: "Allocated",
        State.PREEMPTING: "Preempting",
        State.BEING_PREEMPTED: "BeingPreempted",
    }
    lazy = {"preemptor": held.displaced_by} if held.displaced_by else None
    return {
        "metadata": {"name": held.group.name},
        "status": {
            "vc": held.group.vc,
            "priority": held.group.priority,
            "state": names[held.state],
            "physicalPlacement": physical,
            "virtualPlacement": virtual,
            "lazyPreemptionStatus": lazy,
        },
    }


def _first(cell: PhysicalCell) -> int:
    return (cell.mask & -cell.mask).bit_length() - 1


# -- physical cells ----------------------------------------------------------------------------------------------------


def _physical(cell: PhysicalCell) -> Status:
    """A cell at or above the node level, with everything below."""
    chain = cell.chain
    if isinstance(cell, Node):
        return _within_node(cell, cell, cell.level, 0)
    children = [_physical(child) for child in cell.children]
    return _describe(chain, cell.level, cell.address, children, _owner(cell.virtual))


def _within_node(node: Node, cell: PhysicalCell | None, level: int, first: int) -> Status:
    """Cells of a node by their leaves; no objects are made for looking at them."""
    chain = node.chain
    mask = node.shape.masks[level][first // chain.sizes[level]]
    owner = next((unit for unit in node.units if unit.physical is not None and unit.physical.mask == mask), None)
    address = _address(node, level, first)
    if level == 1:
        return _leaf(node, mask, address, _owner(owner))
    size = chain.sizes[level - 1]
    children = [_within_node(node, None, level - 1, start) for start in range(first, first + chain.sizes[level], size)]
    return _describe(chain, level, address, children, _owner(cell.virtual if cell is not None else owner))


def _address(node: Node, level: int, first: int) -> str:
    spec, steps, at = node.spec, [node.address], node.level
    while at > level:
        at -= 1
        spec = spec.children[first % node.chain.sizes[at + 1] // node.chain.sizes[at]]
        steps.append(spec.address)
    return "/".join(steps)


def _leaf(node: Node, mask: int, address: str, owner: Status) -> Status:
    runs = next((held for held, own in node.running.items() if own & mask), None)
    keeps = next((held for held, own in node.reserving.items() if own & mask), None)
    state = ("Reserving" if runs else "Reserved") if keeps else "Used" if runs else "Free"
    holder = keeps or runs
    vc = {"vc": holder.group.vc} if holder is not None else {}
    return {
        "cellType": node.chain.leaf_type,
        "cellAddress": address,
        "cellState": state,
        "cellHealthiness": "Bad" if node.broken & mask else "Healthy",
        "cellPriority": FREE_PRIORITY if holder is None else holder.priority,
        **vc,
        **owner,
    }


def _owner(cell: VirtualCell | None) -> Status:
    if cell is None:
        return {}
    return {
        "vc": cell.quotas.vc,
        "virtualCell": {"cellType": cell.chain.types[cell.level], "cellAddress": cell.address},
    }


def _describe(chain: Chain, level: int, address: str, children: list[Status], more: Status) -> Status:
    """A cell in terms of its children."""
    states = {str(child["cellState"]) for child in children}
    mixed = "Used" if states & {"Used", "Reserving"} else "Free"
    status: Status = {
        "cellType": chain.types[level],
        "cellAddress": address,
        "cellState": states.pop() if len(states) == 1 else mixed,
        "cellHealthiness": "Bad" if any(child["cellHealthiness"] == "Bad" for child in children) else "Healthy",
        "cellPriority": max(_priority(child) for child in children),
        **more,
        "cellChildren": children,
    }
    return {**status, "isNodeLevel": True} if level == chain.node_level else status


def _priority(status: Mapping[str, object]) -> int:
    priority = status["cellPriority"]
    assert isinstance(priority, int)
    return priority


# -- virtual cells -----------------------------------------------------------------------------------------------------


def _virtual(cell: VirtualCell, quotas: Quotas) -> Status:
    if isinstance(cell, Unit):
        return _within_unit(cell, cell.level, 0)
    children = [_virtual(child, quotas) for child in cell.children]
    return _describe(cell.chain, cell.level, cell.address, children, _stands_on(cell))


def _within_unit(unit: Unit, level: int, first: int) -> Status:
    """Cells of a unit; leaf i of a unit stands on leaf i of its cell."""
    chain = unit.chain
    if level == 1:
        return _virtual_leaf(unit, first)
    size = chain.sizes[level - 1]
    children = [_within_unit(unit, level - 1, start) for start in range(first, first + chain.sizes[level], size)]
    address = _virtual_address(unit, level, first)
    return _describe(chain, level, address, children, _stands_on(unit) if level == unit.level else {})


def _virtual_leaf(unit: Unit, leaf: int) -> Status:
    real, node = unit.physical, None if unit.physical is None else unit.physical.node
    mask = 0 if real is None else 1 << (leaf + _first(real))
    owner = next((held for held, own in unit.owners.items() if own & mask), None)
    state = "Free" if owner is None else "Reserved" if owner.state is State.PREEMPTING else "Used"
    status: Status = {
        "cellType": unit.chain.leaf_type,
        "cellAddress": _leaf_address(unit, leaf),
        "cellState": state,
        "cellHealthiness": "Bad" if node is not None and node.broken & mask else "Healthy",
        "cellPriority": FREE_PRIORITY if owner is None else owner.group.priority,
    }
    if owner is not None and node is not None and real is not None:
        address = _address(node, 1, leaf + _first(real))
        status["physicalCell"] = {"cellType": unit.chain.leaf_type, "cellAddress": address}
    return status


def _leaf_address(unit: Unit, leaf: int) -> str:
    return _virtual_address(unit, 1, leaf)


def _virtual_address(unit: Unit, level: int, first: int) -> str:
    """``VC/i/...``: the numbers of the children on the way down."""
    steps, sizes, at = [unit.address], unit.chain.sizes, unit.level
    while at > level:
        at -= 1
        steps.append(str(first % sizes[at + 1] // sizes[at]))
    return "/".join(steps)


def _stands_on(cell: VirtualCell) -> Status:
    real = cell.physical
    if real is None:
        return {}
    return {"physicalCell": {"cellType": cell.chain.types[cell.level], "cellAddress": real.address}}


def _opportunistic(held: Held) -> list[Status]:
    found = []
    for spot in held.spots:
        for leaf in bits(spot.mask):
            address = _address(spot.node, 1, leaf)
            health = "Bad" if spot.node.broken >> leaf & 1 else "Healthy"
            kind = spot.node.chain.leaf_type
            found.append(
                {
                    "leafCellType": kind,
                    "cellType": kind,
                    "cellAddress": f"{address}-opp",
                    "cellState": "Used",
                    "cellHealthiness": health,
                    "cellPriority": -1,
                    "physicalCell": {"cellType": kind, "cellAddress": address},
                }
            )
    return found


def audit(trees: Trees) -> None:
    """Raise Bug with the first law that does not hold."""
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
    if not holds:
        raise Bug(law)


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
        made = cell.made_children
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


def _unit(unit: Unit) -> None:
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
