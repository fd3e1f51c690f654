"""Why a unit waits, in one sentence: what is written to its job."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from pai_backend.model.booking import Booking
from pai_backend.model.errors import PaiError
from pai_backend.model.node import Node
from pai_backend.model.waiting import LackOf
from pai_backend.scheduling.core.decision import Wait
from pai_backend.scheduling.core.room import Room
from pai_backend.scheduling.jobs.answers import Lack, Waits
from pai_backend.scheduling.jobs.deciding import JobsDecider
from pai_backend.scheduling.jobs.demand import Sizing
from pai_backend.scheduling.jobs.unit import Unit, largest
from pai_backend.scheduling.queue import Queue
from pai_backend.scheduling.queue.entry import KindKey, Scope
from pai_backend.scheduling.queue.kind import Claim
from pai_backend.scheduling.queue.policy import Excess
from pai_backend.scheduling.request import Group, Need, Reason, WaitCode
from pai_backend.scheduling.terms import Objection

MOST_NAMED = 3
"""Holders or nodes that a sentence names; it says how many more there are."""


def about_cells(group: Group, reason: Reason, need: Need, nodes: Mapping[str, Node]) -> str:
    """Why there are no cells for a group; ``need`` is what one of its tasks needs of the nodes."""
    kind = f"{group.leaf_type} GPU" if group.leaf_type else "GPU"
    wanted = f"{reason.needed} {kind}" + (f" for {group.pods} tasks at once" if group.pods > 1 else "")
    inside = dict.fromkeys(each for each in (group.within, *(member.within for member in group.members)) if each)
    wanted += "".join(f" within one {each}" for each in inside)
    who = f": held by {named(reason.holders)}" if reason.holders else ""
    match reason.code:
        case WaitCode.QUOTA:
            owned = f"{reason.owned} of one kind" if _is_of_one_kind(group) else str(reason.owned)
            return f"needs {wanted}, and the virtual cluster {reason.vc} owns {owned}: it cannot start as it is"
        case WaitCode.SHAPE:
            largest = f"no node has {reason.largest_pod} GPUs of the virtual cluster {reason.vc}"
            if reason.largest >= reason.largest_pod:
                alike = " of one kind" if _is_of_one_kind(group) else ""
                largest = f"the nodes{alike} of the virtual cluster {reason.vc} do not hold all of them together"
            return f"needs {wanted}, {reason.largest_pod} in one task, and {largest}: it cannot start as it is"
        case WaitCode.BAD_NODES:
            return f"waits for {wanted}: nodes not ready: {named(reason.nodes)}"
        case WaitCode.NOT_SUGGESTED:
            return f"waits for {wanted}: {_unsuited(need, [nodes[name] for name in reason.nodes if name in nodes])}"
        case WaitCode.BEYOND_PRIORITY:
            return f"waits for {wanted}: suitable resources are in use{who}"
        case WaitCode.RESERVED:
            return f"waits for {wanted}: free GPUs are reserved for {named(reason.holders) or 'others'}"
        case WaitCode.FRAGMENTED:
            return f"waits for {wanted}: {reason.free} are free, at most {reason.largest} for one task"
        case WaitCode.BOOKED:
            return f"waits for {wanted}: {about_booking(reason.booking)}"


def about_booking(booking: Booking | None) -> str:
    """That GPUs are reserved for a time."""
    assert booking is not None
    till = f"from {booking.begins:%Y-%m-%d %H:%M} to {booking.ends:%Y-%m-%d %H:%M} UTC"
    return f"{booking.gpus} {booking.gpu_type or 'GPUs'} are reserved for {booking.name} {till}"


def _is_of_one_kind(group: Group) -> bool:
    """Whether its tasks have to be on cells of one kind, though it names none."""
    return group.pods > 1 and not group.leaf_type and not group.pinned_id and not group.spread


def about_type(wanted: str, have: Sequence[str]) -> str:
    """That no node has such a GPU."""
    kind = f"no node has a GPU of type {wanted}" if wanted else "no node has a GPU"
    return f"{kind}; there is {', '.join(sorted(have)) or 'no GPU at all'}"


def about_room(need: Need, count: int, nodes: Sequence[Node]) -> str:
    """Why there is no room for tasks that need CPU and memory."""
    wanted = f"{need.cpus} CPU and {need.memory_mb} MiB of memory"
    if not nodes:
        return "the cluster has no nodes yet"
    able = [node for node in nodes if need.cpus <= node.cpus and need.memory_mb <= node.memory_mb]
    if not able:
        return f"a task needs {wanted}, and no node is that large: {_sizes(nodes)}"
    together = f", for {count} tasks at once" if count > 1 else ""
    usable = [node for node in able if need.terms.objection(node) is None]
    if not usable:
        return f"waits for {wanted}{together}: {_unsuited(need, able)}"
    if not any(node.ready for node in usable):
        return "; ".join(f"node {node.name} is not ready: {node.reason}" for node in usable[:MOST_NAMED])
    return f"waits for {wanted}{together}: suitable resources are in use"


def about_preempting(victims: Sequence[str]) -> str:
    """Why a group that has its place does not run yet."""
    return f"has its place, and waits for {named(victims)} to be stopped there"


def about_kept(others: Sequence[str]) -> str:
    """Why a group that was overtaken long enough does not run yet."""
    if not others:
        return "has GPUs reserved, and waits for CPU or memory on their nodes"
    return f"has GPUs reserved, and starts when these have ended: {named(others)}"


def about_cap(excess: Excess, *, alone: bool) -> str:
    """Why a limit on what runs at once keeps a unit; ``alone``: it exceeds that all by itself."""
    cap = excess.cap
    limits = [f"{cap.tasks} tasks"] if cap.tasks is not None else []
    limits += [f"{cap.gpus} GPUs"] if cap.gpus is not None else []
    limits += [f"{cap.jobs} jobs"] if cap.jobs is not None else []
    said = f"{_whose(excess.scope)} may run at most {' and '.join(limits)} at once"
    if alone:
        return f"{said}, and it needs more: it cannot start as it is"
    jobs = f", {excess.jobs} jobs" if cap.jobs is not None else ""
    return f"{said}; running now: {excess.tasks} tasks, {excess.gpus} GPUs{jobs}"


def about_turn_under_cap(scope: Scope) -> str:
    """Why a unit waits that has room under a limit."""
    return f"waits for its turn: an earlier job waits for the limit of {_whose(scope)} on what runs at once"


ABOUT_TURN = "waits for its turn"


def jobs_of(groups: Iterable[str]) -> list[str]:
    """The jobs that affinity groups belong to, each once."""
    return list(dict.fromkeys(name.rpartition("/")[0] or name for name in groups))


def _whose(scope: Scope) -> str:
    if scope.sweep:
        return f"sweep {scope.sweep} of user {scope.user}"
    who = f"user {scope.user}" if scope.user else "all users together"
    return f"{who} in virtual cluster {scope.vc}" if scope.vc else who


def named(names: Iterable[str]) -> str:
    """Some of the names, and how many more there are."""
    known = list(names)
    more = f" and {len(known) - MOST_NAMED} more" if len(known) > MOST_NAMED else ""
    return ", ".join(known[:MOST_NAMED]) + more


def _unsuited(need: Need, nodes: Sequence[Node]) -> str:
    """Which nodes a task may not use, which are away, and which lack room for it."""
    objections = [(node, need.terms.objection(node)) for node in nodes]
    barred = [f"{node.name} ({_in_words(objection)})" for node, objection in objections if objection is not None]
    away = [node.name for node, objection in objections if objection is None and not node.ready]
    open_ = [node for node, objection in objections if objection is None and node.ready]
    taken = [f"{node.name} ({node.others.gpus})" for node in open_ if need.gpus and node.others.gpus]
    full = [node.name for node in open_ if not (need.gpus and node.others.gpus)]
    parts = [f"it may not use {named(barred)}"] if barred else []
    parts += [f"nodes not ready: {named(away)}"] if away else []
    parts += [f"GPUs held by pods that are not of this backend on {named(taken)}"] if taken else []
    parts += [f"too little CPU or memory, or a port in use, on {named(full)}"] if full else []
    return "; ".join(parts) or "no node suits it"


def _in_words(objection: Objection) -> str:
    if objection.what is LackOf.CORDONED:
        return "cordoned"
    return f"no label {objection.detail}" if objection.what is LackOf.SELECTOR else f"taint {objection.detail}"


def _sizes(nodes: Sequence[Node]) -> str:
    shown = [f"{node.name} has {node.cpus} CPU, {node.memory_mb} MiB" for node in nodes[:MOST_NAMED]]
    return ", ".join(shown) + (f" and {len(nodes) - MOST_NAMED} more" if len(nodes) > MOST_NAMED else "")


class WaitReasons:
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
        """Cells or nodes may have been freed: forget all answers."""
        self._known.clear()
        self._refused.clear()

    def refused(self, unit: Unit, wait: Wait) -> None:
        """Remember what the queue was just answered about the unit."""
        self._refused[self._alike(unit)] = wait

    def nodes_changed(self) -> None:
        """What was said about nodes may be wrong now."""
        self._rooms.clear()

    def defer(self, unit: Unit, why: str) -> None:
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
            return Waits(Lack.NEVER, about_type(unknown.leaf_type, list(types)))
        try:
            self._queue.check(unit.entry)
        except PaiError as error:
            return Waits(Lack.NEVER, f"{error.message}. {error.hint}".rstrip())
        return None

    def _of_cap(self, unit: Unit) -> Waits | None:
        excess = self._queue.gates.usage.excess(unit.entry)
        if excess is not None:
            return Waits(Lack.CAP, about_cap(excess, alone=excess.alone(unit.entry)))
        scope = self._queue.gates.blocking(unit.entry)
        return None if scope is None else Waits(Lack.CAP, about_turn_under_cap(scope))

    def _of_nodes(self, unit: Unit) -> Waits:
        """What the decider says; of those that are alike it is asked once."""
        key = self._alike(unit)
        if key not in self._known:
            at = self._queue.bookings.at
            decision = self._refused.get(key) or (
                self._decider.decide(unit.entry) if at is None else self._queue.decide_entry(unit.entry, at)
            )
            if not isinstance(decision, Wait):
                return Waits(Lack.TURN, ABOUT_TURN)
            self._known[key] = self._of_wait(unit, decision)
        return self._known[key]

    def _of_wait(self, unit: Unit, wait: Wait) -> Waits:
        group = next((party.group for party in unit.parties if party.name == wait.group), None)
        if group is None:
            nowhere = (need for need in unit.loose if not self._room.having(need))
            need = next(nowhere, largest(unit.loose))
            return Waits(Lack.LINEAR, self._about_room(need, len(unit.loose)))
        needs = unit.needs_of(group)
        if wait.short:
            return Waits(Lack.LINEAR, self._about_room(largest(needs), len(needs)))
        reason = replace(wait.reason, holders=tuple(jobs_of(wait.reason.holders)))
        said = about_cells(group, reason, needs[0], self._room.nodes)
        return Waits(Lack.CELLS, said, wait.reason)

    def _alike(self, unit: Unit) -> tuple[KindKey, object]:
        """Equal for units that are answered alike."""
        return self._queue.kind_of(unit.entry), unit.entry.needs

    def _about_room(self, need: Need, count: int) -> str:
        """The sentence looks at all nodes, which is done once for what is asked for alike."""
        key = need.kind, count
        if key not in self._rooms:
            self._rooms[key] = about_room(need, count, list(self._room.nodes.values()))
        return self._rooms[key]


def _of_claim(queue: Queue, claim: Claim) -> Waits:
    """It has a place, and waits for those who are still there."""
    there = jobs_of(other.group.name for other in queue.in_the_way(claim.ticket.entry))
    said = about_kept(there) if claim.held_back else about_preempting(there)
    return Waits(Lack.KEPT, said)
