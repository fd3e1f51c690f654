"""The user's wish that a job end."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import Connection, bindparam, select, update

from pai_backend.model.ids import JobUid
from pai_backend.model.job import Desired, Job
from pai_backend.store import events, lookup
from pai_backend.store.base import NewEvent
from pai_backend.store.cipher import Cipher
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


@dataclass(frozen=True)
class StopRequest:
    """Who wants which job stopped, when and why."""

    uid: JobUid
    by: str
    at: datetime
    reason: str
    cipher: Cipher

    def __call__(self, conn: Connection) -> Job:
        """Record it unless the job is final or being stopped; returns the job as it now is.

        Raises NoSuchJob, UnknownKey.
        """
        job = lookup.job(conn, self.uid, self.cipher)
        if job.state.final or job.desired is Desired.STOP:
            return job
        stopped = job.model_copy(
            update={"desired": Desired.STOP, "stop_reason": self.reason, "version": job.version + 1}
        )
        last_seq = conn.execute(_LAST_SEQ, {"uid_": self.uid}).scalar_one()
        event = NewEvent("job.stop-requested", {"by": self.by, "reason": self.reason})
        values = changing_values(stopped)
        conn.execute(
            _UPDATE,
            {
                "uid_": self.uid,
                "desired": values["desired"],
                "rest": values["rest"],
                "version": stopped.version,
                "last_seq": last_seq + 1,
            },
        )
        events.append(conn, events.event_values(job, last_seq, [event], self.at))
        return stopped
