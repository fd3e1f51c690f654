"""Keys of submissions: one whose answer was lost is sent again with its key, and gets the job that it made.

Source: the header ``Idempotency-Key`` (draft-ietf-httpapi-idempotency-key-header).
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from datetime import timedelta

from sqlalchemy import Connection, bindparam, delete, insert, select

from pai_backend.model.errors import InvalidParameters
from pai_backend.model.ids import JobUid
from pai_backend.model.job import Job
from pai_backend.model.text import Text
from pai_backend.store.tables import jobs, submission_keys

LIFE = timedelta(days=1)
"""How long a key is remembered; clients repeat within minutes."""

_FIND = select(submission_keys.c.digest, submission_keys.c.job, jobs.c.uid).outerjoin(
    jobs, jobs.c.uid == submission_keys.c.job
)
_OF_KEY = _FIND.where(submission_keys.c.username == bindparam("user_"), submission_keys.c.key == bindparam("key_"))
_DELETE = delete(submission_keys).where(
    submission_keys.c.username == bindparam("user_"), submission_keys.c.key == bindparam("key_")
)
_DELETE_OLD = delete(submission_keys).where(submission_keys.c.at < bindparam("before_"))


@dataclass(frozen=True)
class SubmissionKey:
    """A key with a digest of all that was submitted under it."""

    key: str
    digest: str

    @classmethod
    def of(cls, key: str, *parts: bytes) -> SubmissionKey:
        """For a submission that is made of these parts."""
        digest = hashlib.sha256()
        for part in parts:
            digest.update(len(part).to_bytes(8, "big") + part)
        return cls(key, digest.hexdigest())


def made(conn: Connection, user: str, key: SubmissionKey) -> JobUid | None:
    """The job that an earlier submission with the key made; None for the first one, and when that job was deleted.

    Raises InvalidParameters when something else was submitted under it.
    """
    row = conn.execute(_OF_KEY, {"user_": user, "key_": key.key}).one_or_none()
    if row is None:
        return None
    if row.digest != key.digest:
        raise InvalidParameters(
            Text("Another document was submitted under this Idempotency-Key."),
            hint=Text("Make a new key for each submission."),
        )
    return None if row.uid is None else JobUid(row.uid)


def keep(conn: Connection, job: Job, key: SubmissionKey) -> None:
    """Remember what was made, and forget what is old."""
    conn.execute(_DELETE_OLD, {"before_": job.submitted_at - LIFE})
    conn.execute(_DELETE, {"user_": job.user, "key_": key.key})
    row = {"username": job.user, "key": key.key, "digest": key.digest, "job": job.uid, "at": job.submitted_at}
    conn.execute(insert(submission_keys), row)
