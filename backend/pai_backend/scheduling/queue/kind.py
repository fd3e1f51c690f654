"""The index of the queue: waiting entries by kind, so that one of each kind is asked for all.

A *kind* are entries that look the same to the cells. Its *variants* differ in what they ask of nodes besides cells, and
a *line* is the part of a variant that one user has in one virtual cluster, who may be at a cap while others are not.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections import Counter
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from heapq import heappop, heappush
from typing import Generic, TypeVar

from pai_backend.scheduling.cells.journal import Journal
from pai_backend.scheduling.cells.ranking import could_hold
from pai_backend.scheduling.core.place import Option
from pai_backend.scheduling.queue.entry import KindKey, Lane, Scope
from pai_backend.scheduling.request import Entry, Key

T = TypeVar("T")
SLACK = 64
"""Entries beyond two an item at which the heap is rebuilt."""


class LazyHeap(Generic[T]):
    """Items by a key that changes. ``current`` tells an item's key, or None while it is not to be found.

    An undo puts back what was dropped, so that items are found by the keys that they have again.
    """

    __slots__ = ("_current", "_entries", "_items", "_journal", "_listed", "_pushes")

    def __init__(self, current: Callable[[T], Key | None], journal: Journal) -> None:
        self._current = current
        self._journal = journal
        self._entries: list[tuple[Key, int, T]] = []
        self._listed: set[tuple[Key, T]] = set()
        """All items with the keys by which they are in the heap, each once."""
        self._items = 0
        self._pushes = 0

    def push(self, item: T) -> None:
        """The item's key may have become smaller, or it is to be found again."""
        key = self._current(item)
        if key is None or (key, item) in self._listed:
            return
        if self._journal.entries is None and len(self._entries) > 2 * self._items + SLACK:
            self._renew()
        self._pushes += 1
        self._put((key, self._pushes, item))

    def _put(self, entry: tuple[Key, int, T]) -> None:
        heappush(self._entries, entry)
        self._listed.add((entry[0], entry[2]))

    def first(self) -> T | None:
        """The item with the smallest key."""
        while self._entries:
            key, _, item = self._entries[0]
            now = self._current(item)
            if now == key:
                return item
            self._journal.note(self._put, heappop(self._entries))
            self._listed.discard((key, item))
            if now is not None and now > key:
                self.push(item)
        return None

    def _renew(self) -> None:
        """One entry an item."""
        items = list(dict.fromkeys(item for _, _, item in self._entries))
        self._entries.clear()
        self._listed.clear()
        for item in items:
            key = self._current(item)
            if key is not None:
                self._pushes += 1
                self._put((key, self._pushes, item))
        self._items = len(self._entries)


@dataclass(slots=True, eq=False)
class Ticket:
    """A waiting entry inside the queue, with what happened to it while it was first in its lane."""

    entry: Entry
    key: Key
    line: Line | None = None
    overtaken: int = 0
    """How many later groups started in its lane while it was first there."""
    first_since: datetime | None = field(default=None)
    """Since when it has been first; None when it is not."""


@dataclass(slots=True, eq=False)
class Claim:
    """Cells kept for a group, and for those that start together with it, in ``lanes``.

    ``victims`` were asked to end for it; none when it is ``held_back`` for. ``options`` are the group's own.
    """

    ticket: Ticket
    lanes: tuple[Lane, ...]
    options: list[Option]
    least: int
    """Leaves it cannot start without."""
    held_back: bool
    victims: frozenset[str] = frozenset()
    may_fit_elsewhere: bool = False
    """Cells that it could use as well were freed since it was last looked whether they would do."""


def _key(ticket: Ticket) -> Key:
    return ticket.key


class Line:
    """Entries of a variant under the same caps, in order: of one user, virtual cluster and sweep, its ``owner``.

    ``parked`` names the cap that keeps the first from starting.
    """

    __slots__ = ("owner", "parked", "tickets", "variant")

    def __init__(self, variant: Variant, owner: tuple[object, ...]) -> None:
        self.variant = variant
        self.owner = owner
        self.tickets: list[Ticket] = []
        self.parked: Scope | None = None

    @property
    def head(self) -> Key | None:
        """The key of its first entry."""
        return self.tickets[0].key if self.tickets else None


class Variant:
    """Entries of a kind with equal needs. ``asleep``: its nodes have no room, and none of them changed since.

    ``woken_by`` are the nodes whose change woke it, of which one must still have room when it is asked: what was asked
    before it may have taken that. None when anything may have changed.

    ``chains`` are those in which a change may help it; "" stands for nodes without cells.
    """

    __slots__ = ("_heads", "asleep", "chains", "key", "kind", "lines", "woken_by")

    def __init__(self, kind: Kind, key: Hashable, chains: Sequence[str], journal: Journal) -> None:
        self.kind = kind
        self.key = key
        self.chains = chains
        self.lines: dict[tuple[object, ...], Line] = {}
        self.asleep = False
        self.woken_by: frozenset[str] | None = None
        self._heads: LazyHeap[Line] = LazyHeap(_head, journal)

    @property
    def waits_for_nodes(self) -> bool:
        """Whether it is asleep, or was and has not been asked since."""
        return self.asleep or self.woken_by is not None

    def touch(self, line: Line) -> None:
        """The line has another first entry, or a cap has room for it again."""
        self._heads.push(line)

    def first(self) -> Ticket | None:
        """The first entry that no cap keeps from starting."""
        line = self._heads.first()
        return None if line is None else line.tickets[0]

    @property
    def any_entry(self) -> Entry:
        """One of its entries, which all need the same."""
        return next(iter(self.lines.values())).tickets[0].entry


class Kind:
    """All waiting entries of one kind. ``pending``: its first entry is to be asked.

    ``options`` are the chains it may use; ``least`` the leaves it cannot start without; ``never`` says that its virtual
    cluster does not own such cells, so that it waits for ever and holds no other up, or that it needs no cells at all.
    """

    __slots__ = ("_heads", "_journal", "key", "least", "never", "options", "pending", "shelved", "stuck", "variants")

    def __init__(self, key: KindKey, options: Sequence[Option], journal: Journal) -> None:
        self._journal = journal
        self.key = key
        self.options = options
        sizes: Counter[int] = Counter()
        for pods, leaves, _ in key.shape:
            sizes[leaves] += pods
        self.least = sum(pods * leaves for leaves, pods in sizes.items())
        rooms = [option.quotas.sizes for option in options if option.quotas is not None]
        self.never = not any(could_hold(room.items(), sizes) for room in rooms)
        if self.never and key.spread and rooms:
            self.never = not could_hold(sum(rooms, Counter[int]()).items(), sizes)
            self.least = min(sizes)  # of one chain, which need not have room for more
        self.variants: dict[Hashable, Variant] = {}
        self.pending = False
        self.shelved: Key | None = None
        """The key at which it stands on its shelves."""
        self.stuck = False
        """No cells could be kept for it even if all that runs ended: nodes are bad."""
        self._heads: LazyHeap[Variant] = LazyHeap(_first_key, journal)

    def add(self, ticket: Ticket, chains: Sequence[str]) -> Line:
        """One more waits, in this line; changes in these chains may help it."""
        entry = ticket.entry
        key = _variant_key(entry)
        variant = self.variants.get(key)
        if variant is None:
            self._journal.put(self.variants, key, variant := Variant(self, key, chains, self._journal))
        owner = (entry.user, entry.vc, entry.sweep, entry.sweep_tasks)
        line = variant.lines.get(owner)
        if line is None:
            self._journal.put(variant.lines, owner, line := Line(variant, owner))
        self._journal.set(ticket, "line", line)
        _insert(line.tickets, ticket)
        self._journal.note(_delete, line.tickets, ticket)
        if line.tickets[0] is ticket:
            self._touch(line)
        return line

    def _touch(self, line: Line) -> None:
        line.variant.touch(line)
        self._heads.push(line.variant)

    def remove(self, ticket: Ticket) -> None:
        """It no longer waits."""
        line = ticket.line
        assert line is not None
        _delete(line.tickets, ticket)
        self._journal.note(_insert, line.tickets, ticket)
        self._journal.set(ticket, "line", None)
        if line.tickets:
            self._touch(line)
            return
        self._journal.drop(line.variant.lines, line.owner)
        if not line.variant.lines:
            self._journal.drop(self.variants, line.variant.key)

    def first(self) -> Ticket | None:
        """The first entry that neither a cap nor its nodes keep from starting."""
        variant = self._heads.first()
        return None if variant is None else variant.first()

    def first_key(self) -> Key | None:
        """The key of :meth:`first`."""
        first = self.first()
        return None if first is None else first.key

    def front(self) -> Ticket | None:
        """The entry whose patience counts. One that starts with other groups may be asleep until they have cells."""
        if not self.key.others:
            return self.first()
        lines = (line for variant in self.variants.values() for line in variant.lines.values() if line.parked is None)
        return min((line.tickets[0] for line in lines), key=_key, default=None)

    def front_key(self) -> Key | None:
        """The key of :meth:`front`."""
        front = self.front()
        return None if front is None else front.key

    def sleeps(self, entry: Entry) -> bool:
        """Whether an entry of this kind would join a variant that is asleep."""
        variant = self.variants.get(_variant_key(entry))
        return variant is not None and variant.asleep

    def retry(self, variant: Variant, nodes: frozenset[str] | None) -> None:
        """These nodes may have room for the variant again; None stands for any."""
        known = frozenset[str]() if variant.asleep else variant.woken_by
        woken_by = None if nodes is None or known is None else known | nodes
        self._journal.set(variant, "woken_by", woken_by)
        if variant.asleep:
            self._journal.set(variant, "asleep", False)
            self._heads.push(variant)

    def unpark(self, line: Line) -> None:
        """The cap has room again."""
        self._journal.set(line, "parked", None)
        self._touch(line)


def _insert(tickets: list[Ticket], ticket: Ticket) -> None:
    insort(tickets, ticket, key=_key)


def _delete(tickets: list[Ticket], ticket: Ticket) -> None:
    del tickets[bisect_left(tickets, ticket.key, key=_key)]


def _variant_key(entry: Entry) -> Hashable:
    members = (entry.group.members, *(other.members for other in entry.others))
    return (entry.needs, entry.group.ignore_suggested, members, bool(entry.loose))


def _head(line: Line) -> Key | None:
    return None if line.parked is not None else line.head


def _first_key(variant: Variant) -> Key | None:
    first = None if variant.asleep else variant.first()
    return None if first is None else first.key
