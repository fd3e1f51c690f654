"""Uses and idle clocks of jobs in SQL."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime, timedelta
from functools import partial

from sqlalchemy import BindParameter, Connection, bindparam, delete, insert, select, update

from pai_backend.model.idle import IdleClock, UseSource
from pai_backend.model.ids import JobUid
from pai_backend.model.job import Desired, StopCause
from pai_backend.store import events, intent, lease, lookup
from pai_backend.store.base import NewEvent
from pai_backend.store.cipher import Cipher
from pai_backend.store.repository import Repository
from pai_backend.store.tables import idle_clocks, job_uses, jobs

Uses = Mapping[tuple[JobUid, UseSource], datetime]
"""When each source last used each job, by the clock of who saw it."""


_UIDS: BindParameter[str] = bindparam("uids", expanding=True)
_GOING = select(jobs.c.uid).where(jobs.c.uid.in_(_UIDS), jobs.c.completed_at.is_(None))
_USES = select(job_uses).where(job_uses.c.job.in_(_UIDS))
_USE = update(job_uses).where(job_uses.c.job == bindparam("job_"), job_uses.c.source == bindparam("source_"))
_FIRST_USE = insert(job_uses)
_CLOCKS = select(idle_clocks).where(idle_clocks.c.job.in_(_UIDS))
_KEEP = update(idle_clocks).where(idle_clocks.c.job == bindparam("job_"))
_KEEP_FIRST = insert(idle_clocks)
_FORGET = delete(job_uses).where(job_uses.c.job.in_(_UIDS)), delete(idle_clocks).where(idle_clocks.c.job.in_(_UIDS))

_STEP = timedelta(microseconds=1)  # what the store can tell apart


class Idling(Repository):
    """Uses and idle clocks of jobs."""

    async def note(self, uses: Uses) -> None:
        """Keep these uses; each moves the mark of its source on, whatever the clocks of those who write. Wakes no one.

        A job that is not there, or is over, is left out.
        """
        await self._writer.run(partial(_note, uses=uses), announce=False)

    async def uses(self, jobs: Collection[JobUid]) -> Mapping[JobUid, Mapping[UseSource, datetime]]:
        """The last use of each of these jobs by each source; what was never used is not in it."""
        return await self._database.read(partial(_uses, uids=jobs))

    async def clocks(self, jobs: Collection[JobUid]) -> Mapping[JobUid, IdleClock]:
        """The clocks of these jobs, as far as they have begun."""
        return await self._database.read(partial(_clocks, uids=jobs))

    async def keep(
        self, clocks: Mapping[JobUid, IdleClock], told: Mapping[JobUid, NewEvent], at: datetime, epoch: int
    ) -> None:
        """Write clocks, and the events of some, in one transaction; that wakes others if it tells. Raises Fenced.

        Of a job that is over meanwhile nothing is written.
        """
        await self._writer.run(partial(_keep, clocks=clocks, told=told, at=at, epoch=epoch), announce=bool(told))

    async def stop(
        self, uid: JobUid, seen: Mapping[UseSource, datetime], reason: str, at: datetime, epoch: int
    ) -> bool:
        """Write the wish that the job end because it is idle, unless a use was written that is not among ``seen``.

        Requests of a Jupyter server's page do not count here: they are use only where its kernels tell nothing.

        False: it was used, or is over or asked to stop anyway. Raises NoSuchJob, Fenced.
        """
        return await self._ring.tried(
            lambda cipher: self._writer.run(
                partial(_stop, uid=uid, seen=seen, reason=reason, at=at, epoch=epoch, cipher=cipher)
            )
        )


def forget(conn: Connection, uids: Sequence[JobUid]) -> None:
    """These jobs are over: nothing more can use them."""
    for statement in _FORGET:
        conn.execute(statement, {"uids": list(uids)})


def _note(conn: Connection, uses: Uses) -> None:
    uids = list({uid for uid, _ in uses})
    going = set(conn.execute(_GOING, {"uids": uids}).scalars())
    known = {(row.job, row.source): row.at for row in conn.execute(_USES, {"uids": uids})}
    first, again = [], []
    for (uid, source), at in uses.items():
        last = known.get((uid, source))
        if uid not in going:
            continue
        if last is None:
            first.append({"job": uid, "source": source.value, "at": at})
        else:
            again.append({"job_": uid, "source_": source.value, "at": max(at, last + _STEP)})
    if again:
        conn.execute(_USE.values(at=bindparam("at")), again)
    if first:
        conn.execute(_FIRST_USE, first)


def _uses(conn: Connection, uids: Collection[JobUid]) -> dict[JobUid, dict[UseSource, datetime]]:
    found: dict[JobUid, dict[UseSource, datetime]] = {}
    for row in conn.execute(_USES, {"uids": list(uids)}):
        found.setdefault(JobUid(row.job), {})[UseSource(row.source)] = row.at
    return found


def _clocks(conn: Connection, uids: Collection[JobUid]) -> dict[JobUid, IdleClock]:
    rows = conn.execute(_CLOCKS, {"uids": list(uids)})
    return {JobUid(row.job): IdleClock.model_validate_json(row.body) for row in rows}


def _keep(
    conn: Connection, clocks: Mapping[JobUid, IdleClock], told: Mapping[JobUid, NewEvent], at: datetime, epoch: int
) -> None:
    lease.require(conn, epoch)
    going = set(conn.execute(_GOING, {"uids": [*{*clocks, *told}]}).scalars())
    known = {row.job for row in conn.execute(_CLOCKS, {"uids": list(clocks)})}
    bodies = {uid: clock.model_dump_json() for uid, clock in clocks.items() if uid in going}
    if again := [{"job_": uid, "body": body} for uid, body in bodies.items() if uid in known]:
        conn.execute(_KEEP.values(body=bindparam("body")), again)
    if first := [{"job": uid, "body": body} for uid, body in bodies.items() if uid not in known]:
        conn.execute(_KEEP_FIRST, first)
    for uid, event in told.items():
        if uid in going:
            events.note(conn, uid, [event], at)


def _stop(
    conn: Connection,
    uid: JobUid,
    seen: Mapping[UseSource, datetime],
    reason: str,
    at: datetime,
    epoch: int,
    cipher: Cipher,
) -> bool:
    lease.require(conn, epoch)
    job = lookup.job(conn, uid, cipher)
    written = _uses(conn, [uid]).get(uid, {})
    used = any(mark != seen.get(source) for source, mark in written.items() if source is not UseSource.PAGE)
    if used or job.state.final or job.desired is Desired.STOP:
        return False
    intent.asked(conn, job, StopCause.IDLE, "", reason, at)
    return True
