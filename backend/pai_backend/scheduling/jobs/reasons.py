"""Why a unit waits, in one sentence: what is written to its job."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from pai_backend.model.booking import Booking
from pai_backend.model.errors import PaiError
from pai_backend.model.node import Node
from pai_backend.model.text import Text, all_of, in_clauses, listed, refused
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
    wanted, vc = _wanted(group, reason), reason.vc
    match reason.code:
        case WaitCode.QUOTA:
            owned: object = reason.owned
            if _is_of_one_kind(group):
                owned = Text("{number} of one kind", number=reason.owned)
            return Text(
                "needs {gpus}, and the virtual cluster {vc} owns {owned}: it cannot start as it is",
                gpus=wanted,
                vc=vc,
                owned=owned,
            )
        case WaitCode.SHAPE:
            return Text(
                "needs {gpus}, {number} in one task, and {lack}: it cannot start as it is",
                gpus=wanted,
                number=reason.largest_pod,
                lack=_too_small(group, reason),
            )
        case WaitCode.BAD_NODES:
            why: str = Text("nodes not ready: {nodes}", nodes=named(reason.nodes))
        case WaitCode.NOT_SUGGESTED:
            why = _unsuited(need, [nodes[name] for name in reason.nodes if name in nodes])
        case WaitCode.BEYOND_PRIORITY:
            why = IN_USE
            if reason.holders:
                why = Text("suitable resources are in use: held by {jobs}", jobs=named(reason.holders))
        case WaitCode.RESERVED:
            why = Text("free GPUs are reserved for {jobs}", jobs=named(reason.holders) or Text("others"))
        case WaitCode.FRAGMENTED:
            why = Text("{free} are free, at most {most} for one task", free=reason.free, most=reason.largest)
        case WaitCode.BOOKED:
            why = about_booking(reason.booking)
    return Text("waits for {wanted}: {why}", wanted=wanted, why=why)


def about_booking(booking: Booking | None) -> Text:
    """That GPUs are reserved for a time."""
    assert booking is not None
    gpus = Text("{number} GPUs", number=booking.gpus)
    if booking.gpu_type:
        gpus = Text("{number} {type} GPUs", number=booking.gpus, type=booking.gpu_type)
    return Text(
        "{gpus} are reserved for {name} from {begin} to {end} UTC",
        gpus=gpus,
        name=booking.name,
        begin=f"{booking.begins:%Y-%m-%d %H:%M}",
        end=f"{booking.ends:%Y-%m-%d %H:%M}",
    )


def _wanted(group: Group, reason: Reason) -> Text:
    """The GPUs that a group needs, and where."""
    wanted = Text("{number} GPU", number=reason.needed)
    if group.leaf_type:
        wanted = Text("{number} {type} GPU", number=reason.needed, type=group.leaf_type)
    if group.pods > 1:
        wanted = Text("{wanted} for {number} tasks at once", wanted=wanted, number=group.pods)
    for each in dict.fromkeys((group.within, *(member.within for member in group.members))):
        wanted = Text("{wanted} within one {cell}", wanted=wanted, cell=each) if each else wanted
    return wanted


def _too_small(group: Group, reason: Reason) -> Text:
    """What of the virtual cluster is too small for the largest task, or for all together."""
    if reason.largest < reason.largest_pod:
        return Text("no node has {number} GPUs of the virtual cluster {vc}", number=reason.largest_pod, vc=reason.vc)
    if _is_of_one_kind(group):
        return Text("the nodes of one kind of the virtual cluster {vc} do not hold all of them together", vc=reason.vc)
    return Text("the nodes of the virtual cluster {vc} do not hold all of them together", vc=reason.vc)


def _is_of_one_kind(group: Group) -> bool:
    """Whether its tasks have to be on cells of one kind, though it names none."""
    return group.pods > 1 and not group.leaf_type and not group.pinned_id and not group.spread


def about_type(wanted: str, have: Sequence[str]) -> str:
    """That no node has such a GPU."""
    lack = Text("no node has a GPU of type {type}", type=wanted) if wanted else Text("no node has a GPU")
    there = ", ".join(sorted(have)) or Text("no GPU at all")
    return Text("{lack}; there is {types}", lack=lack, types=there)


def about_room(need: Need, count: int, nodes: Sequence[Node]) -> str:
    """Why there is no room for tasks that need CPU and memory."""
    wanted = Text("{cpus} CPU and {memory} MiB of memory", cpus=need.cpus, memory=need.memory_mb)
    if not nodes:
        return Text("the cluster has no nodes yet")
    able = [node for node in nodes if need.cpus <= node.cpus and need.memory_mb <= node.memory_mb]
    if not able:
        return Text("a task needs {wanted}, and no node is that large: {nodes}", wanted=wanted, nodes=_sizes(nodes))
    together = Text("{wanted}, for {number} tasks at once", wanted=wanted, number=count) if count > 1 else wanted
    usable = [node for node in able if need.terms.objection(node) is None]
    if not usable:
        return Text("waits for {wanted}: {why}", wanted=together, why=_unsuited(need, able))
    if not any(node.ready for node in usable):
        away = [Text("node {node} is not ready: {reason}", node=each.name, reason=each.reason) for each in usable]
        return in_clauses(away[:MOST_NAMED])
    return Text("waits for {wanted}: {why}", wanted=together, why=IN_USE)


def about_preempting(victims: Sequence[str]) -> str:
    """Why a group that has its place does not run yet."""
    return Text("has its place, and waits for {jobs} to be stopped there", jobs=named(victims))


def about_kept(others: Sequence[str]) -> str:
    """Why a group that was overtaken long enough does not run yet."""
    if not others:
        return Text("has GPUs reserved, and waits for CPU or memory on their nodes")
    return Text("has GPUs reserved, and starts when these have ended: {jobs}", jobs=named(others))


def about_cap(excess: Excess, *, alone: bool) -> str:
    """Why a limit on what runs at once keeps a unit; ``alone``: it exceeds that all by itself."""
    cap = excess.cap
    limits = [_tasks(cap.tasks)] if cap.tasks is not None else []
    limits += [_gpus(cap.gpus)] if cap.gpus is not None else []
    limits += [_jobs(cap.jobs)] if cap.jobs is not None else []
    who, most = _whose(excess.scope), all_of(limits)
    if alone:
        return Text(
            "{who} may run at most {most} at once, and it needs more: it cannot start as it is", who=who, most=most
        )
    running = [_tasks(excess.tasks), _gpus(excess.gpus), *([_jobs(excess.jobs)] if cap.jobs is not None else [])]
    return Text(
        "{who} may run at most {most} at once; running now: {running}", who=who, most=most, running=listed(running)
    )


def about_turn_under_cap(scope: Scope) -> str:
    """Why a unit waits that has room under a limit."""
    return Text(
        "waits for its turn: an earlier job waits for the limit of {who} on what runs at once", who=_whose(scope)
    )


ABOUT_TURN = Text("waits for its turn")
IN_USE = Text("suitable resources are in use")


def jobs_of(groups: Iterable[str]) -> list[str]:
    """The jobs that affinity groups belong to, each once."""
    return list(dict.fromkeys(name.rpartition("/")[0] or name for name in groups))


def _tasks(number: int) -> Text:
    return Text("{number} tasks", number=number)


def _gpus(number: int) -> Text:
    return Text("{number} GPUs", number=number)


def _jobs(number: int) -> Text:
    return Text("{number} jobs", number=number)


def _whose(scope: Scope) -> Text:
    if scope.sweep:
        return Text("sweep {sweep} of user {user}", sweep=scope.sweep, user=scope.user)
    who = Text("user {user}", user=scope.user) if scope.user else Text("all users together")
    return Text("{who} in virtual cluster {vc}", who=who, vc=scope.vc) if scope.vc else who


def named(names: Iterable[str]) -> str:
    """Some of the names, and how many more there are."""
    return listed([*names], MOST_NAMED)


def _unsuited(need: Need, nodes: Sequence[Node]) -> str:
    """Which nodes a task may not use, which are away, and which lack room for it."""
    objections = [(node, need.terms.objection(node)) for node in nodes]
    barred = [
        Text("{node} ({reason})", node=node.name, reason=_in_words(objection))
        for node, objection in objections
        if objection is not None
    ]
    away = [node.name for node, objection in objections if objection is None and not node.ready]
    open_ = [node for node, objection in objections if objection is None and node.ready]
    held = {node.name: node.others.gpus_of(need.gpu_type) if need.gpus else 0 for node in open_}
    taken = [f"{name} ({gpus})" for name, gpus in held.items() if gpus]
    full = [name for name, gpus in held.items() if not gpus]
    parts = [Text("it may not use {nodes}", nodes=named(barred))] if barred else []
    parts += [Text("nodes not ready: {nodes}", nodes=named(away))] if away else []
    parts += [Text("GPUs held by pods that are not of this backend on {nodes}", nodes=named(taken))] if taken else []
    parts += [Text("too little CPU or memory, or a port in use, on {nodes}", nodes=named(full))] if full else []
    return in_clauses(parts) or Text("no node suits it")


def _in_words(objection: Objection) -> Text:
    if objection.what is LackOf.CORDONED:
        return Text("cordoned")
    if objection.what is LackOf.SELECTOR:
        return Text("no label {label}", label=objection.detail)
    return Text("taint {taint}", taint=objection.detail)


def _sizes(nodes: Sequence[Node]) -> str:
    return named(
        Text("{node} has {cpus} CPU, {memory} MiB", node=node.name, cpus=node.cpus, memory=node.memory_mb)
        for node in nodes
    )


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
            return Waits(Lack.NEVER, refused(error.message, error.hint))
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
