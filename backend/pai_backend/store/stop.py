"""The user's wish that a job end."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import Connection

from pai_backend.model.ids import JobUid
from pai_backend.model.job import Desired, Job, StopCause
from pai_backend.store import intent, lease, lookup
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
        return asked(conn, job, StopCause.USER, self.by, self.reason, self.at)


@dataclass(frozen=True)
class TimeIsUp:
    """Which attempt of a job has run for as long as it may, as a controller sees it."""

    uid: JobUid
    attempt: int
    at: datetime
    reason: str
    epoch: int
    cipher: Cipher

    def __call__(self, conn: Connection) -> bool:
        """Record that the job is to stop. False: it is over, being stopped, or in another attempt.

        Raises NoSuchJob, UnknownKey, Fenced.
        """
        lease.require(conn, self.epoch)
        job = lookup.job(conn, self.uid, self.cipher)
        if job.state.final or job.desired is Desired.STOP or job.attempt != self.attempt:
            return False
        asked(conn, job, StopCause.DURATION, "", self.reason, self.at)
        return True


def asked(conn: Connection, job: Job, cause: StopCause, by: str, reason: str, at: datetime) -> Job:
    """Write the wish on a job that was read in this transaction and is not asked to stop yet; ``by`` is a user."""
    stopped = job.model_copy(update={"desired": Desired.STOP, "stop_reason": reason, "stop_cause": cause})
    event = NewEvent("job.stop-requested", {"by": by, "reason": reason, "cause": cause.value})
    return intent.write(conn, stopped, [event], at)
