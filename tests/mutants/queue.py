"""Wrong queues, each missing something, that the property tests must reject: (object, attribute, wrong function)."""

from __future__ import annotations

from datetime import datetime
from heapq import heappop

from pai_backend.scheduling import Bound
from pai_backend.scheduling.cells.journal import Journal
from pai_backend.scheduling.queue import Entry, Pass, Queue, holdback
from pai_backend.scheduling.queue.entry import Parked
from pai_backend.scheduling.queue.index import Failed, Index, Owner
from pai_backend.scheduling.queue.kind import LazyHeap, Line, Ticket
from pai_backend.scheduling.queue.policy import Gates


def _knows_no_cap(self: Gates, entry: Entry) -> None:
    """Lets everybody through."""


def _lets_nobody_go_on(self: Gates, entry: Entry) -> None:
    """A cap has room again, and nobody is asked who waits for it."""


def _forgets_who_waits(self: Gates, line: Line) -> None:
    """Who waits for a cap is written down nowhere."""


def _passes_no_turn_on(self: Queue, answer: Pass) -> Ticket | None:
    """Lets one go on who waits for a cap that has room, and those behind it only when something ends again."""
    line = self.gates.ready()
    if line is not None:
        self.gates._loosened.clear()
        self._carry(Parked(line.tickets[0].entry.group.name, None), answer)
    return self.index.next()


def _tells_nobody(self: Index, owner: Owner) -> None:
    """Cells became free, and nobody is asked."""


def _never_forgets(self: Failed) -> None:
    """What found no place once finds none for ever."""


def _promises_too_much(self: Queue, entry: Entry, now: datetime) -> bool:
    """Looks at cells only, not at caps and those who come first."""
    return isinstance(self.ledger.decide(entry.group), Bound)


def _has_all_patience(self: Queue, front: object, now: datetime) -> bool:
    """Whoever is first may be overtaken for ever."""
    return False


def _keeps_nothing(*arguments: object) -> None:
    """Finds no cells to keep."""


def _forgets_how_to_undo(self: Journal, table: dict[object, object], key: object, value: object) -> None:
    """Changes a table, and notes nothing."""
    table[key] = value


def _forgets_what_it_dropped(self: LazyHeap[object]) -> object:
    """Drops what has another key now, and notes nothing."""
    while self._entries:
        key, _, item = self._entries[0]
        if self._current(item) == key:
            return item
        heappop(self._entries)
    return None


RANDOM: list[tuple[object, str, object]] = [
    (Gates, "blocking", _knows_no_cap),
    (Index, "freed", _tells_nobody),
    (Queue, "would_start", _promises_too_much),
]
UNDONE: list[tuple[object, str, object]] = [
    (Journal, "put", _forgets_how_to_undo),
    (LazyHeap, "first", _forgets_what_it_dropped),
]
CAPPED: list[tuple[object, str, object]] = [
    (Gates, "loosen", _lets_nobody_go_on),
    (Gates, "changed", _forgets_who_waits),
    (Queue, "next", _passes_no_turn_on),
]
TIMED: list[tuple[object, str, object]] = [
    (Queue, "_is_due", _has_all_patience),
    (holdback, "keep_cells", _keeps_nothing),
    (Failed, "clear", _never_forgets),
]
