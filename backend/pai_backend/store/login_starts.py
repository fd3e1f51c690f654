"""Jobs that a login at the gateway asks to run again, and what the API answers, which knows whether a job may.

A row without a refusal is a wish that was not looked at yet.
"""

from __future__ import annotations

from datetime import datetime

from sqlalchemy import Connection, bindparam, delete, insert, select, update

from pai_backend.model.ids import JobUid
from pai_backend.store.repository import Repository
from pai_backend.store.tables import login_starts

_OF_JOB = login_starts.c.job == bindparam("job_")
_ONE = select(login_starts.c.refusal).where(_OF_JOB)
_OPEN = select(login_starts.c.job).where(login_starts.c.refusal.is_(None)).order_by(login_starts.c.asked_at)


class LoginStarts(Repository):
    """Wishes of logins."""

    async def ask(self, job: JobUid, at: datetime) -> None:
        """Wish that the job runs again. Wishes of several logins are one."""
        await self._writer.run(lambda conn: _ask(conn, job, at))

    async def open(self) -> list[JobUid]:
        """Jobs whose wish was not looked at yet, the oldest wish first."""
        rows = await self._database.read(lambda conn: conn.execute(_OPEN).scalars().all())
        return [JobUid(row) for row in rows]

    async def grant(self, job: JobUid) -> None:
        """The job runs again, or did so already."""
        await self._writer.run(lambda conn: conn.execute(delete(login_starts).where(_OF_JOB), {"job_": job}))

    async def refuse(self, job: JobUid, why: str) -> None:
        """The job may not run again."""
        change = update(login_starts).where(_OF_JOB).values(refusal=why)
        await self._writer.run(lambda conn: conn.execute(change, {"job_": job}))

    async def refusal(self, job: JobUid) -> str:
        """Why the last wish was refused; empty when it was not."""
        return str(await self._database.read(lambda conn: conn.execute(_ONE, {"job_": job}).scalar_one_or_none()) or "")


def _ask(conn: Connection, job: JobUid, at: datetime) -> None:
    changed = update(login_starts).where(_OF_JOB).values(refusal=None, asked_at=at)
    if not conn.execute(changed, {"job_": job}).rowcount:
        conn.execute(insert(login_starts), {"job": job, "asked_at": at, "refusal": None})
