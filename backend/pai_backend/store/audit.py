"""The audit of keys: written in the transaction of what it tells, never changed, read from the newest backwards."""

from __future__ import annotations

from sqlalchemy import Connection, bindparam, insert, select

from pai_backend.model.errors import Unauthorized
from pai_backend.model.ids import JobUid
from pai_backend.store.grants import MOST_LISTED, Act, KeyEvent
from pai_backend.store.rows import AnyRow
from pai_backend.store.tables import access_tokens
from pai_backend.store.tables import key_events as table

_INSERT = insert(table)
_LATEST = (
    select(table).where(table.c.position < bindparam("before_")).order_by(table.c.position.desc()).limit(MOST_LISTED)
)
_LATEST_OF = _LATEST.where(table.c.username == bindparam("username_"))
_TOKEN = select(access_tokens.c.digest).where(access_tokens.c.digest == bindparam("digest_"))
_END = 2**62  # after every position


def note(
    conn: Connection, type_: str, user: str, subject: str, act: Act, *, job: JobUid | None = None, detail: str = ""
) -> None:
    """Write one event: ``act`` was done to ``user``'s key, certificate or share that ``subject`` names."""
    conn.execute(
        _INSERT,
        {
            "at": act.at,
            "type": type_,
            "username": user,
            "by_user": act.by,
            "source": act.source,
            "subject": subject,
            "job": job,
            "detail": detail,
        },
    )


def require_token(conn: Connection, digest: str) -> None:
    """Raise Unauthorized for an application token that was revoked since its request was checked; empty: none was used.

    To be called in the transaction that writes what a token made: its revocation ends what is there then.
    """
    if digest and conn.execute(_TOKEN, {"digest_": digest}).one_or_none() is None:
        raise Unauthorized("The token is no longer valid.", hint="Sign in again.")


def by_token(digest: str) -> str:
    """The detail of an event that an application token caused; its digest tells nothing of the token."""
    return f"by the application token {digest[:16]}"


def latest(conn: Connection, user: str | None, before: int | None) -> list[KeyEvent]:
    """A user's events, or everybody's, the newest first; those with a smaller position than ``before``."""
    bounds: dict[str, object] = {"before_": _END if before is None else before}
    rows = conn.execute(_LATEST, bounds) if user is None else conn.execute(_LATEST_OF, {**bounds, "username_": user})
    return [_event(row) for row in rows]


def _event(row: AnyRow) -> KeyEvent:
    return KeyEvent(
        position=row.position,
        at=row.at,
        type=row.type,
        user=row.username,
        by=row.by_user,
        source=row.source,
        subject=row.subject,
        job=None if row.job is None else JobUid(row.job),
        detail=row.detail,
    )
