"""Lines of a job's event log that are no part of its life: who came and went.

They change no version and disturb no controller: a decision that is written at the same time takes the next number.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from sqlalchemy import Connection, bindparam, select, update

from pai_backend.model.ids import JobUid
from pai_backend.store import events
from pai_backend.store.base import NewEvent
from pai_backend.store.lookup import no_such_job
from pai_backend.store.tables import jobs

_HEAD = select(jobs.c.username, jobs.c.last_seq).where(jobs.c.uid == bindparam("uid_"))
_COUNT = update(jobs).where(jobs.c.uid == bindparam("uid_")).values(last_seq=bindparam("last_seq_"))


def note(conn: Connection, uid: JobUid, new: Sequence[NewEvent], at: datetime) -> None:
    """Append the events, under the write lock. Raises NoSuchJob."""
    head = conn.execute(_HEAD, {"uid_": uid}).one_or_none()
    if head is None:
        raise no_such_job(uid)
    conn.execute(_COUNT, {"uid_": uid, "last_seq_": head.last_seq + len(new)})
    events.append(conn, events.rows_of(uid, head.username, head.last_seq, new, at))
