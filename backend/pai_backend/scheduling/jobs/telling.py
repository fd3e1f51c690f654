"""Why a unit waits, in one sentence: what is written to its job."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from pai_backend.model.errors import PaiError
from pai_backend.scheduling.core.decision import Wait
from pai_backend.scheduling.core.room import Room
from pai_backend.scheduling.jobs import words
from pai_backend.scheduling.jobs.answers import Lack, Waits
from pai_backend.scheduling.jobs.deciding import JobsDecider
from pai_backend.scheduling.jobs.demand import Sizing
from pai_backend.scheduling.jobs.unit import Unit, largest
from pai_backend.scheduling.queue import Queue
from pai_backend.scheduling.queue.entry import KindKey, kind_of
from pai_backend.scheduling.queue.holdback import in_the_way
from pai_backend.scheduling.queue.kind import Claim
from pai_backend.scheduling.request import Need, WaitCode


class Teller:
    """Tells of units that wait in a queue. What it had to ask the cluster is remembered until :meth:`begin`."""

    def __init__(self, queue: Queue, decider: JobsDecider, room: Room) -> None:
        self._queue = queue
        self._decider = decider
        self._room = room
        self._known: dict[tuple[KindKey, object], Waits] = {}
        self._refused: dict[tuple[KindKey, object], Wait] = {}
        self._rooms: dict[tuple[object, int], str] = {}
        self._aside: dict[str, str] = {}

    def begin(self) -> None:
        """Something was freed, or may have been: ask anew."""
        self._known.clear()
        self._refused.clear()

    def refused(self, unit: Unit, wait: Wait) -> None:
        """Remember what the queue was just answered about the unit."""
        self._refused[_alike(unit)] = wait

    def nodes_changed(self) -> None:
        """What was said about nodes may be wrong now."""
        self._rooms.clear()

    def set_aside(self, unit: Unit, why: str) -> None:
        """The unit waits for this until it is asked again."""
        self._aside[unit.name] = why

    def asked(self, names: Iterable[str]) -> None:
        """These have been asked again."""
        for name in names:
            self._aside.pop(name, None)

    def waits(self, unit: Unit, sizing: Sizing) -> Waits:
        """Why this unit, which the queue has waiting, has no place."""
        claim = self._queue.claims.get(unit.name)
        if claim is not None:
            return _of_claim(self._queue, claim)
        if unit.name in self._aside:
            return Waits(Lack.PORTS, self._aside[unit.name])
        return self._never(unit, sizing) or self._of_cap(unit) or self._of_nodes(unit)

    def _never(self, unit: Unit, sizing: Sizing) -> Waits | None:
        """What is asked for does not exist."""
        types = dict.fromkeys(chain.leaf_type for chain in self._queue.ledger.chains.values())
        unknown = next((each.group for each in unit.parties if each.group.leaf_type not in types), None)
        if sizing.shared and unknown is not None and (unknown.leaf_type or not types):
            return Waits(Lack.NEVER, words.about_type(unknown.leaf_type, list(types)))
        try:
            self._queue.check(unit.entry)
        except PaiError as error:
            return Waits(Lack.NEVER, f"{error.message}. {error.hint}".rstrip())
        return None

    def _of_cap(self, unit: Unit) -> Waits | None:
        excess = self._queue.gates.usage.excess(unit.entry)
        if excess is not None:
            return Waits(Lack.CAP, words.about_cap(excess, alone=excess.alone(unit.entry)))
        scope = self._queue.gates.blocking(unit.entry)
        return None if scope is None else Waits(Lack.CAP, words.about_turn_under_cap(scope))

    def _of_nodes(self, unit: Unit) -> Waits:
        """What the decider says; of those that are alike it is asked once."""
        key = _alike(unit)
        if key not in self._known:
            decision = self._refused.get(key) or self._decider.decide(unit.entry)
            if not isinstance(decision, Wait):
                return Waits(Lack.TURN, words.ABOUT_TURN)
            self._known[key] = self._of_wait(unit, decision)
        return self._known[key]

    def _of_wait(self, unit: Unit, wait: Wait) -> Waits:
        group = next((party.group for party in unit.parties if party.name == wait.group), None)
        if group is None:
            nowhere = (need for need in unit.loose if not self._room.having(need))
            need = next(nowhere, largest(unit.loose))
            return Waits(Lack.LINEAR, self._about_room(need, len(unit.loose)))
        needs = unit.needs_of(group)
        if wait.reason.code is WaitCode.NOT_SUGGESTED and self._decider.could_stand(group, needs):
            return Waits(Lack.LINEAR, self._about_room(largest(needs), len(needs)))
        reason = replace(wait.reason, holders=tuple(words.jobs_of(wait.reason.holders)))
        said = words.about_cells(group, reason, needs[0], self._room.nodes)
        return Waits(Lack.CELLS, said, wait.reason)

    def _about_room(self, need: Need, count: int) -> str:
        """The sentence looks at all nodes, which is done once for what is asked for alike."""
        key = need.kind, count
        if key not in self._rooms:
            self._rooms[key] = words.about_room(need, count, list(self._room.nodes.values()))
        return self._rooms[key]


def _alike(unit: Unit) -> tuple[KindKey, object]:
    """Equal for units that are answered alike."""
    return kind_of(unit.entry.group, unit.entry.others), unit.entry.needs


def _of_claim(queue: Queue, claim: Claim) -> Waits:
    """It has a place, and waits for those who are still there."""
    kept = queue.held_by(claim.ticket.entry)
    there = words.jobs_of(other.group.name for held in kept for other in in_the_way(held))
    said = words.about_kept(there) if claim.held_back else words.about_preempting(there)
    return Waits(Lack.KEPT, said)
