"""The event log: appended to by every change of a job, read by everyone.

``seq`` counts within a job without gaps; ``position`` orders the events of all jobs. Positions become
visible in their order because there is one writer at a time (see ``database``), so a reader that
has seen one never misses a lower one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from functools import partial

from pydantic_core import from_json, to_json
from sqlalchemy import ColumnElement, Connection, bindparam, func, insert, or_, select, update

from pai_backend.model.audit import AuditEvent
from pai_backend.model.errors import InvalidParameters
from pai_backend.model.ids import JobUid
from pai_backend.model.job import Event, State
from pai_backend.model.text import Text
from pai_backend.model.wording import with_wordings
from pai_backend.store import audit
from pai_backend.store.base import NewEvent, Sight
from pai_backend.store.lookup import no_such_job
from pai_backend.store.repository import Repository
from pai_backend.store.rows import AnyRow, Values
from pai_backend.store.tables import events, jobs

_COLUMNS = (events.c.position, events.c.job, events.c.seq, events.c.at, events.c.type, events.c.payload)
_INSERT = insert(events)
_OF_JOB = (
    select(*_COLUMNS)
    .where(events.c.job == bindparam("uid"), events.c.seq > bindparam("after"))
    .order_by(events.c.seq)
    .limit(bindparam("most"))
)
_OF_JOB_AND_TYPE = _OF_JOB.where(events.c.type == bindparam("type"))
_STATE = select(jobs.c.state).where(jobs.c.uid == bindparam("uid"))
_NEWEST = select(func.coalesce(func.max(events.c.position), 0))
_RECENT = (
    select(*_COLUMNS).where(events.c.position > bindparam("after")).order_by(events.c.position).limit(bindparam("most"))
)
# Not by a join with jobs: the planner would begin there, with all of the user's jobs.
_RECENT_OF_USER = _RECENT.where(events.c.username == bindparam("username_"))


def _within(clusters: str) -> ColumnElement[bool]:
    """Whether an event's job is of one of these virtual clusters, which the parameter of this name has."""
    its_job = jobs.c.virtual_cluster.in_(bindparam(clusters, expanding=True))
    return select(jobs.c.uid).where(jobs.c.uid == events.c.job, its_job).exists()


_RECENT_OF_MANAGER = _RECENT.where(or_(events.c.username == bindparam("username_"), _within("managed_")))

_HEAD = select(jobs.c.username, jobs.c.name, jobs.c.last_seq).where(jobs.c.uid == bindparam("uid_"))
_COUNT = update(jobs).where(jobs.c.uid == bindparam("uid_")).values(last_seq=bindparam("last_seq_"))


def event_values(uid: JobUid, user: str, last_seq: int, new: Sequence[NewEvent], at: datetime) -> list[Values]:
    """Rows that continue the log of a job after ``last_seq``."""
    return [
        {
            "job": uid,
            "username": user,
            "seq": seq,
            "at": at,
            "type": event.type,
            "payload": to_json(with_wordings(event.payload)).decode(),
        }
        for seq, event in enumerate(new, last_seq + 1)
    ]


def append(conn: Connection, rows: Sequence[Values]) -> None:
    """Write rows of :func:`event_values`, in their order."""
    if rows:
        conn.execute(_INSERT, rows)


def note(conn: Connection, uid: JobUid, new: Sequence[NewEvent], at: datetime, entry: AuditEvent | None = None) -> None:
    """Append lines that are no part of a job's life: who came and went. Under the write lock. Raises NoSuchJob.

    ``entry`` is what the audit gets of them: its ``user`` becomes the job's owner, and its ``subject``, a task or
    nothing, is put behind the job.
    They change no version and disturb no controller: a decision that is written at the same time takes the next number.
    """
    head = conn.execute(_HEAD, {"uid_": uid}).one_or_none()
    if head is None:
        raise no_such_job(uid)
    conn.execute(_COUNT, {"uid_": uid, "last_seq_": head.last_seq + len(new)})
    append(conn, event_values(uid, head.username, head.last_seq, new, at))
    if entry is not None:
        job = f"{head.username}~{head.name}"
        audit.add(conn, replace(entry, user=head.username, subject=f"{job}/{entry.subject}" if entry.subject else job))


def of_job(conn: Connection, uid: JobUid, after: int, limit: int, type_: str | None = None) -> list[Event]:
    """The job's events with ``seq > after``, in order; of one type only, when it is given."""
    bounds: Values = {"uid": uid, "after": after, "most": limit}
    if type_ is None:
        return [_event(row) for row in conn.execute(_OF_JOB, bounds)]
    return [_event(row) for row in conn.execute(_OF_JOB_AND_TYPE, {**bounds, "type": type_})]


def news(conn: Connection, uid: JobUid, after: int, limit: int) -> tuple[list[Event], bool]:
    """Events of a job as :func:`of_job`, and whether they are the last ones. Raises NoSuchJob."""
    # First, so that where nothing holds the two reads together no event of an ended job comes after them.
    state = conn.execute(_STATE, {"uid": uid}).scalar_one_or_none()
    if state is None:
        raise no_such_job(uid)
    found = of_job(conn, uid, after, limit)
    return found, State(state).final and len(found) < limit


def recent(conn: Connection, position: str | None, sight: Sight, limit: int) -> tuple[list[Event], str]:
    """Events that ``sight`` shows after ``position`` and the position to go on from; None starts at the present.

    Raises InvalidParameters for a position that this function never gave.
    """
    newest = conn.execute(_NEWEST).scalar_one()
    if position is None:
        return [], str(newest)
    if not (position.isascii() and position.isdigit() and len(position) < 19):
        raise InvalidParameters(
            Text("{position} is not a position in the event log.", position=repr(position[:40])),
            hint=Text("Send the `position` of the last message, or none to start now."),
        )
    bounds: Values = {"after": int(position), "most": limit}
    if sight.user is None:
        query = _RECENT
    elif not sight.managed:
        query, bounds = _RECENT_OF_USER, {**bounds, "username_": sight.user}
    else:
        query, bounds = _RECENT_OF_MANAGER, {**bounds, "username_": sight.user, "managed_": sight.managed}
    if sight.within:
        query, bounds = query.where(_within("within_")), {**bounds, "within_": [sight.within]}
    rows = conn.execute(query, bounds).all()
    # A short page is everything there is for this user: go on from the end, past the events of others.
    end = rows[-1].position if len(rows) == limit else max(newest, int(position))
    return [_event(row) for row in rows], str(end)


def _event(row: AnyRow) -> Event:
    return Event(job=JobUid(row.job), seq=row.seq, at=row.at, type=row.type, payload=from_json(row.payload))


class Events(Repository):
    """The event logs of jobs."""

    async def of_job(self, uid: JobUid, after: int = 0, limit: int = 1000, type_: str | None = None) -> list[Event]:
        """Events of one job with ``seq > after``, in order; of one type only, when it is given."""
        return await self._database.read(partial(of_job, uid=uid, after=after, limit=limit, type_=type_))

    async def news(self, uid: JobUid, after: int, limit: int = 1000) -> tuple[list[Event], bool]:
        """Events of one job with ``seq > after``, in order, and whether no other will come behind them.

        One read for all followers: there may be thousands, and each change of a job wakes some. Raises NoSuchJob.
        """
        return await self._database.read(partial(news, uid=uid, after=after, limit=limit))

    async def recent(self, position: str | None, sight: Sight, limit: int = 1000) -> tuple[list[Event], str]:
        """Events of the jobs that ``sight`` shows after an opaque position, and the next position.

        ``None`` starts at the present. Delivers at least once: a consumer drops what it has by (job, seq).
        """
        return await self._database.read(partial(recent, position=position, sight=sight, limit=limit))

    async def note(
        self, uid: JobUid, events: Sequence[NewEvent], at: datetime, entry: AuditEvent | None = None
    ) -> None:
        """Append events that are no part of the job's life, such as logins; its version stays. Raises NoSuchJob.

        ``entry``: see :func:`note`.
        """
        await self._writer.run(partial(note, uid=uid, new=events, at=at, entry=entry))
