"""The user's wish that a job end."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import Connection

from pai_backend.model.ids import JobUid
from pai_backend.model.job import Desired, Job
from pai_backend.store import intent, lookup
from pai_backend.store.base import NewEvent
from pai_backend.store.cipher import Cipher


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
        stopped = job.model_copy(update={"desired": Desired.STOP, "stop_reason": self.reason})
        return intent.write(
            conn, stopped, NewEvent("job.stop-requested", {"by": self.by, "reason": self.reason}), self.at
        )
