"""Deleting jobs, as the other rooms see it.

The rows of a job go in one transaction, in which a mark is left for what its engine still keeps. The controller has
the engine erase that, then closes the mark. So a crash at any instant leaves the job as it was, or deleted with a mark.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Final, Protocol

from pai_backend.model.ids import JobUid

TOLD: Final = timedelta(days=7)
"""How long its event ``job.deleted``, the last of a job, stays for followers of all jobs from an earlier position."""
FRESH: Final = timedelta(hours=1)
"""A job that ended more recently is not deleted to make room: its owner is to see how it ended."""


class Cause(StrEnum):
    """Why a job is deleted."""

    USER = "user"
    RETENTION = "retention"


@dataclass(frozen=True)
class Retention:
    """How many finished jobs are kept. Zero: no limit."""

    age: timedelta = timedelta()
    """Since the end of a job."""
    number: int = 0
    bytes: int = 0
    """Of the database; only where it tells how much of it is in use, which PostgreSQL does not."""


@dataclass(frozen=True)
class Deletion:
    """A job to be deleted. ``gone``: its rows are; what its engine keeps of it is not."""

    job: JobUid
    asked_at: datetime
    gone: bool


class DeletionStore(Protocol):
    """A part of :class:`~pai_backend.store.base.Store`."""

    async def request(self, uid: JobUid, by: str, at: datetime) -> bool:
        """Mark a finished job, and delete its rows where no task of it has to be forgotten; whether they are gone.

        Idempotent while the rows are there. Raises NoSuchJob, NotFinished.
        """
        ...

    async def remove(self, uids: Collection[JobUid], cause: Cause, at: datetime, epoch: int) -> list[JobUid]:
        """Delete the rows of those of these jobs that are finished and have no task to be forgotten; returns which.

        In one transaction. One that is marked already keeps who asked for it. Raises Fenced.
        """
        ...

    async def pending(self, after: Deletion | None, limit: int) -> list[Deletion]:
        """Open marks that come after that one, the longest open first."""
        ...

    async def close(self, uid: JobUid, at: datetime, epoch: int) -> None:
        """Nothing is left of a job whose rows are gone. Idempotent. Raises Fenced."""
        ...

    async def expired(self, keep: Retention, now: datetime, limit: int) -> list[JobUid]:
        """Finished jobs that are not to be kept, those that ended first."""
        ...

    async def sweep(self, now: datetime, epoch: int) -> None:
        """Forget closed marks older than :data:`TOLD`, with the events that tell of them. Raises Fenced."""
        ...
