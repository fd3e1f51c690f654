"""All trees of one configuration and the tables to find things in them: what a cluster consists of."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace

from pai_backend.scheduling.cells.binding import Binder
from pai_backend.scheduling.cells.build import add_quota, make_chain, order_units, pinned_cells
from pai_backend.scheduling.cells.health import Health
from pai_backend.scheduling.cells.holding import Holding
from pai_backend.scheduling.cells.journal import Journal
from pai_backend.scheduling.cells.tree import Chain, Held, Node, PhysicalCell, Quotas, Spot, State
from pai_backend.scheduling.config.model import ClusterConfig, VirtualCluster
from pai_backend.scheduling.core.place import Option
from pai_backend.scheduling.core.room import Room
from pai_backend.scheduling.core.search import Limits
from pai_backend.scheduling.request import GroupPlace

Suggested = Collection[str] | Mapping[str, Collection[int] | None] | None
"""Nodes that may be used: their names, or with each name the devices that may be, None for all. None is all nodes."""


class Trees:
    """State of a cluster; :class:`~pai_backend.scheduling.core.ledger.Ledger` adds what can be done with it."""

    def __init__(self, config: ClusterConfig, *, by_size: bool = True) -> None:
        self.by_size = by_size
        """Empty quota cells are tried by size, the smallest first; False: as HiveD does, whole nodes first."""
        self.journal = Journal()
        self.room = Room(self.journal)
        """CPU and memory of nodes."""
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
        self.nodes: dict[str, list[Node]] = {}
        """Node name -> its cells in each chain."""
        self.groups: dict[str, Held] = {}
        """Groups with a place or a reservation, by name, in the order in which they were given it."""
        self.serial = 0
        """How many groups have been given a place or reservation so far."""
        self.binder = Binder(self.journal)
        self._suggested: tuple[frozenset[str] | None, Limits | None] = (None, None)
        self._build()
        self.health = Health(self.binder, self.quotas, self.journal)
        self.holding = Holding(self.binder, self.health, self.journal)

    def _build(self) -> None:
        """The table of nodes, quotas, and pinned cells bound to their owners for good."""
        for chain in self.chains.values():
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
            self.journal.note(setattr, victim, "state", victim.state)
            self.journal.note(setattr, victim, "pursuers", dict(victim.pursuers))
            victim.state = State.BEING_PREEMPTED
            victim.pursuers[held] = None
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
        """Suggested nodes as limits; None when all nodes are suggested. The last answer is remembered."""
        if suggested is None:
            return None
        if isinstance(suggested, Mapping):
            return {
                node: node.mask if devices is None else _mask_of(node, devices)
                for name, devices in suggested.items()
                for node in self.nodes.get(name, ())
            }
        names = suggested if isinstance(suggested, frozenset) else frozenset(suggested)
        known, limits = self._suggested
        if known is not names and known != names:
            if all(name in names for name in self.nodes):
                limits = None
            else:
                limits = {node: node.mask for name, nodes in self.nodes.items() if name in names for node in nodes}
        self._suggested = (names, limits)
        return limits


def _mask_of(node: Node, devices: Collection[int]) -> int:
    mask = 0
    for index in devices:
        if index in node.place:
            mask |= 1 << node.place[index]
    return mask
