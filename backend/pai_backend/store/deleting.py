"""Deleting jobs in SQL."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from datetime import datetime
from functools import partial
from typing import Any, Final

from sqlalchemy import BindParameter, Connection, Select, bindparam, delete, func, insert, select, text, tuple_, update

from pai_backend.model.errors import NotFinished
from pai_backend.model.ids import JobUid, job_of
from pai_backend.model.job import State
from pai_backend.model.text import Text
from pai_backend.store import events, lease, tally
from pai_backend.store.base import NewEvent, job_key_slots, peer_key_slot, slot
from pai_backend.store.deletion import FRESH, TOLD, Deletion, DeletionCause, Retention
from pai_backend.store.lookup import no_such_job
from pai_backend.store.people_tables import certificates, shares, user_keys
from pai_backend.store.repository import Repository
from pai_backend.store.rows import AnyRow
from pai_backend.store.tables import (
    deletions,
    documents,
    explanations,
    idle_clocks,
    job_uses,
    jobs,
    login_starts,
    orphans,
    port_leases,
    rule_clocks,
    submission_keys,
    task_keys,
    tasks,
)
from pai_backend.store.tables import events as event_log

_FINAL: Final = tuple(state.value for state in State if state.final)
MOST: Final = 1000
"""Names in one statement: databases take some ten thousand values in one."""

_UIDS: BindParameter[str] = bindparam("uids", expanding=True)
_HEADS = select(
    jobs.c.uid, jobs.c.name, jobs.c.username, jobs.c.state, jobs.c.settled, jobs.c.dirty, jobs.c.last_seq
).where(jobs.c.uid.in_(_UIDS))
_MARKS = select(deletions).where(deletions.c.job.in_(_UIDS))
_MARK = insert(deletions)
_PLACE = update(deletions).where(deletions.c.job == bindparam("job_")).values(position=bindparam("position_"))
_POSITION = select(event_log.c.position).where(
    event_log.c.job == bindparam("job_"), event_log.c.seq == bindparam("seq_")
)
_SLOTS = select(tasks.c.job, tasks.c.role_number, tasks.c.task_index).where(tasks.c.job.in_(_UIDS)).distinct()
_OWNED = tuple(
    delete(table).where(table.c.owner.in_(bindparam("owners", expanding=True))) for table in (task_keys, port_leases)
)
_OF_JOBS = tuple(
    delete(table).where(table.c.job.in_(_UIDS))
    for table in (
        *(documents, tasks, explanations, job_uses, idle_clocks, rule_clocks, shares),
        # Only what is good for this job and no other has its uid.
        *(user_keys, certificates, submission_keys, login_starts),
    )
)
_EVENTS = delete(event_log).where(event_log.c.job.in_(_UIDS), event_log.c.type != "job.deleted")
_JOBS = delete(jobs).where(jobs.c.uid.in_(_UIDS))
_ORDER = (deletions.c.asked_at, deletions.c.job)
_OPEN = select(deletions).where(deletions.c.cleared_at.is_(None)).order_by(*_ORDER).limit(bindparam("most"))
_OPEN_AFTER = _OPEN.where(
    tuple_(*_ORDER) > tuple_(bindparam("at_", type_=deletions.c.asked_at.type), bindparam("job_"))
)
_CLOSE = (
    update(deletions)
    .where(deletions.c.job == bindparam("job_"), deletions.c.position.is_not(None))
    .values(cleared_at=bindparam("at_"))
)
_OLD = select(deletions.c.job, deletions.c.position).where(
    deletions.c.cleared_at < bindparam("before_", type_=deletions.c.cleared_at.type)
)
_LAST = select(func.max(event_log.c.position))
_FORGET_EVENT = delete(event_log).where(event_log.c.position == bindparam("position_"))
_FORGET = delete(deletions).where(deletions.c.job == bindparam("job_"))
_ENDED = (
    select(jobs.c.uid)
    .where(jobs.c.state.in_(_FINAL), jobs.c.settled, ~jobs.c.dirty, jobs.c.completed_at.is_not(None))
    .order_by(jobs.c.completed_at, jobs.c.uid)
)
_ENDED_BEFORE = _ENDED.where(jobs.c.completed_at < bindparam("before_", type_=jobs.c.completed_at.type))


class Deletions(Repository):
    """Jobs that are deleted, and those that are to be."""

    async def request(self, uid: JobUid, by: str, at: datetime) -> bool:
        """Mark a finished job, and delete its rows where no task of it has to be forgotten; whether they are gone.

        Idempotent while the rows are there. Raises NoSuchJob, NotFinished.
        """
        return await self._writer.run(partial(_request, uid=uid, by=by, at=at))

    async def remove(self, uids: Collection[JobUid], cause: DeletionCause, at: datetime, epoch: int) -> list[JobUid]:
        """Delete the rows of those of these jobs that are finished and have no task to be forgotten; returns which.

        In one transaction. One that is marked already keeps who asked for it. Raises Fenced.
        """
        return await self._writer.run(partial(_remove, uids=uids, cause=cause, at=at, epoch=epoch))

    async def pending(self, after: Deletion | None, limit: int) -> list[Deletion]:
        """Open marks that come after that one, the longest open first."""
        return await self._database.read(partial(_pending, after=after, limit=limit))

    async def close(self, uid: JobUid, at: datetime, epoch: int) -> None:
        """Nothing is left of a job whose rows are gone. Idempotent. Raises Fenced."""
        await self._writer.run(partial(_close, uid=uid, at=at, epoch=epoch), announce=False)

    async def expired(self, keep: Retention, now: datetime, limit: int) -> list[JobUid]:
        """Finished jobs that are not to be kept, those that ended first."""
        return await self._database.read(partial(_expired, keep=keep, now=now, limit=limit))

    async def sweep(self, now: datetime, epoch: int) -> None:
        """Forget closed marks older than :data:`TOLD`, with the events that tell of them. Raises Fenced."""
        await self._writer.run(partial(_sweep, now=now, epoch=epoch), announce=False)


def _request(conn: Connection, uid: JobUid, by: str, at: datetime) -> bool:
    head = conn.execute(_HEADS, {"uids": [uid]}).one_or_none()
    if head is None:
        raise no_such_job(uid)
    if head.state not in _FINAL:
        raise NotFinished(
            Text(
                "The job {username}~{head} has not ended, so it is not deleted.", username=head.username, head=head.name
            ),
            hint=Text(
                "Stop it first (`pai stop {username}~{head}`), then delete it.", username=head.username, head=head.name
            ),
        )
    for task in _orphaned(conn):
        if job_of(task) == uid:
            raise NotFinished(
                Text("The task {task} of this job runs unknown to the database, so the job is not deleted.", task=task),
                hint=Text("An administrator ends it first: `pai cluster orphans`."),
            )
    _mark(conn, [head], by, DeletionCause.USER, at)
    if not _is_settled(head):
        return False
    _erase(conn, [head], at)
    return True


def _remove(conn: Connection, uids: Collection[JobUid], cause: DeletionCause, at: datetime, epoch: int) -> list[JobUid]:
    lease.require(conn, epoch)
    kept = {job_of(task) for task in _orphaned(conn)}
    found = [head for head in conn.execute(_HEADS, {"uids": list(uids)}) if head.uid not in kept]
    going = [head for head in found if head.state in _FINAL and _is_settled(head)]
    if going:
        _mark(conn, going, cause.value, cause, at)
        _erase(conn, going, at)
    return [JobUid(head.uid) for head in going]


def _orphaned(conn: Connection) -> Sequence[Any]:
    return conn.execute(select(orphans.c.task)).scalars().all()


def _is_settled(head: AnyRow) -> bool:
    """Whether every task is forgotten, and nothing is left to be decided."""
    return bool(head.settled and not head.dirty)


def _mark(conn: Connection, heads: Sequence[AnyRow], by: str, cause: DeletionCause, at: datetime) -> None:
    known = {row.job for row in conn.execute(_MARKS, {"uids": [head.uid for head in heads]})}
    fresh = [
        {"job": head.uid, "asked_by": by, "cause": cause.value, "asked_at": at, "position": None, "cleared_at": None}
        for head in heads
        if head.uid not in known
    ]
    if fresh:
        conn.execute(_MARK, fresh)


def _erase(conn: Connection, heads: Sequence[AnyRow], at: datetime) -> None:
    """Delete all rows of jobs that are marked. Each leaves one event."""
    uids = [JobUid(head.uid) for head in heads]
    owners = [owner for uid in uids for owner in (*job_key_slots(uid), peer_key_slot(uid))]
    owners += [slot(JobUid(row.job), row.role_number, row.task_index) for row in conn.execute(_SLOTS, {"uids": uids})]
    for start in range(0, len(owners), MOST):
        for statement in _OWNED:
            conn.execute(statement, {"owners": owners[start : start + MOST]})
    # Before the others go: SQLite gives the highest position again once its row is deleted, and followers miss it.
    _tell(conn, heads, at)
    for statement in (_EVENTS, *_OF_JOBS, _JOBS):
        conn.execute(statement, {"uids": uids})


def _tell(conn: Connection, heads: Sequence[AnyRow], at: datetime) -> None:
    """Append the last event of each job, and note its position."""
    marks = {row.job: row for row in conn.execute(_MARKS, {"uids": [head.uid for head in heads]})}
    for head in heads:
        mark = marks[head.uid]
        told = NewEvent("job.deleted", {"name": head.name, "by": mark.asked_by, "cause": mark.cause})
        events.append(conn, events.event_values(JobUid(head.uid), head.username, head.last_seq, [told], at))
        place = {"job_": head.uid, "seq_": head.last_seq + 1}
        position = conn.execute(_POSITION, place).scalar_one()
        conn.execute(_PLACE, {"job_": head.uid, "position_": position})


def _pending(conn: Connection, after: Deletion | None, limit: int) -> list[Deletion]:
    if after is None:
        rows = conn.execute(_OPEN, {"most": limit})
    else:
        rows = conn.execute(_OPEN_AFTER, {"most": limit, "at_": after.asked_at, "job_": after.job})
    return [Deletion(JobUid(row.job), row.asked_at, row.position is not None) for row in rows]


def _close(conn: Connection, uid: JobUid, at: datetime, epoch: int) -> None:
    lease.require(conn, epoch)
    conn.execute(_CLOSE, {"job_": uid, "at_": at})


def _expired(conn: Connection, keep: Retention, now: datetime, limit: int) -> list[JobUid]:
    if keep.age:
        found = _uids(conn, _ENDED_BEFORE, limit, before_=now - keep.age)
        if found:
            return found
    over = _too_many(conn, keep, limit)
    return _uids(conn, _ENDED_BEFORE, over, before_=now - FRESH) if over else []


def _too_many(conn: Connection, keep: Retention, limit: int) -> int:
    """How many finished jobs are to go because of their number, or of the bytes of all."""
    counts = tally.counts(conn)
    finished = sum(counts.get(state, 0) for state in _FINAL)
    if keep.bytes and finished and (_bytes_used(conn) or 0) > keep.bytes:
        return min(limit, finished)
    return min(limit, max(0, finished - keep.number)) if keep.number else 0


def _uids(conn: Connection, query: Select[Any], limit: int, **values: object) -> list[JobUid]:
    if kept := {job_of(task) for task in _orphaned(conn)}:
        query = query.where(jobs.c.uid.not_in(kept))
    return [JobUid(uid) for uid in conn.execute(query.limit(limit), values).scalars()]


def _bytes_used(conn: Connection) -> int | None:
    """Bytes of the database file that hold something; None where that is not told."""
    if conn.dialect.name != "sqlite":
        return None
    pages, free, size = (
        int(conn.execute(text(f"PRAGMA {name}")).scalar_one()) for name in ("page_count", "freelist_count", "page_size")
    )
    return (pages - free) * size


def _sweep(conn: Connection, now: datetime, epoch: int) -> None:
    lease.require(conn, epoch)
    last = conn.execute(_LAST).scalar_one()
    for row in conn.execute(_OLD, {"before_": now - TOLD}).all():
        if row.position != last:  # the highest number stays: see _tell
            conn.execute(_FORGET_EVENT, {"position_": row.position})
            conn.execute(_FORGET, {"job_": row.job})
