"""What is where, as HiveD's inspect API shows it: physical and virtual cell trees, and groups.

Plain JSON values with HiveD's field names. Source: its ``pkg/api/types.go`` (CellStatus, AffinityGroup).
"""

from __future__ import annotations

from collections.abc import Mapping

from pai_backend.scheduling.cells.shape import bits
from pai_backend.scheduling.cells.tree import (
    Chain,
    Held,
    Node,
    PhysicalCell,
    Quotas,
    QuotaUnit,
    State,
    VirtualCell,
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
    if isinstance(cell, QuotaUnit):
        return _within_unit(cell, cell.level, 0)
    children = [_virtual(child, quotas) for child in cell.children]
    return _describe(cell.chain, cell.level, cell.address, children, _stands_on(cell))


def _within_unit(unit: QuotaUnit, level: int, first: int) -> Status:
    """Cells of a unit; leaf i of a unit stands on leaf i of its cell."""
    chain = unit.chain
    if level == 1:
        return _virtual_leaf(unit, first)
    size = chain.sizes[level - 1]
    children = [_within_unit(unit, level - 1, start) for start in range(first, first + chain.sizes[level], size)]
    address = _virtual_address(unit, level, first)
    return _describe(chain, level, address, children, _stands_on(unit) if level == unit.level else {})


def _virtual_leaf(unit: QuotaUnit, leaf: int) -> Status:
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


def _leaf_address(unit: QuotaUnit, leaf: int) -> str:
    return _virtual_address(unit, 1, leaf)


def _virtual_address(unit: QuotaUnit, level: int, first: int) -> str:
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
