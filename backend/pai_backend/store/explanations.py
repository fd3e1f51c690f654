"""Questions why a job waits, asked by the api, and the controller's answers. Not part of a job: they change nothing."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from functools import partial

from sqlalchemy import Connection, bindparam, insert, select, update

from pai_backend.model.ids import JobUid
from pai_backend.store import lease
from pai_backend.store.base import Explanation
from pai_backend.store.repository import Repository
from pai_backend.store.tables import explanations

_JOB = explanations.c.job == bindparam("job_")
_ONE = select(explanations).where(_JOB)
_OPEN = (
    select(explanations.c.job)
    .where(explanations.c.open)
    .order_by(explanations.c.asked_at, explanations.c.job)
    .limit(bindparam("limit_"))
)
_ASK = update(explanations).where(_JOB)
_ASK_FIRST = insert(explanations)
_ANSWER = update(explanations).where(_JOB)


def ask(conn: Connection, uid: JobUid, at: datetime) -> None:
    """The question is open from now on, again if it was answered before. Raises IntegrityError for no job."""
    asked = {"asked_at": at, "open": True}
    if not conn.execute(_ASK.values(asked), {"job_": uid}).rowcount:
        conn.execute(_ASK_FIRST, {"job": uid, "answered_at": None, "body": "", **asked})


def asked(conn: Connection, limit: int) -> list[JobUid]:
    """Jobs with an open question, the longest open first."""
    return [JobUid(uid) for uid in conn.execute(_OPEN, {"limit_": limit}).scalars()]


def answer(conn: Connection, answers: Mapping[JobUid, str], at: datetime, epoch: int) -> None:
    """Close these questions. Raises Fenced."""
    lease.require(conn, epoch)
    for uid, body in answers.items():
        conn.execute(_ANSWER.values(answered_at=at, body=body, open=False), {"job_": uid})


def explanation(conn: Connection, uid: JobUid) -> Explanation | None:
    """The last answer, and whether a newer one was asked for; None when it was never asked."""
    row = conn.execute(_ONE, {"job_": uid}).one_or_none()
    return None if row is None else Explanation(row.asked_at, row.answered_at, row.body, row.open)


class Explanations(Repository):
    """Why jobs wait: asked by the api, answered by the controller."""

    async def ask(self, uid: JobUid, at: datetime) -> None:
        """Ask the controller why a job waits; wakes it. Idempotent while the question is open."""
        await self._writer.run(partial(ask, uid=uid, at=at))

    async def asked(self, limit: int) -> list[JobUid]:
        """Jobs with an open question, the longest open first."""
        return await self._database.read(partial(asked, limit=limit))

    async def answer(self, answers: Mapping[JobUid, str], at: datetime, epoch: int) -> None:
        """Close these questions; wakes who waits for the answers. Raises Fenced."""
        await self._writer.run(partial(answer, answers=answers, at=at, epoch=epoch))

    async def get(self, uid: JobUid) -> Explanation | None:
        """The last answer; None when it was never asked about this job."""
        return await self._database.read(partial(explanation, uid=uid))
