"""The index of the queue: waiting entries by kind, so that one of each kind is asked for all.

A *kind* are entries that look the same to the cells. Its *variants* differ in what they ask of nodes besides cells, and
a *line* is one user's part of a variant, since a user may be at a cap while others are not.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Hashable, Sequence
from heapq import heappop, heappush

from pai_backend.scheduling.core.group import Wait
from pai_backend.scheduling.core.place import Option
from pai_backend.scheduling.core.reason import WaitCode
from pai_backend.scheduling.queue.entry import Entry, Key, KindKey, Ticket
from pai_backend.scheduling.queue.policy import Scope

NEVER = frozenset({WaitCode.QUOTA, WaitCode.SHAPE})
"""Reasons that time does not cure: such a group holds nobody up."""
ABOUT_NODES = frozenset({WaitCode.NOT_SUGGESTED, WaitCode.BAD_NODES})
"""Reasons that hold for what this entry asks of nodes; entries of the same kind with other needs may still start."""
SLACK = 32
"""Entries of a kind's heap, beyond two a line, that may have lost their meaning before it is made anew."""


def _key(ticket: Ticket) -> Key:
    return ticket.key


class Line:
    """One user's entries of a variant, in order. ``parked`` names the cap that keeps the first from starting."""

    __slots__ = ("parked", "tickets", "user", "variant")

    def __init__(self, variant: Variant, user: str) -> None:
        self.variant = variant
        self.user = user
        self.tickets: list[Ticket] = []
        self.parked: Scope | None = None


class Variant:
    """Entries of a kind with equal needs. ``wait`` is remembered until something changes; None means: ask."""

    __slots__ = ("key", "kind", "lines", "suggested", "wait")

    def __init__(self, kind: Kind, key: Hashable) -> None:
        self.kind = kind
        self.key = key
        self.lines: dict[str, Line] = {}
        self.wait: Wait | None = None
        self.suggested: object = None
        """What the nodes were when it was asked."""


class Kind:
    """All waiting entries of one kind. ``wait`` is what the cells last said to all of them; None means: ask.

    ``options`` are the chains it may use; ``least`` the leaves it cannot start without.
    """

    __slots__ = ("_heap", "_lines", "_pushes", "key", "least", "options", "pending", "stuck", "variants", "wait")

    def __init__(self, key: KindKey, options: Sequence[Option]) -> None:
        self.key = key
        self.options = options
        self.least = sum(pods * leaves for pods, leaves, _ in key.shape)
        self.variants: dict[Hashable, Variant] = {}
        self.wait: Wait | None = None
        self.pending = False
        self.stuck = False
        """No cells could be kept for it, even if all running groups ended."""
        self._heap: list[tuple[Key, int, Line]] = []
        self._pushes = 0
        self._lines = 0

    @property
    def never(self) -> bool:
        """Whether it cannot start however long it waits."""
        return self.wait is not None and self.wait.reason.code in NEVER

    def add(self, ticket: Ticket) -> None:
        """One more waits."""
        entry = ticket.entry
        key = (entry.needs, entry.group.ignore_suggested, entry.group.members)
        variant = self.variants.get(key)
        if variant is None:
            variant = self.variants[key] = Variant(self, key)
        line = variant.lines.get(entry.user)
        if line is None:
            line = variant.lines[entry.user] = Line(variant, entry.user)
            self._lines += 1
        ticket.line = line
        insort(line.tickets, ticket, key=_key)
        if line.tickets[0] is ticket:
            self._push(line)

    def remove(self, ticket: Ticket) -> None:
        """It waits no more."""
        line = ticket.line
        assert line is not None
        del line.tickets[bisect_left(line.tickets, ticket.key, key=_key)]
        ticket.line = None
        if line.tickets:
            self._push(line)
            return
        del line.variant.lines[line.user]
        self._lines -= 1
        if not line.variant.lines:
            del self.variants[line.variant.key]

    def first(self) -> Ticket | None:
        """The first entry that neither a cap nor its nodes keep from starting."""
        while self._heap:
            key, _, line = self._heap[0]
            if line.tickets and line.tickets[0].key == key and line.parked is None and line.variant.wait is None:
                return line.tickets[0]
            heappop(self._heap)
        return None

    def awake(self) -> None:
        """Something changed: forget what the cells and the nodes said."""
        self.wait = None
        self.stuck = False
        for variant in self.variants.values():
            self.retry(variant)

    def retry(self, variant: Variant) -> None:
        """Forget what a variant's nodes said."""
        if variant.wait is not None:
            variant.wait = None
            for line in variant.lines.values():
                self._push(line)

    def unpark(self, line: Line) -> None:
        """The user's cap has room again."""
        line.parked = None
        self._push(line)

    def entries(self) -> list[Entry]:
        """All that wait, line by line."""
        return [
            ticket.entry
            for variant in self.variants.values()
            for line in variant.lines.values()
            for ticket in line.tickets
        ]

    def ahead(self, key: Key) -> int:
        """How many have a smaller key."""
        return sum(
            bisect_left(line.tickets, key, key=_key)
            for variant in self.variants.values()
            for line in variant.lines.values()
        )

    def _push(self, line: Line) -> None:
        """Offer the line's first entry. Entries of the heap that no longer hold are dropped when they surface."""
        if not line.tickets or line.parked is not None or line.variant.wait is not None:
            return
        if len(self._heap) > 2 * self._lines + SLACK:
            self._heap.clear()
            for variant in self.variants.values():
                for other in variant.lines.values():
                    if other is not line:
                        self._push(other)
        self._pushes += 1
        heappush(self._heap, (line.tickets[0].key, self._pushes, line))
