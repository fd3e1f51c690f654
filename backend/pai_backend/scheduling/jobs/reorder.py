"""Which turns change when a waiting job is moved, and where each job stands.

A job's *turn* is the time that counts in the queue: when it was submitted, until it is moved. Jobs of one virtual
cluster and priority are one queue; opportunistic ones of all virtual clusters are one together.

The law: a user exchanges places among own jobs, so that everybody else keeps their place. An administrator puts a job
anywhere in its queue, and those behind it move on by one. Nothing is ended by it. Turns are distinct afterwards: where
two were submitted in the same microsecond, the later one is put a microsecond behind.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from typing import NamedTuple

from pai_backend.model.errors import Forbidden, NotWaiting, OtherQueue
from pai_backend.model.ids import JobUid
from pai_backend.model.job import Desired, Job, Phase, State
from pai_backend.model.spec import PriorityClass
from pai_backend.model.text import Text
from pai_backend.scheduling.config.derive import DEFAULT_VC
from pai_backend.scheduling.jobs.demand import PRIORITIES
from pai_backend.scheduling.request import OPPORTUNISTIC

STEP = timedelta(microseconds=1)
"""The least difference of two turns: what the store keeps of a time."""

AHEAD = timedelta(seconds=2)
"""How far before the first in the queue there is room for another. Half of it is used."""


class Side(StrEnum):
    """On which side of another job to stand; without another, at which end of the queue."""

    BEFORE = "before"
    AFTER = "after"


class Queue(NamedTuple):
    """Who can change places: ``vc`` as the cells count it, empty for opportunistic jobs, and the priority."""

    vc: str
    priority: int


class Standing(NamedTuple):
    """A waiting job's place in the order. ``id`` is ``user~name``. A tuple, since there may be 50,000 of them."""

    uid: JobUid
    id: str
    user: str
    queue: Queue
    turn: datetime

    @property
    def key(self) -> tuple[datetime, str]:
        """Within its queue a smaller key is served first."""
        return self.turn, self.uid


@dataclass(frozen=True)
class Move:
    """What is asked: stand before or after ``other``, or at that end when there is none.

    ``user`` is who asks; None stands for an administrator.
    """

    uid: JobUid
    side: Side
    other: JobUid | None
    user: str | None


@dataclass(frozen=True)
class Moved:
    """A job's new turn, and its place within its queue (from 1) after and before."""

    uid: JobUid
    turn: datetime
    place: int
    was: int


def queue_of(virtual_cluster: str, priority: PriorityClass | None, *, shared: bool) -> Queue:
    """The queue of a job. ``shared``: no cells are configured, so that all virtual clusters wait for the same ones."""
    number = PRIORITIES[priority]
    if number == OPPORTUNISTIC:
        return Queue("", number)
    return Queue(DEFAULT_VC if shared else virtual_cluster, number)


def waits(state: State, phase: Phase, desired: Desired) -> bool:
    """Whether a job stands in the queue as a whole; of one that runs in part, the rest keeps its turn."""
    queued = state is State.WAITING and phase in (Phase.QUEUED, Phase.BACKING_OFF)
    return queued and desired is Desired.START


def standing_of(job: Job, *, shared: bool) -> Standing | None:
    """Where a job stands; None when it does not wait."""
    if not waits(job.state, job.phase, job.desired):
        return None
    queue = queue_of(job.spec.virtual_cluster, job.spec.scheduling.priority_class, shared=shared)
    return Standing(job.uid, job.id, job.user, queue, job.turn_at or job.submitted_at)


def in_order(waiting: Iterable[Standing]) -> list[Standing]:
    """By priority, then by turn: the order in which those who wait for the same cells are served."""
    return sorted(waiting, key=lambda each: (-each.queue.priority, each.turn, each.uid))


def turns_after(waiting: Sequence[Standing], move: Move, now: datetime) -> tuple[Moved, ...]:
    """The turns that a move changes, first place first; none when everybody stands as asked already.

    ``waiting`` are all jobs that wait. Raises NotWaiting, Forbidden for jobs of others, OtherQueue.
    """
    mine, theirs = _asked(waiting, move)
    if theirs is mine:
        return ()
    line = in_order(each for each in waiting if each.queue == mine.queue)
    pool = line if move.user is None else [each for each in line if each.user == move.user]
    order = [each for each in pool if each is not mine]
    ends = {Side.BEFORE: 0, Side.AFTER: len(order)}
    order.insert(ends[move.side] if theirs is None else order.index(theirs) + (move.side is Side.AFTER), mine)
    if order == pool:
        return ()
    wanted = _inserted(order, mine, now) if move.user is None else _exchanged(line, pool, order)
    was = {each.uid: (number, each.turn) for number, each in enumerate(line, 1)}
    return tuple(
        Moved(each.uid, each.turn, place, was[each.uid][0])
        for place, each in enumerate(_distinct(wanted), 1)
        if each.turn != was[each.uid][1]
    )


def _asked(waiting: Sequence[Standing], move: Move) -> tuple[Standing, Standing | None]:
    """The job to move, and the other one if any; checked."""
    by_uid = {each.uid: each for each in waiting}
    mine = by_uid.get(move.uid)
    theirs = None if move.other is None else by_uid.get(move.other)
    if mine is None or (theirs is None and move.other is not None):
        raise not_waiting(str(move.uid if mine is None else move.other))
    if move.user is not None and any(each is not None and each.user != move.user for each in (mine, theirs)):
        raise Forbidden(
            Text("You may change places among your own jobs only."), hint=Text("Ask an administrator to move others.")
        )
    if theirs is not None and theirs.queue != mine.queue:
        raise OtherQueue(
            Text(
                "The jobs {id} and {id2} do not wait in the same queue: {mine}, {theirs}.",
                id=mine.id,
                id2=theirs.id,
                mine=_words(mine),
                theirs=_words(theirs),
            ),
            hint=Text("Name a job of the same virtual cluster and priority."),
        )
    return mine, theirs


def not_waiting(job: str) -> NotWaiting:
    """The error for a job that has no place to change."""
    return NotWaiting(
        Text("The job {job} does not wait for its turn.", job=job), hint=Text("Name a job that is queued as a whole.")
    )


def _words(standing: Standing) -> str:
    queue = standing.queue
    return f"priority {queue.priority} of {queue.vc}" if queue.vc else "opportunistic"


def _exchanged(line: Sequence[Standing], pool: Sequence[Standing], order: Sequence[Standing]) -> list[Standing]:
    """The line with the pool in its new order on the pool's places, each with the turn of its place."""
    at_place = {old.uid: new._replace(turn=old.turn) for old, new in zip(pool, order, strict=True)}
    return [at_place.get(each.uid, each) for each in line]


def _inserted(order: Sequence[Standing], mine: Standing, now: datetime) -> list[Standing]:
    """The line with a turn for the moved job halfway between its neighbours."""
    at = next(number for number, each in enumerate(order) if each is mine)
    before = order[at - 1].turn if at else order[1].turn - AHEAD
    after = order[at + 1].turn if at + 1 < len(order) else max(now, before + AHEAD)
    wanted = list(order)
    wanted[at] = mine._replace(turn=before + (after - before) / 2)
    return wanted


def _distinct(wanted: Iterable[Standing]) -> Iterable[Standing]:
    """The line with every turn behind the one before, at the cost of a microsecond where there is no room."""
    last: Standing | None = None
    for each in wanted:
        if last is not None and each.key <= last.key:
            each = each._replace(turn=last.turn + STEP)
        yield each
        last = each
