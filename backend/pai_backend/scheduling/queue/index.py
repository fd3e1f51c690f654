"""Which waiting kinds could profit from what: by whose cells they use, and by how many they need."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Iterator
from heapq import heappop, heappush
from typing import NamedTuple

from pai_backend.model.errors import PaiError
from pai_backend.scheduling.core.cluster import Cluster
from pai_backend.scheduling.core.group import OPPORTUNISTIC, Group
from pai_backend.scheduling.core.place import Option
from pai_backend.scheduling.core.request import check_group
from pai_backend.scheduling.queue.entry import Key, KindKey, Lane, Ticket, kind_of
from pai_backend.scheduling.queue.kind import Kind, Variant


class Owner(NamedTuple):
    """Whose cells: a virtual cluster's quota in a chain, or its pinned cell; "" owns all that is idle."""

    vc: str
    chain: str
    pinned_id: str


def _least(kind: Kind) -> int:
    return kind.least


class Index:
    """All waiting kinds. What is *pending* is to be asked, in the order of the queue."""

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster
        self.kinds: dict[KindKey, Kind] = {}
        self.lanes: dict[Lane, dict[KindKey, Kind]] = {}
        self._owners: dict[Owner, dict[int, list[Kind]]] = {}
        """Kinds by the cells they use and by priority, each list by leaves needed."""
        self._by_nodes: dict[str, dict[Variant, None]] = {}
        """Chain -> variants that wait for something that a node has besides cells, or for a node's health."""
        self._pending: list[tuple[Key, int, Kind]] = []
        self._pushes = 0

    # -- entering and leaving --------------------------------------------------------------------------------------

    def add(self, ticket: Ticket) -> None:
        """One more waits. It is asked unless its kind is known to wait."""
        key = kind_of(ticket.entry.group)
        kind = self.kinds.get(key)
        if kind is None:
            kind = self._new_kind(key, ticket.entry.group)
        kind.add(ticket)
        self.pend(kind)

    def _new_kind(self, key: KindKey, group: Group) -> Kind:
        kind = self.kinds[key] = Kind(key, options_of(self.cluster, group))
        self.lanes.setdefault(key.lane, {})[key] = kind
        for owner in owners_of(kind):
            insort(self._owners.setdefault(owner, {}).setdefault(key.priority, []), kind, key=_least)
        return kind

    def remove(self, ticket: Ticket) -> None:
        """It waits no more."""
        kind = kind_at(ticket)
        kind.remove(ticket)
        if not kind.variants:
            self._drop(kind)

    def _drop(self, kind: Kind) -> None:
        del self.kinds[kind.key]
        del self.lanes[kind.key.lane][kind.key]
        if not self.lanes[kind.key.lane]:
            del self.lanes[kind.key.lane]
        for owner in owners_of(kind):
            kinds = self._owners[owner][kind.key.priority]
            at = bisect_left(kinds, kind.least, key=_least)
            while kinds[at] is not kind:
                at += 1
            del kinds[at]
            if not kinds:
                del self._owners[owner][kind.key.priority]
            if not self._owners[owner]:
                del self._owners[owner]

    # -- what is to be asked ---------------------------------------------------------------------------------------

    def pend(self, kind: Kind) -> None:
        """Ask the first of this kind, unless the answer is known."""
        first = None if kind.wait is not None else kind.first()
        if first is not None:
            kind.pending = True
            self._pushes += 1
            heappush(self._pending, (first.key, self._pushes, kind))

    def next(self) -> Ticket | None:
        """The first in the order of the queue that is to be asked; it stays so until :meth:`settle`."""
        while self._pending:
            key, _, kind = self._pending[0]
            first = kind.first() if kind.pending and kind.wait is None else None
            if first is not None and first.key == key:
                return first
            heappop(self._pending)
            if first is None:
                kind.pending = False
            elif first.key > key:
                self.pend(kind)
        return None

    def settle(self, ticket: Ticket) -> None:
        """It has been answered; the next of its kind is to be asked when the kind may still start."""
        kind = kind_at(ticket)
        kind.pending = False
        self.pend(kind)

    # -- what changed ----------------------------------------------------------------------------------------------

    def freed(self, owner: Owner) -> None:
        """Cells of this owner became free: wake the kinds that are small enough to profit, and no others."""
        for priority, kinds in self._owners.get(owner, {}).items():
            option = next(option for option in kinds[0].options if option.chain.name == owner.chain)
            room = capacity(option, priority)
            for kind in kinds:
                if kind.least > room:
                    break
                kind.awake()
                self.pend(kind)

    def nodes_changed(self, chain: str) -> None:
        """Nodes of a chain have more to give besides cells: wake those that wait for that."""
        for variant in self._by_nodes.pop(chain, {}):
            if variant.wait is not None:
                variant.kind.retry(variant)
                self.pend(variant.kind)

    def chain_changed(self, chain: str) -> None:
        """Anything may have changed in a chain."""
        for owner in list(self._owners):
            if owner.chain == chain:
                self.freed(owner)
        self.nodes_changed(chain)

    def waits_for_nodes(self, variant: Variant) -> None:
        """Remember that this variant waits for nodes."""
        for option in variant.kind.options:
            self._by_nodes.setdefault(option.chain.name, {})[variant] = None

    def everything_changed(self) -> None:
        """Nothing that was remembered is good any more."""
        self._by_nodes.clear()
        for kind in self.kinds.values():
            kind.awake()
            self.pend(kind)

    def owners(self) -> Iterator[Owner]:
        """Whose cells anybody waits for."""
        return iter(tuple(self._owners))


def kind_at(ticket: Ticket) -> Kind:
    """The kind a waiting ticket is in."""
    assert ticket.line is not None
    return ticket.line.variant.kind


def owners_of(kind: Kind) -> list[Owner]:
    """Whose cells a kind uses."""
    lane = kind.key.lane
    return [Owner(lane.vc, option.chain.name, lane.pinned_id) for option in kind.options]


def options_of(cluster: Cluster, group: Group) -> list[Option]:
    """The chains a group may use; none when a changed configuration has no place for such groups at all."""
    try:
        return check_group(cluster, group)
    except PaiError:
        return []


def capacity(option: Option, priority: int) -> int:
    """The most leaves that a group of this priority can possibly get, whomever it ends."""
    if option.quotas is None:
        option.chain.ranking.settle()
        return sum(free * count for free, count in enumerate(option.chain.ranking.count))
    assert priority != OPPORTUNISTIC
    return option.quotas.leaves - sum(leaves for other, leaves in option.quotas.owned.items() if other >= priority)
