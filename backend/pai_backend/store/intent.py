"""Writing what a user wants of a job that exists: the wish on the job, the mark for the controller, and the event."""

from __future__ import annotations

from datetime import datetime

from sqlalchemy import Connection, bindparam, select, update

from pai_backend.model.job import Job
from pai_backend.store import events
from pai_backend.store.base import NewEvent
from pai_backend.store.rows import changing_values
from pai_backend.store.tables import jobs

_LAST_SEQ = select(jobs.c.last_seq).where(jobs.c.uid == bindparam("uid_"))
_UPDATE = (
    update(jobs)
    .where(jobs.c.uid == bindparam("uid_"))
    .values(
        desired=bindparam("desired"),
        rest=bindparam("rest"),
        version=bindparam("version"),
        last_seq=bindparam("last_seq"),
        dirty=True,
    )
)


def write(conn: Connection, job: Job, event: NewEvent, at: datetime) -> Job:
    """Write a job that carries a wish which it did not before; returns it with its new version.

    The job must have been read in this transaction.
    """
    wanted = job.model_copy(update={"version": job.version + 1})
    last_seq = conn.execute(_LAST_SEQ, {"uid_": job.uid}).scalar_one()
    values = changing_values(wanted)
    conn.execute(
        _UPDATE,
        {
            "uid_": job.uid,
            "desired": values["desired"],
            "rest": values["rest"],
            "version": wanted.version,
            "last_seq": last_seq + 1,
        },
    )
    events.append(conn, events.event_values(job, last_seq, [event], at))
    return wanted
