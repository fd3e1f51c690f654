"""The user's wish that a job which has ended run again."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import Connection, bindparam, select

from pai_backend.lifecycle.history import events_between
from pai_backend.lifecycle.restart import restarted
from pai_backend.model.errors import ReadOnlyJob
from pai_backend.model.ids import JobUid
from pai_backend.model.job import Desired, Job
from pai_backend.model.text import Text
from pai_backend.store import intent, lookup
from pai_backend.store.base import NewEvent
from pai_backend.store.cipher import Cipher
from pai_backend.store.tables import deletions

_IS_DELETED = select(deletions.c.job).where(deletions.c.job == bindparam("uid_"))


@dataclass(frozen=True)
class RestartRequest:
    """Who restarts which job, and when."""

    uid: JobUid
    by: str
    at: datetime
    cipher: Cipher

    def __call__(self, conn: Connection) -> Job:
        """Record it; returns the job as it now is. A job that goes on is left alone.

        Raises NoSuchJob, UnknownKey, ReadOnlyJob for a job that is being stopped or deleted.
        """
        job = lookup.job(conn, self.uid, self.cipher)
        if not job.state.final and job.desired is Desired.STOP:
            raise ReadOnlyJob(
                Text("The job {id} is still being stopped.", id=job.id),
                hint=Text("Wait until it has ended (`pai status --watch {id}`), then restart it.", id=job.id),
            )
        if not job.state.final:
            return job
        if conn.execute(_IS_DELETED, {"uid_": job.uid}).one_or_none() is not None:
            raise ReadOnlyJob(
                Text("The job {id} is being deleted.", id=job.id), hint=Text("Submit its document again.")
            )
        after = restarted(job, self.at)
        asked = NewEvent("job.restart-requested", {"by": self.by})
        return intent.write(conn, after, [asked, *events_between(job, after)], self.at)
