"""Tags of jobs: words that users find their jobs by.

They are no part of a job's life: giving one changes no version and disturbs no controller. They stand in the job's
row as one JSON text, which the index of the job list holds too.
"""

from __future__ import annotations

from sqlalchemy import Connection, bindparam, select, update

from pai_backend.model.errors import InvalidParameters, NoSuchTag
from pai_backend.model.ids import JobUid
from pai_backend.model.text import Text
from pai_backend.store.lookup import no_such_job
from pai_backend.store.rows import read_tags, tags_text
from pai_backend.store.tables import jobs

MOST = 64
"""Tags that one job may have: more than anybody reads, few enough to be shown in every list."""

MOST_BYTES = 1000
"""Of all tags of a job together: they stand in an index, and a row of PostgreSQL's has room for 2,704 bytes."""

_OF_JOB = select(jobs.c.tags).where(jobs.c.uid == bindparam("uid_"))
_WRITE = update(jobs).where(jobs.c.uid == bindparam("uid_")).values(tags=bindparam("text_"))


def tag(conn: Connection, uid: JobUid, tag: str) -> None:
    """Give the job a tag unless it has it. Raises NoSuchJob, InvalidParameters for too many or too long ones."""
    kept = _kept(conn, uid)
    if tag in kept:
        return
    if len(kept) >= MOST:
        raise InvalidParameters(Text("The job has {most} tags already.", most=MOST), hint=Text("Remove one first."))
    text = tags_text({*kept, tag})
    if len(text.encode()) > MOST_BYTES:
        raise InvalidParameters(
            Text("The job's tags would take more than {most_bytes} bytes together.", most_bytes=MOST_BYTES),
            hint=Text("Remove one first, or choose a shorter one."),
        )
    conn.execute(_WRITE, {"uid_": uid, "text_": text})


def untag(conn: Connection, uid: JobUid, tag: str) -> None:
    """Take a tag away. Raises NoSuchJob, NoSuchTag."""
    kept = _kept(conn, uid)
    if tag not in kept:
        has = Text("It has: {kept}.", kept=", ".join(sorted(kept))) if kept else Text("It has none.")
        raise NoSuchTag(Text("The job has no tag {tag}.", tag=repr(tag[:64])), hint=has)
    conn.execute(_WRITE, {"uid_": uid, "text_": tags_text(kept - {tag})})


def _kept(conn: Connection, uid: JobUid) -> set[str]:
    """The job's tags, under the write lock. Raises NoSuchJob."""
    text = conn.execute(_OF_JOB, {"uid_": uid}).scalar_one_or_none()
    if text is None:
        raise no_such_job(uid)
    return set(read_tags(text))
