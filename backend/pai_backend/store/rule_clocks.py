"""What rules of virtual clusters have led to, by job and kind of rule."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from datetime import datetime
from enum import StrEnum
from functools import partial

from sqlalchemy import BindParameter, Connection, bindparam, delete, insert, select

from pai_backend.model.base import Model
from pai_backend.model.ids import JobUid
from pai_backend.model.job import Desired, StopCause
from pai_backend.model.rule_clock import EndWarned, UnderuseClock
from pai_backend.store import events, intent, lease, lookup
from pai_backend.store.base import NewEvent
from pai_backend.store.cipher import Cipher
from pai_backend.store.repository import Repository
from pai_backend.store.tables import jobs
from pai_backend.store.tables import rule_clocks as table

_UIDS: BindParameter[str] = bindparam("uids", expanding=True)
_OF = select(table).where(table.c.job.in_(_UIDS), table.c.kind == bindparam("kind_"))
_GOING = select(jobs.c.uid).where(jobs.c.uid.in_(_UIDS), jobs.c.completed_at.is_(None))
_DROP = delete(table).where(table.c.job == bindparam("job_"), table.c.kind == bindparam("kind_"))


class RuleKind(StrEnum):
    """Which rule watches the job."""

    ENDING = "ending"
    UNDERUSE = "underuse"


class RuleClocks(Repository):
    """Clocks of jobs that a rule watches."""

    async def ending(self, uids: Collection[JobUid]) -> Mapping[JobUid, EndWarned]:
        """Which of these jobs were warned of their end."""
        found = await self._database.read(partial(_of, uids=uids, kind=RuleKind.ENDING))
        return {uid: EndWarned.model_validate_json(body) for uid, body in found.items()}

    async def underuse(self, uids: Collection[JobUid]) -> Mapping[JobUid, UnderuseClock]:
        """How the idle rule stands with these jobs."""
        found = await self._database.read(partial(_of, uids=uids, kind=RuleKind.UNDERUSE))
        return {uid: UnderuseClock.model_validate_json(body) for uid, body in found.items()}

    async def keep(
        self, uid: JobUid, kind: RuleKind, clock: Model, told: NewEvent | None, at: datetime, epoch: int
    ) -> bool:
        """Write a job's clock, and an event, in one transaction. False: the job is over. Raises Fenced."""
        change = partial(_keep, uid=uid, kind=kind, body=clock.model_dump_json(), told=told, at=at, epoch=epoch)
        return await self._writer.run(change, announce=told is not None)

    async def stop_underused(self, uid: JobUid, attempt: int, reason: str, at: datetime, epoch: int) -> bool:
        """Write the wish that the job end, for its virtual cluster's idle rule.

        False: it is over, asked to stop anyway, or in another attempt. Raises NoSuchJob, Fenced.
        """
        return await self._ring.tried(
            lambda cipher: self._writer.run(
                partial(_stop, uid=uid, attempt=attempt, reason=reason, at=at, epoch=epoch, cipher=cipher)
            )
        )


def _of(conn: Connection, uids: Collection[JobUid], kind: RuleKind) -> dict[JobUid, str]:
    rows = conn.execute(_OF, {"uids": list(uids), "kind_": kind.value})
    return {JobUid(row.job): row.body for row in rows}


def _keep(
    conn: Connection, uid: JobUid, kind: RuleKind, body: str, told: NewEvent | None, at: datetime, epoch: int
) -> bool:
    lease.require(conn, epoch)
    if not conn.execute(_GOING, {"uids": [uid]}).scalars().all():
        return False
    conn.execute(_DROP, {"job_": uid, "kind_": kind.value})
    conn.execute(insert(table), {"job": uid, "kind": kind.value, "body": body})
    if told is not None:
        events.note(conn, uid, [told], at)
    return True


def _stop(conn: Connection, uid: JobUid, attempt: int, reason: str, at: datetime, epoch: int, cipher: Cipher) -> bool:
    lease.require(conn, epoch)
    job = lookup.job(conn, uid, cipher)
    if job.state.final or job.desired is Desired.STOP or job.attempt != attempt:
        return False
    intent.asked(conn, job, StopCause.IDLE, "", reason, at)
    return True
