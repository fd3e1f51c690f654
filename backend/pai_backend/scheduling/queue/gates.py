"""Caps in order: while a group waits for a cap, later groups under the same cap wait behind it.

So a large group comes to its turn under a cap too. A group that exceeds the cap all by itself holds nobody up.
"""

from __future__ import annotations

from pai_backend.scheduling.queue.entry import Entry, Key
from pai_backend.scheduling.queue.heap import LazyHeap
from pai_backend.scheduling.queue.kind import Line, Ticket
from pai_backend.scheduling.queue.policy import Policy, Scope, Usage, scopes
from pai_backend.scheduling.request import OPPORTUNISTIC


class Gates:
    """Lines that wait for a cap, by cap."""

    def __init__(self, policy: Policy) -> None:
        self.policy = policy
        self.usage = Usage(policy)
        self._parked: dict[Scope, LazyHeap[Line]] = {}
        self._loosened: set[Scope] = set()
        """Caps that may have room for the first who waits for them."""
        self._in_order: LazyHeap[Scope] = LazyHeap(
            lambda scope: self._first(scope) if scope in self._loosened else None
        )

    def stop(self, ticket: Ticket) -> bool:
        """Park the ticket's line when a cap, or an earlier group that waits for one, is in its way."""
        line = ticket.line
        assert line is not None
        scope = self.blocking(ticket.entry)
        if scope is None:
            return False
        line.parked = scope
        self.changed(line)
        return True

    def blocking(self, entry: Entry) -> Scope | None:
        """Whose cap keeps an entry from starting now: it has no room, or an earlier group waits for that cap."""
        if entry.group.priority == OPPORTUNISTIC:
            return None
        excess = self.usage.excess(entry)
        for scope, _ in scopes(self.policy, entry.vc, entry.user):
            before = self._first(scope)
            if (excess is not None and excess.scope == scope) or (before is not None and before < entry.key):
                return scope
        return None

    def changed(self, line: Line) -> None:
        """The first entry of a line was parked, or of a parked one is another now."""
        if line.parked is not None and line.tickets:
            entry = line.tickets[0].entry
            excess = self.usage.excess(entry)
            if excess is None or not excess.alone(entry):
                self._at(line.parked).push(line)
                self._in_order.push(line.parked)

    def loosen(self, entry: Entry) -> None:
        """An entry has left that ran or waited under its caps: others may go on."""
        for scope, _ in scopes(self.policy, entry.vc, entry.user):
            if self._first(scope) is None:
                self._parked.pop(scope, None)
                self._loosened.discard(scope)
            else:
                self._loosened.add(scope)
                self._in_order.push(scope)

    def ready(self) -> Line | None:
        """The first line of all that no cap it is parked at keeps from going on; the same until it does.

        Those behind it follow, whatever becomes of it, for as long as their cap has room.
        """
        while (scope := self._in_order.first()) is not None:
            line = self._parked[scope].first()
            assert line is not None
            excess = self.usage.excess(line.tickets[0].entry)
            if excess is None or excess.scope != scope:
                return line
            self._loosened.discard(scope)
        return None

    def lets_go_on(self, ticket: Ticket) -> bool:
        """Whether another who waits for the same cap may go on when this one waits no more."""
        line = ticket.line
        scope = None if line is None else line.parked
        if line is None or scope is None or line.tickets[0] is not ticket or self._first(scope) != ticket.key:
            return False
        behind = line.tickets[1].entry if len(line.tickets) > 1 else None
        line.parked = None
        other = self._parked[scope].first()
        line.parked = scope
        self._parked[scope].push(line)
        if other is not None and (behind is None or other.tickets[0].key < behind.key):
            behind = other.tickets[0].entry
        excess = None if behind is None else self.usage.excess(behind)
        return behind is not None and (excess is None or excess.scope != scope)

    def _at(self, scope: Scope) -> LazyHeap[Line]:
        if scope not in self._parked:
            self._parked[scope] = LazyHeap(lambda line: line.head if line.parked == scope else None)
        return self._parked[scope]

    def _first(self, scope: Scope) -> Key | None:
        heap = self._parked.get(scope)
        line = heap.first() if heap is not None else None
        return None if line is None else line.head
