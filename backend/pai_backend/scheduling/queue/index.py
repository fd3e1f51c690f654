"""Which waiting kinds are to be asked: those that are new, and those that could profit from what became free."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Collection, Sequence
from typing import NamedTuple

from pai_backend.scheduling.cells.journal import Journal
from pai_backend.scheduling.core.place import Option
from pai_backend.scheduling.queue.entry import KindKey, Lane
from pai_backend.scheduling.queue.kind import Kind, LazyHeap, Line, Ticket, Variant
from pai_backend.scheduling.request import Entry, Key

BEGIN: Key = (-(10**9), 0, "", "")
"""Before every key."""


class Failed:
    """Kinds without a place. Good as long as cells are only taken; :meth:`clear` it when some are freed."""

    def __init__(self, journal: Journal) -> None:
        self._journal = journal
        self._kinds: dict[Lane, list[KindKey]] = {}
        """Per lane, kinds of which none needs as much as another."""

    def clear(self) -> None:
        """Cells became free."""
        self._journal.set(self, "_kinds", {})

    def add(self, kind: KindKey) -> None:
        """No cells for this kind, on whatever nodes. Kinds that must lie within one cell say nothing of others."""
        if not kind.within and not any(within for _, _, within in kind.shape):
            known = self._kinds.get(kind.lane, [])
            kept = [other for other in known if not _needs_as_much(other, kind)]
            self._journal.put(self._kinds, kind.lane, [*kept, kind])

    def covers(self, kind: KindKey) -> bool:
        """Whether this kind needs at least what something of at least its priority did not get."""
        return any(_needs_as_much(kind, other) for other in self._kinds.get(kind.lane, ()))


def _needs_as_much(kind: KindKey, other: KindKey) -> bool:
    """Whether a place for ``kind`` would hold ``other``: as many pods of each size or more, and no higher priority."""
    return kind.priority <= other.priority and all(
        _pods(kind, size) >= _pods(other, size) for _, size, _ in other.shape
    )


def _pods(kind: KindKey, size: int) -> int:
    """How many pods have at least that many leaves."""
    return sum(pods for pods, leaves, _ in kind.shape if leaves >= size)


class Shelf:
    """Three lists in step, so that a walk passes thousands of kinds that are too large in a millisecond.

    ``cursor`` is how far the walk has come; None while there is nothing to look at. What it has passed stays passed,
    since room only shrinks, until cells are freed and the walk begins again.
    """

    def __init__(self, option: Option, priority: int, journal: Journal) -> None:
        self._journal = journal
        self.option = option
        self.priority = priority
        self.cursor: Key | None = None
        self._keys: list[Key] = []
        self._leasts: list[int] = []
        self._kinds: list[Kind] = []

    def put(self, kind: Kind, key: Key) -> None:
        """The kind stands at this key from now on."""
        at = bisect_left(self._keys, key)
        self._keys.insert(at, key)
        self._leasts.insert(at, kind.least)
        self._kinds.insert(at, kind)
        self._journal.note(self.take, kind, key)

    def take(self, kind: Kind, key: Key) -> None:
        """The kind stood at this key, and does no longer."""
        at = bisect_left(self._keys, key)
        del self._keys[at], self._leasts[at], self._kinds[at]
        self._journal.note(self.put, kind, key)

    def pass_over(self, key: Key) -> None:
        """The walk, if there is one, has come to this key."""
        if self.cursor is not None and key > self.cursor:
            self._journal.set(self, "cursor", key)

    def next(self, failed: Failed) -> Kind | None:
        """The next kind on the walk that cells could suffice for; again and again until the cursor is put past it."""
        if self.cursor is None:
            return None
        room = capacity(self.option, self.priority)
        for at in range(bisect_right(self._keys, self.cursor), len(self._keys)):
            if self._leasts[at] <= room and not failed.covers(self._kinds[at].key):
                if at:
                    self.pass_over(self._keys[at - 1])
                return self._kinds[at]
        self._journal.set(self, "cursor", None)
        return None


def capacity(option: Option, priority: int) -> int:
    """The most leaves that a group of this priority can possibly get, whomever it ends."""
    if option.quotas is None:
        option.chain.ranking.settle()
        return sum(free * count for free, count in enumerate(option.chain.ranking.count))
    return option.quotas.leaves - sum(leaves for other, leaves in option.quotas.owned.items() if other >= priority)


class Owner(NamedTuple):
    """Whose cells: a virtual cluster's quota in a chain, or its pinned cell; "" stands for all that is idle."""

    vc: str
    chain: str
    pinned_id: str


MayProfit = Callable[[Entry, Collection[str]], bool]


class Index:
    """All waiting kinds. A kind is asked when it is *pending*, or when the walk along its shelf comes to it."""

    def __init__(self, failed: Failed, journal: Journal, may_profit: MayProfit) -> None:
        """``may_profit``: see :meth:`Decider.may_profit`."""
        self._journal = journal
        self._may_profit = may_profit
        self.kinds: dict[KindKey, Kind] = {}
        self.lanes: dict[Lane, LazyHeap[Kind]] = {}
        """Per lane, its kinds by their first entry, except those that no cells can be kept for."""
        self._failed = failed
        self._shelves: dict[Owner, dict[int, Shelf]] = {}
        self._walked: dict[tuple[Owner, int], Shelf] = {}
        """Shelves with cells that were freed and not yet offered to all."""
        self._at_nodes: dict[str, dict[Variant, None]] = {}
        """Chain, or "" for nodes without cells -> variants that wait for something that a node has besides cells.

        Some do no longer, and are dropped when nodes of the chain change."""
        self._pending: LazyHeap[Kind] = LazyHeap(lambda kind: kind.first_key() if kind.pending else None, journal)

    # -- entering and leaving --------------------------------------------------------------------------------------

    def add(self, ticket: Ticket, key: KindKey, options: list[Option], chains: Sequence[str]) -> Line:
        """One more waits, in this line. It is asked unless one before it waits for the same.

        ``chains``: see :class:`Variant`.
        """
        kind = self.kinds.get(key)
        if kind is None:
            self._journal.put(self.kinds, key, kind := Kind(key, options, self._journal))
        line = kind.add(ticket, chains)
        if kind.first() is ticket:
            self._journal.set(kind, "pending", True)
        self.touch(kind)
        return line

    def remove(self, ticket: Ticket) -> None:
        """It no longer waits."""
        kind = kind_at(ticket)
        kind.remove(ticket)
        self.touch(kind)
        if not kind.variants:
            self._journal.drop(self.kinds, kind.key)

    def unpark(self, line: Line) -> None:
        """The cap that kept a line has room again: ask."""
        kind = line.variant.kind
        kind.unpark(line)
        self._journal.set(kind, "pending", True)
        self.touch(kind)

    def touch(self, kind: Kind) -> None:
        """The first of this kind may be another one: let shelves, lane and what is pending know."""
        key = kind.first_key()
        if key != kind.shelved:
            for owner in owners_of(kind):
                self._shelve(kind, owner, key)
            self._journal.set(kind, "shelved", key)
        if kind.front_key() is not None and kind.key.lane.vc and not kind.never:
            lane = self.lanes.get(kind.key.lane)
            if lane is None:
                lane = self.lanes[kind.key.lane] = LazyHeap(
                    lambda kind: None if kind.stuck else kind.front_key(), self._journal
                )
            lane.push(kind)
        if key is not None and kind.pending:
            self._pending.push(kind)

    def _shelve(self, kind: Kind, owner: Owner, key: Key | None) -> None:
        shelves = self._shelves.setdefault(owner, {})
        shelf = shelves.get(kind.key.priority)
        if shelf is None:
            option = next(option for option in kind.options if option.chain.name == owner.chain)
            shelf = shelves[kind.key.priority] = Shelf(option, kind.key.priority, self._journal)
        if kind.shelved is not None:
            shelf.take(kind, kind.shelved)
        if key is not None:
            shelf.put(kind, key)

    # -- who is next -----------------------------------------------------------------------------------------------

    def next(self) -> Ticket | None:
        """The first in the order of the queue that is to be asked; again and again until it is answered."""
        best = self._pending.first()
        best_key = None if best is None else best.first_key()
        for each, shelf in list(self._walked.items()):
            kind = shelf.next(self._failed)
            if kind is None:
                self._journal.drop(self._walked, each)
            elif best_key is None or (kind.shelved is not None and kind.shelved < best_key):
                best, best_key = kind, kind.shelved
        return None if best is None else best.first()

    def answered(self, kind: Kind) -> None:
        """The cells have no room for this kind: do not ask again until some are freed."""
        self._journal.set(kind, "pending", False)
        for variant in kind.variants.values():
            if variant.woken_by is not None:
                self._journal.set(variant, "woken_by", None)
        if kind.shelved is not None:
            for owner in owners_of(kind):
                self._shelves[owner][kind.key.priority].pass_over(kind.shelved)

    def answered_variant(self, variant: Variant) -> None:
        """The nodes have no room for this variant: do not ask again until nodes or cells change."""
        self._journal.set(variant, "asleep", True)
        self._journal.set(variant, "woken_by", None)
        for chain in variant.chains:
            self._journal.put(self._at_nodes.setdefault(chain, {}), variant, None)
        self.touch(variant.kind)

    def is_answered(self, kind: Kind) -> bool:
        """Whether the first of this kind has been asked since it could last have changed anything."""
        if kind.shelved is None:
            return bool(kind.key.others)  # asked, and asleep until another group's cells are freed
        if kind.pending:
            return False
        shelves = (self._walked.get((owner, kind.key.priority)) for owner in owners_of(kind))
        return all(shelf is None or shelf.cursor is None or shelf.cursor >= kind.shelved for shelf in shelves)

    # -- what changed ----------------------------------------------------------------------------------------------

    def freed(self, owner: Owner) -> None:
        """Cells of this owner became free: offer them along its shelves."""
        for priority, shelf in self._shelves.get(owner, {}).items():
            self._journal.set(shelf, "cursor", BEGIN)
            self._journal.put(self._walked, (owner, priority), shelf)

    def nodes_changed(self, chain: str, nodes: frozenset[str] | None = None) -> None:
        """Nodes of a chain, any or these, have more to give besides cells: ask who waits for that and may profit."""
        known = self._at_nodes.get(chain, {})
        for variant in [*known]:
            kind = variant.kind
            if not variant.waits_for_nodes or kind.variants.get(variant.key) is not variant:
                self._journal.drop(known, variant)
            elif nodes is None or self._may_profit(variant.any_entry, nodes):
                kind.retry(variant, nodes)
                self._journal.set(kind, "pending", True)
                self.touch(kind)

    def chain_changed(self, chain: str) -> None:
        """Anything may have changed in a chain."""
        for owner in self._shelves:
            if owner.chain == chain:
                self.freed(owner)
        self.nodes_changed(chain)


def kind_at(ticket: Ticket) -> Kind:
    """The kind a waiting ticket is in."""
    assert ticket.line is not None
    return ticket.line.variant.kind


def owners_of(kind: Kind) -> list[Owner]:
    """Whose cells a kind uses."""
    lane = kind.key.lane
    return [Owner(lane.vc, option.chain.name, lane.pinned_id) for option in kind.options]
