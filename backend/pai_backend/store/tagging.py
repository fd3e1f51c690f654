"""Tags of jobs: words that users find their jobs by.

They are no part of a job's life: giving one changes no version and disturbs no controller. The table is for
finding, the text in the job's row for showing; both are written in one transaction.
"""

from __future__ import annotations

from sqlalchemy import Connection, bindparam, delete, insert, select, update

from pai_backend.model.errors import InvalidParameters, NoSuchTag
from pai_backend.model.ids import JobUid
from pai_backend.store.lookup import require
from pai_backend.store.rows import tags_text
from pai_backend.store.tables import jobs, tags

MOST = 64
"""Tags that one job may have: more than anybody reads, few enough to be shown in every list."""

_OF_JOB = select(tags.c.tag).where(tags.c.job == bindparam("uid_"))
_INSERT = insert(tags)
_DELETE = delete(tags).where(tags.c.job == bindparam("uid_"), tags.c.tag == bindparam("tag_"))
_SHOW = update(jobs).where(jobs.c.uid == bindparam("uid_")).values(tags=bindparam("text_"))


def tag(conn: Connection, uid: JobUid, tag: str) -> None:
    """Give the job a tag unless it has it. Raises NoSuchJob, InvalidParameters when it has too many."""
    require(conn, uid)
    kept = set(conn.execute(_OF_JOB, {"uid_": uid}).scalars())
    if tag in kept:
        return
    if len(kept) >= MOST:
        raise InvalidParameters(f"The job has {MOST} tags already.", hint="Take one away first.")
    conn.execute(_INSERT, {"job": uid, "tag": tag})
    conn.execute(_SHOW, {"uid_": uid, "text_": tags_text({*kept, tag})})


def untag(conn: Connection, uid: JobUid, tag: str) -> None:
    """Take a tag away. Raises NoSuchJob, NoSuchTag."""
    require(conn, uid)
    kept = set(conn.execute(_OF_JOB, {"uid_": uid}).scalars())
    if tag not in kept:
        has = f"It has: {', '.join(sorted(kept))}." if kept else "It has none."
        raise NoSuchTag(f"The job has no tag {tag[:64]!r}.", hint=has)
    conn.execute(_DELETE, {"uid_": uid, "tag_": tag})
    conn.execute(_SHOW, {"uid_": uid, "text_": tags_text(kept - {tag})})
