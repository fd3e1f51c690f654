"""Which waiting kinds could profit from what: by whose cells they use, and by how many they need."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Iterator
from typing import NamedTuple

from pai_backend.scheduling.core.group import OPPORTUNISTIC
from pai_backend.scheduling.core.place import Option
from pai_backend.scheduling.queue.entry import Key, KindKey, Lane, Ticket
from pai_backend.scheduling.queue.heap import LazyHeap
from pai_backend.scheduling.queue.kind import Kind, Variant


class Owner(NamedTuple):
    """Whose cells: a virtual cluster's quota in a chain, or its pinned cell; "" stands for all that is idle."""

    vc: str
    chain: str
    pinned_id: str


class Index:
    """All waiting kinds. What is *pending* is to be asked, in the order of the queue."""

    def __init__(self) -> None:
        self.kinds: dict[KindKey, Kind] = {}
        self.lanes: dict[Lane, LazyHeap[Kind]] = {}
        """Per lane, its kinds by their first entry, except those that no cells can be kept for."""
        self._owners: dict[Owner, dict[int, list[Kind]]] = {}
        """Kinds by the cells they use and by priority, each list by leaves needed."""
        self._at_nodes: dict[str, dict[Variant, None]] = {}
        """Chain -> variants that wait for something that a node has besides cells."""
        self._pending: LazyHeap[Kind] = LazyHeap(_pending_key)

    # -- entering and leaving --------------------------------------------------------------------------------------

    def add(self, ticket: Ticket, key: KindKey, options: list[Option]) -> None:
        """One more waits. It is asked unless its kind is known to find no room."""
        kind = self.kinds.get(key)
        if kind is None:
            kind = self.kinds[key] = Kind(key, options)
            for owner in owners_of(kind):
                insort(self._owners.setdefault(owner, {}).setdefault(key.priority, []), kind, key=_least)
        kind.add(ticket)
        self.touch(kind)

    def remove(self, ticket: Ticket) -> None:
        """It waits no more; the next of its kind is to be asked when the kind may still start."""
        kind = kind_at(ticket)
        kind.remove(ticket)
        if kind.variants:
            self.touch(kind)
            return
        del self.kinds[kind.key]
        for owner in owners_of(kind):
            kinds = self._owners[owner][kind.key.priority]
            at = bisect_left(kinds, kind.least, key=_least)
            del kinds[kinds.index(kind, at)]
            if not kinds:
                del self._owners[owner][kind.key.priority]

    # -- what is to be asked ---------------------------------------------------------------------------------------

    def touch(self, kind: Kind) -> None:
        """The first of this kind changed, or it may have room: ask, unless the answer is known."""
        if kind.key.lane.vc and not kind.never:
            lane = self.lanes.get(kind.key.lane)
            if lane is None:
                lane = self.lanes[kind.key.lane] = LazyHeap(_front_key)
            lane.push(kind)
        if not kind.asleep:
            kind.pending = True
            self._pending.push(kind)

    def next(self) -> Ticket | None:
        """The first in the order of the queue that is to be asked; again and again until it is dealt with."""
        kind = self._pending.first()
        return None if kind is None else kind.first()

    def sleep(self, kind: Kind) -> None:
        """The cells have no room for this kind: do not ask again until some are freed."""
        kind.asleep, kind.pending = True, False

    def sleep_variant(self, variant: Variant) -> None:
        """The nodes have no room for this variant: do not ask again until nodes or cells change."""
        variant.asleep = True
        for option in variant.kind.options:
            self._at_nodes.setdefault(option.chain.name, {})[variant] = None
        self.touch(variant.kind)

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
                self.touch(kind)

    def nodes_changed(self, chain: str) -> None:
        """Nodes of a chain have more to give besides cells: wake those that wait for that."""
        for variant in self._at_nodes.pop(chain, {}):
            variant.kind.retry(variant)
            if variant.kind.variants.get(variant.key) is variant:
                self.touch(variant.kind)

    def chain_changed(self, chain: str) -> None:
        """Anything may have changed in a chain."""
        for owner in [owner for owner in self._owners if owner.chain == chain]:
            self.freed(owner)
        self.nodes_changed(chain)

    def tickets(self) -> Iterator[Ticket]:
        """All that wait, kind by kind."""
        for kind in self.kinds.values():
            yield from kind.tickets()


def kind_at(ticket: Ticket) -> Kind:
    """The kind a waiting ticket is in."""
    assert ticket.line is not None
    return ticket.line.variant.kind


def owners_of(kind: Kind) -> list[Owner]:
    """Whose cells a kind uses."""
    lane = kind.key.lane
    return [Owner(lane.vc, option.chain.name, lane.pinned_id) for option in kind.options]


def capacity(option: Option, priority: int) -> int:
    """The most leaves that a group of this priority can possibly get, whomever it ends."""
    if option.quotas is None:
        option.chain.ranking.settle()
        return sum(free * count for free, count in enumerate(option.chain.ranking.count))
    assert priority != OPPORTUNISTIC
    return option.quotas.leaves - sum(leaves for other, leaves in option.quotas.owned.items() if other >= priority)


def _least(kind: Kind) -> int:
    return kind.least


def _pending_key(kind: Kind) -> Key | None:
    if not kind.pending or kind.asleep:
        return None
    return kind.first_key()


def _front_key(kind: Kind) -> Key | None:
    return None if kind.stuck else kind.first_key()
