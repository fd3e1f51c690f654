"""Deleting jobs, as the other rooms see it.

The rows of a job go in one transaction, in which a mark is left for what its engine still keeps. The controller has
the engine erase that, then closes the mark. So a crash at any instant leaves the job as it was, or deleted with a mark.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Final

from pai_backend.model.ids import JobUid

TOLD: Final = timedelta(days=7)
"""How long its event ``job.deleted``, the last of a job, stays for followers of all jobs from an earlier position."""
FRESH: Final = timedelta(hours=1)
"""A job that ended more recently is not deleted to make room: its owner is to see how it ended."""


class DeletionCause(StrEnum):
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
