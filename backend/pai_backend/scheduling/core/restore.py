"""What is there already: stored placements put back, and another configuration while jobs run, which ends no group."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace

from pai_backend.scheduling.cells.binding import in_use
from pai_backend.scheduling.cells.tree import (
    Held,
    Node,
    PhysicalCell,
    Quotas,
    QuotaUnit,
    Spot,
    State,
    VirtualCell,
    units_of,
)
from pai_backend.scheduling.config.model import ClusterConfig
from pai_backend.scheduling.core.place import displace
from pai_backend.scheduling.core.trees import Trees
from pai_backend.scheduling.request import OPPORTUNISTIC, GroupPlace

RECONFIGURED = "(configuration)"
"""Who displaced a group that lost its quota to a changed configuration rather than to another group."""


@dataclass(slots=True)
class Restored:
    """``displaced`` run without their quota, also those that did before; ``missing`` counts leaves no longer there."""

    displaced: list[str] = field(default_factory=list)
    missing: dict[str, int] = field(default_factory=dict)


def restore(trees: Trees, placements: Iterable[GroupPlace]) -> Restored:
    """Put running groups where they are, in order of submission. Raises ValueError when two claim the same leaf.

    Groups that had been displaced come last and get their quota back only where no other group loses anything.
    """
    result = Restored()
    enrolled = []
    for placement in placements:
        missing, found = _locate(trees, placement)
        if missing:
            result.missing[placement.group.name] = missing
        enrolled.append((placement, _enroll(trees, placement, found)))
    for displaced in (False, True):
        for placement, held in enrolled:
            if placement.displaced is displaced:
                _give_back(trees, held, None if displaced else result)
                if held.displaced_by:
                    result.displaced.append(held.group.name)
    return result


def _enroll(trees: Trees, placement: GroupPlace, found: dict[int, Spot]) -> Held:
    """Run the group opportunistically for now, so that its leaves are taken."""
    held = trees.enroll(placement, [*found.values()], [*found])
    if placement.group.priority != OPPORTUNISTIC:
        held.displaced_by = RECONFIGURED
    for spot in held.spots:
        trees.holding.run(held, spot)
    return held


def _give_back(trees: Trees, held: Held, result: Restored | None) -> None:
    """Let a guaranteed group count on the quota that paid for it, if that is possible for all of its pods."""
    if held.group.priority == OPPORTUNISTIC or not held.spots or not all(spot.owned for spot in held.spots):
        if not held.spots:
            held.displaced_by = ""
        return
    claim(trees, held, result)


def _locate(trees: Trees, placement: GroupPlace) -> tuple[int, dict[int, Spot]]:
    """The leaves on which the pods run, as far as the configuration knows them; how many it does not know."""
    missing, found = 0, dict[int, Spot]()
    for ordinal, pod in placement.pods.items():
        nodes = trees.nodes.get(pod.node, [])
        known = [node for node in nodes if any(index in node.place for index in pod.cells)]
        known.sort(key=lambda node: node.chain.name != placement.chain)
        if not known:
            missing += len(pod.cells)
            continue
        node = known[0]
        mask = 0
        for index in pod.cells:
            if index in node.place:
                mask |= 1 << node.place[index]
            else:
                missing += 1
        if mask & (node.guaranteed | node.oppo):
            raise ValueError(f"{placement.group.name} and another group both claim leaves of node {pod.node}")
        found[ordinal] = Spot(node, mask, None, None, pod.owned)
    return missing, found


def claim(trees: Trees, held: Held, result: Restored | None = None) -> bool:
    """Let a displaced group count on its quota again, where it runs: all of its pods or none.

    With ``result`` groups of lower priority may be displaced for it, and are recorded there.
    """
    claimed = _claim_all(trees, held, result)
    if claimed:
        trees.journal.set(held, "displaced_by", "")
    # Doomed cells of this owner and of others may have been freed on the way.
    for chain in {spot.node.chain.name: spot.node.chain for spot in held.spots}.values():
        trees.health.settle(chain)
    return claimed


def _claim_all(trees: Trees, held: Held, result: Restored | None) -> bool:
    """Move every pod onto its quota; takes it all back when one of them has none, or a promise would break."""
    done: list[Spot] = []
    for spot in held.spots:
        unit = find_unit(trees, held, spot, result)
        if unit is not None and not unit[0].used & spot.mask:
            _put_on(trees, spot, *unit)
            trees.holding.replace(held, spot)
            done.append(spot)
        if spot.unit is None or not spot.node.chain.is_safe():
            break
    else:
        return True
    for spot in reversed(done):
        trees.holding.displace(held, spot)
        _put_on(trees, spot, None, None)
    return False


def _put_on(trees: Trees, spot: Spot, unit: QuotaUnit | None, cell: PhysicalCell | None) -> None:
    trees.journal.set(spot, "unit", unit)
    trees.journal.set(spot, "cell", cell)


def find_unit(
    trees: Trees, held: Held, spot: Spot, result: Restored | None = None
) -> tuple[QuotaUnit, PhysicalCell] | None:
    """The unit of the group's quota that stands, or may stand, where the pod runs.

    With ``result`` groups of lower priority may be displaced for it, and are recorded there.
    """
    chain = spot.node.chain
    quotas = trees.owner(held.group.vc, chain, held.group.pinned_id)
    level = chain.level_of.get(spot.owned)
    if quotas is None or level is None or quotas.chain is not chain:
        return None
    real = _enclosing(spot.node, spot.mask, level)
    root = None if real is None else _root_at(trees, held, quotas, real, result)
    if real is None or root is None:
        return None
    cell = _enclosing(spot.node, spot.mask, min(level, chain.node_level))
    assert cell is not None
    unit = _descend(root, real, cell)
    return None if unit is None else (unit, cell)


def _enclosing(node: Node, mask: int, level: int) -> PhysicalCell | None:
    """The cell of ``level`` that contains these leaves of the node."""
    at: PhysicalCell | None = node
    while at is not None and at.level < level:
        at = at.parent
    while at is not None and at.level > level:
        at = next((child for child in at.children if child.mask & mask == mask), None)
    return at


def _root_at(
    trees: Trees, held: Held, quotas: Quotas, real: PhysicalCell, result: Restored | None
) -> VirtualCell | None:
    """The quota cell that stands on ``real`` or may, at the price of groups of lower priority if need be."""
    there = real.virtual
    if there is not None:
        if there.quotas is quotas and there.parent is None:
            return there
        if there.parent is not None or there.pinned or in_use(there):
            return None
        trees.health.undoom(there)
    if quotas.pinned_id:
        return None
    if quotas.chain.buddy.listed(real) is None and not _free_doomed_below(trees, real):
        return None
    root = quotas.unbound_root(real.level) or _own_doomed(trees, quotas, real.level)
    if root is not None or result is None:
        return root
    return _weakest_root(trees, held, quotas, real.level, result)


def _own_doomed(trees: Trees, quotas: Quotas, level: int) -> VirtualCell | None:
    """A quota cell that only stands on something because that is bad; freed for a group that really runs."""
    root = next((each for each in quotas.doomed if each.level == level and not in_use(each)), None)
    if root is not None:
        trees.health.undoom(root)
    return root


def _free_doomed_below(trees: Trees, real: PhysicalCell) -> bool:
    """Whether the cell is free once doomed cells in it and around it are freed."""
    for quotas in trees.quotas.values():
        for root in list(quotas.doomed):
            if not in_use(root) and root.physical is not None and _related(root.physical, real):
                trees.health.undoom(root)
    return real.chain.buddy.listed(real) is not None


def _related(one: PhysicalCell, other: PhysicalCell) -> bool:
    """Whether one cell contains the other."""
    low, high = (one, other) if one.level <= other.level else (other, one)
    at: PhysicalCell | None = low
    while at is not None and at is not high:
        at = at.parent
    return at is high


def _weakest_root(trees: Trees, held: Held, quotas: Quotas, level: int, result: Restored) -> VirtualCell | None:
    """Free the quota cell whose groups have the lowest priority, if below the group's own; they are displaced."""
    rated = []
    for number, root in enumerate(quotas.roots):
        owners = {owner: None for unit in units_of(root) for owner in unit.owners}
        if root.level == level and owners and held not in owners:
            rated.append((max(owner.group.priority for owner in owners), number, root, owners))
    rated = [each for each in rated if each[0] < held.group.priority]
    if not rated:
        return None
    *_, root, owners = min(rated, key=lambda each: each[:2])
    for owner in sorted(owners, key=lambda held: held.serial):
        if owner.state is not State.PREEMPTING:
            displace(trees.holding, owner, held.group.name)
            result.displaced.append(owner.group.name)
    return root if root.physical is None else None


def _descend(root: VirtualCell, real: PhysicalCell, cell: PhysicalCell) -> QuotaUnit | None:
    """The unit below ``root`` that stands on ``cell``, or the first free ones on the way to it."""
    path: list[PhysicalCell] = []
    at = cell
    while at is not real:
        path.append(at)
        if at.parent is None:
            return None
        at = at.parent
    below: VirtualCell | None = root
    for step in reversed(path):
        if below is None:
            return None
        below = step.virtual or next((child for child in below.children if child.physical is None), None)
    return below if isinstance(below, QuotaUnit) else None


# -- quota that was lost -----------------------------------------------------------------------------------------------


def upgrade(trees: Trees, but: Callable[[str], bool]) -> tuple[str, ...]:
    """Names of displaced groups that count on their quota again; oldest first. No other group loses anything.

    A group is upgraded as a whole: each of its pods must find a free quota cell that may stand where the pod runs, and
    all promises to others must still hold.
    """
    found = [held for held in trees.groups.values() if _may_upgrade(held) and not but(held.group.vc)]
    return tuple(held.group.name for held in sorted(found, key=lambda held: held.serial) if claim(trees, held))


def _may_upgrade(held: Held) -> bool:
    return (
        bool(held.displaced_by and held.spots)
        and held.state is State.ALLOCATED
        and held.group.priority != OPPORTUNISTIC
        and all(spot.owned and not spot.mask & spot.node.reserved for spot in held.spots)
    )


# -- places that were kept ---------------------------------------------------------------------------------------------


def reserve(trees: Trees, placement: GroupPlace) -> bool:
    """Keep these cells for the group, even if others still run there; False, changing nothing, when they are taken.

    Running groups are restored before: what nothing runs on is not pursued.
    """
    spots = _leaves_of(trees, placement)
    if spots is None or placement.group.priority == OPPORTUNISTIC or placement.group.name in trees.groups:
        return False
    held = trees.enroll(placement, spots, [*placement.pods])
    held.state = State.PREEMPTING
    done: list[Spot] = []
    for spot in spots:
        unit = find_unit(trees, held, spot)
        if unit is None or spot.node.reserved & spot.mask:
            break
        spot.unit, spot.cell = unit
        trees.holding.reserve(held, spot)
        done.append(spot)
        if not spot.node.chain.is_safe():
            break
    else:
        for spot in spots:
            for other, mask in spot.node.running.items():
                if mask & spot.mask:
                    trees.pursue(held, other)
        return True
    for spot in reversed(done):
        trees.holding.cancel(held, spot)
    trees.strike(held)
    return False


def _leaves_of(trees: Trees, placement: GroupPlace) -> list[Spot] | None:
    """The leaves of each pod; None when the configuration no longer has them all."""
    spots = []
    for pod in placement.pods.values():
        every = trees.nodes.get(pod.node, ())
        nodes = [node for node in every if placement.group.spread or node.chain.name == placement.chain]
        nodes.sort(key=lambda node: any(index not in node.place for index in pod.cells))
        if not nodes or any(index not in nodes[0].place or not pod.owned for index in pod.cells):
            return None
        mask = 0
        for index in pod.cells:
            mask |= 1 << nodes[0].place[index]
        spots.append(Spot(nodes[0], mask, None, None, pod.owned))
    return spots


@dataclass(frozen=True, slots=True)
class Effects:
    """What a change of configuration does, by group name in order of submission."""

    kept: tuple[str, ...] = ()
    """They run on exactly as before."""
    displaced: tuple[str, ...] = ()
    """They run on, but their quota is gone: any group that is entitled to their leaves may end them."""
    regained: tuple[str, ...] = ()
    """They had been displaced and count on their quota again."""
    cancelled: tuple[str, ...] = ()
    """Preemptors that lose their reservation and are decided again."""
    missing: tuple[tuple[str, int], ...] = ()
    """Groups that run on leaves which are no longer in the configuration, and on how many."""


def reconfigure(trees: Trees, config: ClusterConfig, vcs: Mapping[str, str]) -> Effects:
    """Load another configuration, and give its empty trees the health and the running groups that there were.

    ``vcs`` tells the virtual cluster of groups that are another one's in the new configuration.
    """
    groups = sorted(trees.groups.values(), key=lambda held: held.serial)
    reserved = tuple(held.group.name for held in groups if held.state is State.PREEMPTING)
    displaced_before = {held.group.name: bool(held.displaced_by) for held in groups}
    placements = [
        replace(each, group=replace(each.group, vc=vcs.get(name, each.group.vc)))
        for name, each in trees.placements().items()
    ]
    nodes = {
        name: [index for node in nodes for index in node.devices(node.broken)] for name, nodes in trees.nodes.items()
    }
    trees.load(config)
    for name, bad in nodes.items():
        if bad:
            trees.set_broken(name, healthy=True, bad_devices=bad)
    restored = restore(trees, placements)
    displaced, kept, regained = [], [], []
    for name, was_displaced in displaced_before.items():
        after = trees.groups.get(name)
        if after is None:
            continue
        if after.displaced_by and not was_displaced:
            displaced.append(name)
        elif was_displaced and not after.displaced_by:
            regained.append(name)
        elif name not in restored.missing:
            kept.append(name)
    return Effects(
        tuple(kept),
        tuple(displaced),
        tuple(regained),
        reserved,
        tuple(restored.missing.items()),
    )
