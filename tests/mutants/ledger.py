"""Ledgers that forget something when a decision is undone: (object, attribute, wrong function)."""

from __future__ import annotations

from pai_backend.model.ids import TaskUid
from pai_backend.scheduling.cells.holding import Holding
from pai_backend.scheduling.cells.ranking import Ranking
from pai_backend.scheduling.cells.tree import Held, Node
from pai_backend.scheduling.core.decision import EntryState
from pai_backend.scheduling.core.room import Entries, Ports, Room
from pai_backend.scheduling.core.trees import Trees
from pai_backend.scheduling.request import Need


def _forgets_where_it_was(self: Ranking[Node], node: Node) -> None:
    """Notes no position: what was settled in between stays moved."""
    if not node.stale:
        node.stale = True
        self._stale.append(node)


def _puts_back_at_the_end(self: Trees, held: Held) -> None:
    """Forgets that the group stood before others."""
    self.groups[held.group.name] = held


def _forgets_the_order(self: Holding, node: Node, held: Held, mask: int) -> None:
    """Is its own inverse, but for the order of who runs there."""
    left = node.running.pop(held, 0) ^ mask
    if left:
        node.running[held] = left
    self.journal.note(self._running, node, held, mask)


def _forgets_who_is_hunted(self: Trees, held: Held, victim: Held) -> None:
    """A victim stays one when its preemptor is undone."""
    victim.state = type(victim.state).BEING_PREEMPTED
    victim.pursuers[held] = None
    held.victims.append(victim)


def _keeps_room(self: Room, uid: TaskUid, held: tuple[str, Need] | None) -> None:
    """Takes CPU and memory, and notes nothing."""
    before = self._held.pop(uid, None)
    for each, sign in ((before, -1), (held, 1)):
        if each is not None:
            self._count(*each, sign)
    if held is not None:
        self._held[uid] = held


def _keeps_the_port(self: Ports, machine: str, port: int, owner: str | None) -> None:
    """Leases a port, and notes nothing."""
    owners = self._by_machine.setdefault(machine, {})
    before = owners.pop(port, None)
    if before is not None:
        self._by_owner[before].discard((machine, port))
    if owner is not None:
        owners[port] = owner
        self._by_owner.setdefault(owner, set()).add((machine, port))


def _keeps_the_entry(self: Entries, name: str, after: EntryState | None) -> None:
    """Moves an entry, and notes nothing."""
    self._states.pop(name, None)
    if after is not None:
        self._states[name] = after


LEDGERS: list[tuple[type, str, object]] = [
    (Ranking, "touch", _forgets_where_it_was),
    (Trees, "_enter_again", _puts_back_at_the_end),
    (Holding, "_running", _forgets_the_order),
    (Trees, "pursue", _forgets_who_is_hunted),
    (Room, "_set", _keeps_room),
    (Ports, "_set", _keeps_the_port),
    (Entries, "set", _keeps_the_entry),
]
