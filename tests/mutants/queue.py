"""Wrong queues, each missing something, that the property tests must reject: (object, attribute, wrong function)."""

from __future__ import annotations

from datetime import datetime

from pai_backend.scheduling import Bound
from pai_backend.scheduling.core.decision import EntryState
from pai_backend.scheduling.core.room import Entries
from pai_backend.scheduling.queue import Entry, Queue, holdback
from pai_backend.scheduling.queue.holdback import Fronts
from pai_backend.scheduling.queue.index import Failed, Index, Owner
from pai_backend.scheduling.queue.kind import Line, Ticket
from pai_backend.scheduling.queue.policy import Gates


def _knows_no_cap(self: Gates, ticket: object) -> bool:
    """Lets everybody through."""
    return False


def _lets_nobody_go_on(self: Gates, entry: Entry) -> None:
    """A cap has room again, and nobody is asked who waits for it."""


def _forgets_who_waits(self: Gates, line: Line) -> None:
    """Who waits for a cap is written down nowhere."""


def _passes_no_turn_on(self: Queue) -> Ticket | None:
    """Lets one go on who waits for a cap that has room, and those behind it only when something ends again."""
    line = self.gates.ready()
    if line is not None:
        self.gates._loosened.clear()
        self.index.unpark(line)
    return self.index.next()


def _tells_nobody(self: Index, owner: Owner) -> None:
    """Cells became free, and nobody is asked."""


def _never_forgets(self: Failed) -> None:
    """What found no place once finds none for ever."""


def _promises_too_much(self: Queue, entry: Entry, now: datetime) -> bool:
    """Looks at cells only, not at caps and those who come first."""
    return isinstance(self.ledger.decide(entry.group), Bound)


def _has_all_patience(self: Fronts, front: object, now: datetime) -> bool:
    """Whoever is first may be overtaken for ever."""
    return False


def _keeps_nothing(*arguments: object) -> None:
    """Finds no cells to keep."""


def _undoes_in_silence(self: Entries, name: str, after: EntryState | None) -> None:
    """The tables of the queue do not hear of what is undone."""
    before = self._states.get(name)
    self._journal.note(_put, self._states, name, before)
    _put(self._states, name, after)
    if self.follower is not None:
        self.follower(before, after)


def _put(states: dict[str, EntryState], name: str, state: EntryState | None) -> None:
    states.pop(name, None)
    if state is not None:
        states[name] = state


RANDOM: list[tuple[object, str, object]] = [
    (Gates, "stop", _knows_no_cap),
    (Index, "freed", _tells_nobody),
    (Queue, "would_start", _promises_too_much),
]
UNDONE: tuple[object, str, object] = (Entries, "set", _undoes_in_silence)
CAPPED: list[tuple[object, str, object]] = [
    (Gates, "loosen", _lets_nobody_go_on),
    (Gates, "changed", _forgets_who_waits),
    (Queue, "next", _passes_no_turn_on),
]
TIMED: list[tuple[object, str, object]] = [
    (Fronts, "_is_due", _has_all_patience),
    (holdback, "keep_cells", _keeps_nothing),
    (Failed, "clear", _never_forgets),
]
