"""Why does a job wait? Asked of the queue that decides, and told by :mod:`pai_backend.scheduling.explain`.

Pure, and changes nothing: whatever is tried is undone. Of a job with several units the first is told that waits for
cells, or under a cap.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import datetime, timedelta

from pai_backend.model.errors import PaiError
from pai_backend.model.ids import JobUid
from pai_backend.model.node import Node
from pai_backend.model.waiting import Basis, Cause, Change, ChangeKind, Holder, Lack, LackOf, Waiting
from pai_backend.scheduling.core.decision import Wait
from pai_backend.scheduling.core.room import Room
from pai_backend.scheduling.explain import LANGUAGES, explain, render
from pai_backend.scheduling.jobs.deciding import OF_NO_GROUP
from pai_backend.scheduling.jobs.history import basis_of
from pai_backend.scheduling.jobs.placer import Placer
from pai_backend.scheduling.jobs.reasons import jobs_of
from pai_backend.scheduling.jobs.unit import Unit, largest
from pai_backend.scheduling.queue import Entry
from pai_backend.scheduling.queue.entry import line_of
from pai_backend.scheduling.request import Need
from pai_backend.scheduling.terms import Objection

MOST_TRIED = 8
"""How often the scheduler is asked again for one explanation; each costs what a decision costs."""
CORDON = "node.kubernetes.io/unschedulable"
"""Key of the taint that Kubernetes gives a cordoned node, and takes away with the cordon."""
_KINDS = {
    LackOf.CORDONED: ChangeKind.UNCORDON,
    LackOf.TAINT: ChangeKind.TOLERATE,
    LackOf.SELECTOR: ChangeKind.DROP_LABEL,
}


def openings(room: Room, need: Need, would_start: Callable[[], bool]) -> tuple[Change, ...]:
    """Changes to nodes, of one thing each, with which a group of such tasks would have started at once.

    ``would_start`` asks the scheduler, which must look at this room. Of cordons the fewest nodes are told, one where
    one is enough; a taint or a label counts for all nodes that are closed by it alone.
    """
    found: list[Change] = []
    tries = iter(range(MOST_TRIED))
    for objection, nodes in _closed(room, need).items():
        for some in _groups(objection, nodes):
            if next(tries, None) is None:
                return tuple(found)
            with room.as_if([_opened(node, objection) for node in some]):
                starts = would_start()
            if starts:
                names = tuple(node.name for node in some)
                found.append(Change(kind=_KINDS[objection.what], nodes=names, detail=objection.detail))
                break
    return tuple(found)


def _closed(room: Room, need: Need) -> dict[Objection, list[Node]]:
    """Nodes with room that one objection alone keeps the task from, by the objection; those of most nodes first."""
    found: dict[Objection, list[Node]] = {}
    for node in sorted(room.nodes.values(), key=lambda node: node.name):
        objection = need.terms.objection(node)
        if objection is None or not node.ready or not room.is_free_for(need, node.name):
            continue
        if need.terms.objection(_opened(node, objection)) is None:
            found.setdefault(objection, []).append(node)
    return dict(sorted(found.items(), key=lambda each: -len(each[1])))


def _groups(objection: Objection, nodes: Sequence[Node]) -> Iterator[Sequence[Node]]:
    """Which of the nodes are opened together."""
    if objection.what is LackOf.CORDONED and len(nodes) > 1:
        yield from ([node] for node in nodes[: MOST_TRIED // 2])
    yield nodes


def _opened(node: Node, objection: Objection) -> Node:
    """The node without what the objection is about."""
    if objection.what is LackOf.CORDONED:
        taints = tuple(each for each in node.taints if each.key != CORDON)
        return node.model_copy(update={"schedulable": True, "taints": taints})
    if objection.what is LackOf.TAINT:
        return node.model_copy(update={"taints": tuple(each for each in node.taints if str(each) != objection.detail)})
    key, _, value = objection.detail.partition("=")
    return node.model_copy(update={"labels": {**node.labels, key: value}})


MOST_NODES = 20
"""Nodes of which is said what they lack."""


def why(placer: Placer, uid: JobUid, now: datetime) -> Waiting | None:
    """Why a job has no place; None when it does not wait, or when neither GPUs nor a cap are what it waits for.

    Costs what one explanation costs, and one decision more.
    """
    unit = next((each for each in placer.waiting(uid) if _is_told(placer, each, now)), None)
    if unit is None:
        return None
    asked = _Asked(placer)
    found = explain(
        placer.queue,
        unit.name,
        now,
        vcs=tuple(placer.ledger.config.virtual_clusters),
        lacks=asked.lacks,
        run_time=asked.run_time,
        rests_on=asked.rests_on,
    )
    if found.cause is Cause.LINEAR:
        opened = openings(
            placer.room,
            largest(need for party in unit.parties for need in party.needs),
            lambda: placer.queue.would_start(unit.entry, now),
        )
        found = found.model_copy(update={"changes": (*found.changes, *opened)})
    position, waiting = _standing(placer, unit)
    found = found.model_copy(update={"position": position, "waiting": waiting, "holders": _jobs(found.holders)})
    put_off_s = placer.units.jobs[uid].put_off_s or placer.turns.put_off_s(uid) or 0
    found = found.model_copy(update={"put_off_s": put_off_s})
    return found.model_copy(update={"texts": {language: render(found, language) for language in LANGUAGES}})


def _is_told(placer: Placer, unit: Unit, now: datetime) -> bool:
    """Whether there is more to tell than the job's own sentence does."""
    if unit.name in placer.queue.claims or placer.queue.gates.blocking(unit.entry) is not None:
        return True
    try:
        placer.queue.check(unit.entry)
    except PaiError:
        return False  # it names what the configuration does not have
    decision = placer.queue.decide_entry(unit.entry, now)
    return bool(unit.parties) and not (isinstance(decision, Wait) and decision.group == OF_NO_GROUP)


def _standing(placer: Placer, unit: Unit) -> tuple[int, int]:
    """The job's place among those that wait in its queue, from 1, and how many those are."""
    queue, line = placer.queue, line_of(unit.entry.group)
    keys = list(queue.order.get(line, ()))
    keys += [c.ticket.key for c in queue.claims.values() if line_of(c.ticket.entry.group) == line]
    before = {*jobs_of(name for *_, name in (key for key in keys if key < unit.entry.key))}
    return len(before - {*jobs_of([unit.name])}) + 1, len(jobs_of(name for *_, name in keys))


def _jobs(holders: Iterable[Holder]) -> tuple[Holder, ...]:
    """The jobs that hold something, in place of their groups."""
    found: dict[str, Holder] = {}
    for holder in holders:
        (name,) = jobs_of([holder.group])
        before = found.get(name)
        user = holder.user or name.partition("~")[0]
        gpus = holder.gpus + (before.gpus if before is not None else 0)
        found[name] = (before or holder).model_copy(update={"group": name, "user": user, "gpus": gpus})
    return tuple(found.values())


class _Asked:
    """What an explanation asks about units."""

    def __init__(self, placer: Placer) -> None:
        self._placer = placer

    def run_time(self, entry: Entry) -> timedelta | None:
        """How long a unit that waits will run."""
        return self._placer.run_time(self._placer.units.job_of(entry.group.name))

    def rests_on(self, name: str) -> Basis | None:
        """Where a group's run time is known from."""
        return basis_of(self._placer.units.job_of(name))

    def lacks(self, entry: Entry) -> list[Lack]:
        """What each node that is not suited lacks for the group's largest task."""
        need = largest(self._placer.units.by_name[entry.group.name].needs_of(entry.group))
        suited = self._placer.decider.suggest(entry)
        every = self._placer.room.nodes.values()
        nodes = [node for node in every if node.gpus and node.ready and node.name not in suited]
        return [self._lack(node, need) for node in nodes[:MOST_NODES]]

    def _lack(self, node: Node, need: Need) -> Lack:
        objection = need.terms.objection(node)
        if objection is not None:
            return Lack(node=node.name, what=objection.what, detail=objection.detail)
        cpus, memory_mb, gpus = self._placer.room.free(node.name, gpu_type=need.gpu_type)
        if cpus < need.cpus:
            left, others = max(cpus, 0), node.others.cpus
            return Lack(node=node.name, what=LackOf.CPU, needed=need.cpus, available=left, others=others)
        if memory_mb < need.memory_mb:
            left, others = max(memory_mb, 0), node.others.memory_mb
            return Lack(node=node.name, what=LackOf.MEMORY, needed=need.memory_mb, available=left, others=others)
        if gpus < need.gpus:
            left, others = max(gpus, 0), node.others.gpus_of(need.gpu_type)
            return Lack(node=node.name, what=LackOf.GPU, needed=need.gpus, available=left, others=others)
        port = self._placer.ledger.ports.lacking(node, need)
        return Lack(node=node.name, what=LackOf.PORT, needed=port[0] if port is not None else 0)
