"""Writing what a user wants of a job that exists: the wish on the job, the mark for the controller, and the events."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from sqlalchemy import Connection, bindparam, select, update

from pai_backend.model.job import Job
from pai_backend.store import events
from pai_backend.store.base import NewEvent
from pai_backend.store.rows import changing_values
from pai_backend.store.tables import jobs

_LAST_SEQ = select(jobs.c.last_seq).where(jobs.c.uid == bindparam("uid_"))
_UPDATE = update(jobs).where(jobs.c.uid == bindparam("uid_"))


def write(conn: Connection, job: Job, new: Sequence[NewEvent], at: datetime) -> Job:
    """Write a job that carries a wish which it did not before; returns it with its new version.

    The job must have been read in this transaction.
    """
    wanted = job.model_copy(update={"version": job.version + 1})
    last_seq = conn.execute(_LAST_SEQ, {"uid_": job.uid}).scalar_one()
    numbers = {"version": wanted.version, "last_seq": last_seq + len(new), "dirty": True}
    conn.execute(_UPDATE, {**changing_values(wanted), **numbers, "uid_": job.uid})
    events.append(conn, events.event_values(job.uid, job.user, last_seq, new, at))
    return wanted
