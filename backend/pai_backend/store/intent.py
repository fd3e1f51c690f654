"""What users want of jobs that exist: that they stop, run again, or let kept tasks go.

Each is a wish on the job, a mark for the controller, and events; the controller does the rest.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import Connection, bindparam, select, update

from pai_backend.lifecycle.history import events_between
from pai_backend.lifecycle.restart import restarted
from pai_backend.model.errors import ReadOnlyJob
from pai_backend.model.ids import JobUid
from pai_backend.model.job import Desired, Job, StopCause, Task
from pai_backend.model.text import Text
from pai_backend.store import events, lease, lookup
from pai_backend.store.base import NewEvent
from pai_backend.store.cipher import Cipher
from pai_backend.store.rows import changing_values
from pai_backend.store.tables import deletions, jobs

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
        return write(conn, after, [asked, *events_between(job, after)], self.at)


@dataclass(frozen=True)
class ReleaseRequest:
    """Who releases which tasks of a job, by their names (``role-index``), and when. None: of all that are kept."""

    uid: JobUid
    names: Collection[str] | None
    by: str
    at: datetime
    cipher: Cipher

    def __call__(self, conn: Connection) -> tuple[Task, ...]:
        """Record it; returns the tasks that this releases. Those not kept, or released already, are left alone.

        Raises NoSuchJob, UnknownKey.
        """
        job = lookup.job(conn, self.uid, self.cipher)
        going = tuple(
            task
            for task in job.kept
            if task.uid not in job.released and (self.names is None or task.name in self.names)
        )
        if going:
            wanted = job.model_copy(update={"released": (*job.released, *(task.uid for task in going))})
            event = NewEvent("job.release-requested", {"by": self.by, "tasks": [task.name for task in going]})
            write(conn, wanted, [event], self.at)
        return going


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
    return write(conn, stopped, [event], at)
