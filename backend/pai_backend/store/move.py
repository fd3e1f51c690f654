"""Changing a waiting job's place in the queue."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime

from pydantic_core import from_json
from sqlalchemy import Connection, case, select

from pai_backend.model.ids import JobUid
from pai_backend.model.job import Desired, Phase, State
from pai_backend.model.spec import PriorityClass
from pai_backend.scheduling.jobs.reorder import Move, Moved, Queue, Standing, not_waiting, queue_of, turns_after
from pai_backend.store import intent, lookup
from pai_backend.store.base import NewEvent
from pai_backend.store.cipher import Cipher
from pai_backend.store.tables import jobs

# Where jobs keep the turn of their submission the database hands over nothing that would have to be parsed.
_MOVED_BEFORE = case((jobs.c.rest.contains('"turn_at":"'), jobs.c.rest), else_=None)
# The columns' words for ``scheduling.jobs.reorder.waits``.
_WAITING = select(
    jobs.c.uid,
    jobs.c.username,
    jobs.c.name,
    jobs.c.virtual_cluster,
    jobs.c.priority,
    jobs.c.submitted_at,
    _MOVED_BEFORE,
).where(
    jobs.c.state == State.WAITING.value,
    jobs.c.phase.in_((Phase.QUEUED.value, Phase.BACKING_OFF.value)),
    jobs.c.desired == Desired.START.value,
)


@dataclass(frozen=True)
class MoveRequest:
    """What is to be moved where, who asked, and when.

    ``shared``: all virtual clusters wait for the same cells.
    """

    move: Move
    by: str
    at: datetime
    shared: bool
    cipher: Cipher

    def __call__(self, conn: Connection) -> tuple[Moved, ...]:
        """Write the turns that change, each with an event; nothing when everybody stands as asked already.

        Raises NoSuchJob, NotWaiting, Forbidden, OtherQueue, UnknownKey.
        """
        waiting = list(standings(conn, shared=self.shared))
        self._check(conn, {each.uid for each in waiting})
        moves = turns_after(waiting, self.move, self.at)
        moving = [(each, lookup.job(conn, each.uid, self.cipher)) for each in moves]
        for each, job in moving:
            payload = {"by": self.by, "turn": each.turn.isoformat(), "place": each.place, "was": each.was}
            moved = job.model_copy(update={"turn_at": each.turn, "put_off_s": 0})
            intent.write(conn, moved, [NewEvent("job.moved", payload)], self.at)
        return moves

    def _check(self, conn: Connection, waiting: set[JobUid]) -> None:
        """Raises NoSuchJob, or NotWaiting with the name that people know the job by."""
        for uid in (self.move.uid, self.move.other):
            if uid is not None and uid not in waiting:
                raise not_waiting(lookup.job(conn, uid, self.cipher).id)


def standings(conn: Connection, *, shared: bool) -> Iterator[Standing]:
    """Every job that waits, from columns alone: no document is opened."""
    queues: dict[tuple[str, str | None], Queue] = {}
    for uid, user, name, vc, priority, submitted_at, rest in conn.execute(_WAITING).all():
        queue = queues.get((vc, priority))
        if queue is None:
            named = None if priority is None else PriorityClass(priority)
            queue = queues[vc, priority] = queue_of(vc, named, shared=shared)
        yield Standing(uid, f"{user}~{name}", user, queue, submitted_at if rest is None else _turn(rest, submitted_at))


def _turn(rest: str, submitted_at: datetime) -> datetime:
    moved: str | None = from_json(rest).get("turn_at")
    return submitted_at if moved is None else datetime.fromisoformat(moved)
