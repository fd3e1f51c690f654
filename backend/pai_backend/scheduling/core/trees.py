"""All trees of one configuration and the tables to find things in them: what a cluster consists of."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NoReturn

from pai_backend.model.errors import Fault, InvalidParameters, NoVirtualCluster
from pai_backend.model.text import Text
from pai_backend.scheduling.cells.binding import Binder, Health
from pai_backend.scheduling.cells.buddy import Buddy
from pai_backend.scheduling.cells.holding import Holding
from pai_backend.scheduling.cells.journal import Journal
from pai_backend.scheduling.cells.ranking import Ranking
from pai_backend.scheduling.cells.tree import (
    Chain,
    Held,
    Node,
    PhysicalCell,
    Quotas,
    QuotaUnit,
    Spot,
    State,
    VirtualCell,
    Wide,
    units_of,
)
from pai_backend.scheduling.config import model
from pai_backend.scheduling.config.model import ClusterConfig, VirtualCluster
from pai_backend.scheduling.core.place import Option
from pai_backend.scheduling.core.room import Entries, Ports, Room
from pai_backend.scheduling.core.search import Limits
from pai_backend.scheduling.request import HIGHEST, OPPORTUNISTIC, Group, GroupPlace

MOST_LIMITS = 16
"""Sets of suggested nodes of which it is remembered what they mean."""


def make_chain(config: ClusterConfig, name: str, journal: Journal) -> Chain:
    """A chain with all its cells, which are free."""
    levels = config.levels(name)
    counts = [config.cell_types[kind].count for kind in levels[1:]]
    node_level = next(level for level, kind in enumerate(levels, 1) if level > 1 and config.cell_types[kind].is_node)
    chain = Chain(name, levels, counts, node_level, config.virtual_clusters)
    chain.tops = tuple(_cell(chain, spec, None, len(levels)) for spec in config.physical if spec.type == name)
    chain.buddy = Buddy(chain.tops, chain.sizes, chain.cells, chain.promises_kept, journal)
    chain.ranking = Ranking(chain.nodes, _measure_node, chain.shape.leaves, journal)
    return chain


def _cell(chain: Chain, spec: model.CellSpec, parent: PhysicalCell | None, level: int) -> PhysicalCell:
    if level > chain.node_level:
        cell = Wide(chain, level, parent, spec.address, spec.pinned_id)
        chain.register(cell)
        cell.adopt(tuple(_cell(chain, child, cell, level - 1) for child in spec.children))
        return cell
    node = Node(chain, parent, spec)
    chain.register(node)
    chain.nodes.append(node)
    return node


def pinned_cells(chain: Chain) -> dict[str, PhysicalCell]:
    """Cells with a pinned id, by it."""
    for node in chain.nodes:
        if _has_pin(node.spec):
            bool(node.children)
    return {cell.pinned_id: cell for cell in chain.cells if cell.pinned_id}


def _has_pin(spec: model.CellSpec) -> bool:
    return any(child.pinned_id or _has_pin(child) for child in spec.children)


def add_quota(quotas: Quotas, level: int, address: str) -> None:
    """One more quota cell."""
    quotas.roots.append(_grow(quotas, level, None, address))
    quotas.leaves += quotas.chain.sizes[level]


def _grow(quotas: Quotas, level: int, parent: VirtualCell | None, address: str) -> VirtualCell:
    chain = quotas.chain
    if level <= chain.node_level:
        return QuotaUnit(quotas, chain, level, parent, address)
    cell = VirtualCell(quotas, chain, level, parent, address)
    count = chain.sizes[level] // chain.sizes[level - 1]
    cell.children = tuple(_grow(quotas, level - 1, cell, f"{address}/{index}") for index in range(count))
    return cell


def order_units(quotas: Quotas, journal: Journal, *, by_size: bool) -> None:
    """All quota cells are there: order the units as they are tried.

    Of empty units the smallest first, or with ``by_size`` False as HiveD does: whole nodes first.
    """
    found = [unit for root in quotas.roots for unit in units_of(root)]
    quotas.units = sorted(found, key=lambda unit: -unit.level)
    quotas.sizes = Counter(unit.size for unit in quotas.units)
    most = max((unit.size for unit in quotas.units), default=1)
    quotas.ranking = Ranking(quotas.units, _measure_by_size if by_size else _measure_unit, most, journal)


def _measure_unit(unit: QuotaUnit) -> tuple[int, int]:
    """Fullest first, bad ones last; an unbound unit has all its leaves, if a place for it is found."""
    leaves = unit.chain.shape.leaves
    if unit.physical is None:
        return leaves, unit.size
    node = unit.physical.node
    if node is not None and unit.physical.mask & ~node.broken == 0:
        return leaves + 1, 0
    return leaves - unit.used.bit_count(), unit.idle().bit_count()


def _measure_by_size(unit: QuotaUnit) -> tuple[int, int]:
    """The same, but of empty units the smallest first.

    A node that is owned whole is then not begun for what a part of one, owned too, has room for.
    """
    leaves = unit.chain.shape.leaves
    if unit.physical is None:
        return leaves + unit.size, unit.size
    node = unit.physical.node
    if node is not None and unit.physical.mask & ~node.broken == 0:
        return 2 * leaves + 1, 0
    used = unit.used.bit_count()
    return leaves - used if used else leaves + unit.size, unit.idle().bit_count()


def _measure_node(node: Node) -> tuple[int, int]:
    """For opportunistic groups: most opportunistic leaves first, then fewest guaranteed ones; bad nodes last."""
    leaves = node.shape.leaves
    oppo = (node.oppo & ~node.reserved).bit_count()
    rest = (node.guaranteed | node.reserved).bit_count()
    if node.broken == node.mask:
        return (leaves + 1) * (leaves + 1), 0
    return (leaves - oppo) * (leaves + 1) + rest, node.idle().bit_count()


@dataclass(frozen=True, slots=True)
class Parts:
    """Suggested nodes of which some may be used in part: the devices that are given for them."""

    names: frozenset[str]
    devices: Mapping[str, Collection[int]]


Suggested = Collection[str] | Parts | None
"""Nodes that may be used: their names, or with each name the devices that may be, None for all. None is all nodes."""


class Trees:
    """State of a cluster; :class:`~pai_backend.scheduling.core.ledger.Ledger` adds what can be done with it."""

    def __init__(self, config: ClusterConfig, *, by_size: bool = True) -> None:
        self.by_size = by_size
        """Empty quota cells are tried by size, the smallest first; False: as HiveD does, whole nodes first."""
        self.journal = Journal()
        self.room = Room(self.journal)
        """CPU and memory of nodes."""
        self.entries = Entries(self.journal)
        """Who waits, for whom a place is kept, and who runs."""
        self.ports = Ports(self.journal)
        """The leased ports of machines."""
        self.version = 0
        """Another one after every change of cells; a decision is good for the version it was made on."""
        self.load(config)

    def load(self, config: ClusterConfig) -> None:
        """Empty cells of a configuration, in place of all that there were."""
        self.config = config
        self.chains = {name: make_chain(config, name, self.journal) for name in config.chains()}
        self.quotas: dict[tuple[str, str], Quotas] = {}
        """(virtual cluster, chain) -> quota."""
        self.pinned: dict[tuple[str, str], Quotas] = {}
        """(virtual cluster, pinned id) -> quota."""
        self.by_leaf_type: dict[str, list[Chain]] = {}
        """Leaf type -> its chains, all in the order in which they are tried."""
        self.nodes: dict[str, list[Node]] = {}
        """Node name -> its cells in each chain."""
        self.groups: dict[str, Held] = {}
        """Groups with a place or a reservation, by name, in the order in which they were given it."""
        self.serial = 0
        """How many groups have been given a place or reservation so far."""
        self.binder = Binder(self.journal)
        self._limits: dict[frozenset[str], dict[Node, int]] = {}
        """Sets of suggested nodes as limits, those asked for last."""
        self._build()
        self._node_count = sum(len(nodes) for nodes in self.nodes.values())
        self.health = Health(self.binder, self.quotas, self.journal)
        self.holding = Holding(self.binder, self.health, self.journal)

    def _build(self) -> None:
        """The table of nodes, quotas, and pinned cells bound to their owners for good."""
        for chain in self.chains.values():
            self.by_leaf_type.setdefault(chain.leaf_type, []).append(chain)
            for node in chain.nodes:
                self.nodes.setdefault(node.name, []).append(node)
        pins = {name: cell for chain in self.chains.values() for name, cell in pinned_cells(chain).items()}
        for cluster in self.config.virtual_clusters.values():
            self._add_quotas(cluster, pins)
        for each in (*self.quotas.values(), *self.pinned.values()):
            order_units(each, self.journal, by_size=self.by_size)
            if each.pinned_id:
                self.binder.pin(each.roots[0], pins[each.pinned_id])

    def _add_quotas(self, cluster: VirtualCluster, pins: dict[str, PhysicalCell]) -> None:
        """A virtual cluster's quota cells, numbered in the order of the configuration, pinned ones last."""
        number = 0
        for quota in cluster.quotas:
            chain = self.chains[quota.chain]
            level = chain.level_of[quota.type]
            owner = self.quotas.setdefault((cluster.name, quota.chain), Quotas(cluster.name, chain))
            for _ in range(quota.number):
                add_quota(owner, level, f"{cluster.name}/{number}")
                number += 1
            chain.free[level][cluster.name] += quota.number
            chain.promised[level] += quota.number
        for name in cluster.pinned:
            own = self.pinned[cluster.name, name] = Quotas(cluster.name, pins[name].chain, name)
            add_quota(own, pins[name].level, f"{cluster.name}/{number}")
            number += 1

    def owner(self, vc: str, chain: Chain, pinned_id: str = "") -> Quotas | None:
        """The quota that a group of this virtual cluster uses in a chain."""
        return self.pinned.get((vc, pinned_id)) if pinned_id else self.quotas.get((vc, chain.name))

    def enroll(self, placement: GroupPlace, spots: list[Spot], ordinals: list[int]) -> Held:
        """A record for a group that is about to hold these spots; for this package only."""
        self.serial += 1
        held = Held(placement.group, spots, State.ALLOCATED, self.serial, ordinals, stored=placement)
        self.groups[placement.group.name] = held
        self.journal.note(self.groups.pop, placement.group.name)
        return held

    def strike(self, held: Held) -> None:
        """A group's record goes; for this package only."""
        del self.groups[held.group.name]
        self.journal.note(self._enter_again, held)

    def _enter_again(self, held: Held) -> None:
        """The inverse of :meth:`strike`: the record stands where it stood."""
        is_last = not self.groups or next(reversed(self.groups.values())).serial < held.serial
        self.groups[held.group.name] = held
        if not is_last:
            ordered = sorted(self.groups.values(), key=lambda each: each.serial)
            self.groups.clear()
            self.groups.update((each.group.name, each) for each in ordered)

    def pursue(self, held: Held, victim: Held) -> None:
        """Let a preemptor wait for another group to end; for this package only."""
        if held not in victim.pursuers:
            self.journal.set(victim, "state", State.BEING_PREEMPTED)
            self.journal.set(victim, "pursuers", {**victim.pursuers, held: None})
            held.victims.append(victim)

    def set_broken(self, name: str, *, healthy: bool, bad_devices: Collection[int] = ()) -> bool:
        """Health of a node, see :meth:`Ledger.set_node_health`; whether it was another one before."""
        changed = False
        for node in self.nodes.get(name, ()):
            broken = 0
            for index in bad_devices if healthy else node.indexes:
                if index in node.place:
                    broken |= 1 << node.place[index]
            if broken != node.broken:
                changed = True
                self.health.set(node, broken)
        return changed

    def placements(self) -> Mapping[str, GroupPlace]:
        """Every group that runs, as it may be stored, in order of submission."""
        ordered = sorted(self.groups.values(), key=lambda held: held.serial)
        return {
            held.group.name: replace(held.stored, displaced=bool(held.displaced_by))
            for held in ordered
            if held.state is not State.PREEMPTING and held.stored is not None
        }

    def settle(self, options: Sequence[Option]) -> None:
        """Bring the orders in which nodes are tried up to date."""
        for option in options:
            if option.quotas is None:
                option.chain.ranking.settle()
            else:
                option.quotas.ranking.settle()

    def limits(self, suggested: Suggested) -> Limits | None:
        """Suggested nodes as limits; None when all of all nodes is suggested."""
        if suggested is None:
            return None
        if isinstance(suggested, Parts):
            parts = suggested.devices.items()
            few = {node: _mask_of(node, devices) for name, devices in parts for node in self.nodes.get(name, ())}
            return self._whole(suggested.names) | few
        limits = self._whole(frozenset(suggested))
        return None if len(limits) == self._node_count else limits

    def _whole(self, names: frozenset[str]) -> dict[Node, int]:
        """All leaves of these nodes. Some answers are remembered, since few sets are asked for again and again."""
        found = self._limits.get(names)
        if found is None:
            if len(self._limits) >= MOST_LIMITS:
                del self._limits[next(iter(self._limits))]
            self._limits[names] = found = {node: node.mask for name in names for node in self.nodes.get(name, ())}
        return found


def _mask_of(node: Node, devices: Collection[int]) -> int:
    mask = 0
    for index in devices:
        if index in node.place:
            mask |= 1 << node.place[index]
    return mask


def check_group(trees: Trees, group: Group) -> list[Option]:
    """The chains the group may use, in the order in which they are tried.

    Raises NoVirtualCluster, or InvalidParameters whose fault names the field. Source: HiveD's request validation.
    """
    if group.vc not in trees.config.virtual_clusters:
        have = ", ".join(trees.config.virtual_clusters) or "none"
        raise NoVirtualCluster(
            Text("there is no virtual cluster {vc}", vc=group.vc), hint=Text("There is: {have}.", have=have)
        )
    if not OPPORTUNISTIC <= group.priority <= HIGHEST:
        _refuse("priority", f"priority {group.priority} is out of range", "Give -1 (opportunistic) to 1000.")
    if not group.members or not group.name:
        _refuse("members", "a group needs a name and at least one pod", "Give both.")
    for index, member in enumerate(group.members):
        if member.pods < 1 or member.leaves < 1:
            _refuse(f"members[{index}]", "numbers of pods and cells must be positive", "Give at least 1.")
        if member.min_pods is not None and not 0 <= member.min_pods <= member.pods:
            _refuse(f"members[{index}].minPods", "fewest pods are more than all pods", "Give 0 to the number of pods.")
    if all(member.min_pods == 0 for member in group.members):
        _refuse("members", "a group must start with at least one pod", "Raise minPods.")
    options = _pinned(trees, group) if group.pinned_id else _typed(trees, group)
    for kind in (group.within, *[member.within for member in group.members]):
        if kind and not any(kind in option.chain.level_of for option in options):
            levels = dict.fromkeys(level for option in options for level in reversed(option.chain.level_of))
            hint = f"Name one of: {', '.join(levels) or 'none'}."
            _refuse("withinOneCell", f"there is no cell type {kind} where this group may run", hint)
    return options


def _pinned(trees: Trees, group: Group) -> list[Option]:
    if group.priority == OPPORTUNISTIC:
        _refuse("pinnedCellId", "an opportunistic group cannot use a pinned cell", "Leave one of the two out.")
    quotas = trees.pinned.get((group.vc, group.pinned_id))
    if quotas is None:
        own = trees.config.virtual_clusters[group.vc].pinned
        hint = f"It owns: {', '.join(own) or 'none'}."
        _refuse("pinnedCellId", f"virtual cluster {group.vc} does not own pinned cell {group.pinned_id}", hint)
    return [Option(quotas.chain, quotas)]


def _typed(trees: Trees, group: Group) -> list[Option]:
    if group.leaf_type:
        if group.leaf_type not in trees.by_leaf_type:
            hint = f"There is: {', '.join(trees.by_leaf_type) or 'none'}."
            _refuse("leafCellType", f"the cluster has no cells of type {group.leaf_type}", hint)
        ordered = trees.by_leaf_type[group.leaf_type]
    else:
        ordered = [chain for chains in trees.by_leaf_type.values() for chain in chains]
    if group.priority == OPPORTUNISTIC:
        return [Option(chain, None) for chain in ordered]
    options = [
        Option(chain, quotas)
        for chain in ordered
        if (quotas := trees.quotas.get((group.vc, chain.name))) is not None and quotas.roots
    ]
    if not options and group.leaf_type:
        owned = sorted(
            {chain.leaf_type for (vc, _), quotas in trees.quotas.items() if vc == group.vc for chain in [quotas.chain]}
        )
        hint = f"It owns: {', '.join(owned) or 'nothing'}; an opportunistic group may use any type."
        _refuse("leafCellType", f"virtual cluster {group.vc} owns no cells of type {group.leaf_type}", hint)
    return options


def _refuse(field: str, message: str, hint: str) -> NoReturn:
    raise InvalidParameters(message, errors=[Fault(path=f"$.{field}", message=message, hint=hint)], hint=hint)
