"""Registered SSH keys of users."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from functools import partial

from sqlalchemy import Connection, bindparam, delete, insert, select, update

from pai_backend.model.errors import Forbidden, InvalidParameters, NoSuchKey
from pai_backend.model.ids import JobUid
from pai_backend.model.text import Text
from pai_backend.store import audit
from pai_backend.store.base import UserKey
from pai_backend.store.grants import Act
from pai_backend.store.people_tables import user_keys
from pai_backend.store.repository import Repository
from pai_backend.store.rows import AnyRow

_KEYS = select(user_keys).order_by(user_keys.c.added_at, user_keys.c.fingerprint)
_KEYS_OF = _KEYS.where(user_keys.c.username == bindparam("username_"))
_OWNER_OF = select(user_keys.c.username).where(user_keys.c.fingerprint == bindparam("fingerprint_"))
_INSERT_KEY = insert(user_keys)
_DELETE_KEY = delete(user_keys).where(
    user_keys.c.fingerprint == bindparam("fingerprint_"), user_keys.c.username == bindparam("username_")
)
_MADE_BY = select(user_keys).where(user_keys.c.made_by == bindparam("made_by_"))
_ONE_KEY = select(user_keys).where(user_keys.c.fingerprint == bindparam("fingerprint_"))
_UPDATE_KEY = update(user_keys).where(user_keys.c.fingerprint == bindparam("fingerprint_"))


def add_key(conn: Connection, key: UserKey, act: Act) -> None:
    """Register, with a scope and an end if it has them. A key that the user has already gets these instead.

    Without any it stays as it is: who registers a key again, as a program may do at each start, lifts no limit.
    One that has expired is registered again. One that an application token registered is its user's own, and outlives
    the token, once its user registers it without one.

    Raises InvalidParameters when another user has the key, or when it is to replace one that the user has not, and
    Forbidden when an application token is to change what it has not registered, Unauthorized when it was revoked.
    """
    audit.require_token(conn, key.made_by)
    is_new = _require_free(conn, key)
    replaced = one(conn, key.replaces) if key.replaces else None
    if key.replaces and (replaced is None or replaced.user != key.user):
        raise InvalidParameters(
            Text("You have no key {replaces} to replace.", replaces=repr(key.replaces[:100])),
            hint=Text("`pai keys list` shows the keys you have."),
        )
    if replaced is not None:
        _require_own(key, replaced)
    if is_new:
        conn.execute(_INSERT_KEY, _values(key))
        audit.note(conn, "key.registered", key.user, key.fingerprint, act, job=key.job, detail=_terms(key))
        return
    before = one(conn, key.fingerprint)
    if before is not None and before.made_by and not key.made_by:
        conn.execute(_UPDATE_KEY.values(made_by="", virtual_cluster=""), {"fingerprint_": key.fingerprint})
        audit.note(conn, "key.changed", key.user, key.fingerprint, act, job=before.job, detail="adopted from a token")
    is_over = before is not None and before.expires_at is not None and before.expires_at <= act.at
    has_terms = any(_changing(key).values())
    if before is not None and (has_terms or is_over) and _changing(key) != _changing(before):
        _require_own(key, before)
        conn.execute(_UPDATE_KEY.values(**_changing(key)), {"fingerprint_": key.fingerprint})
        audit.note(conn, "key.changed", key.user, key.fingerprint, act, job=key.job, detail=_terms(key))


def _require_own(key: UserKey, kept: UserKey) -> None:
    """Raises Forbidden for an application token that would change a key which is not its own."""
    if key.made_by and kept.made_by != key.made_by:
        raise Forbidden(
            Text(
                "An application token cannot change the key {fingerprint}, which it has not registered.",
                fingerprint=kept.fingerprint,
            ),
            hint=Text("Sign in, or use the token of the configuration."),
        )


def end_of_token(conn: Connection, digest: str, act: Act) -> None:
    """Remove the keys that an application token registered."""
    for key in [_key(row) for row in conn.execute(_MADE_BY, {"made_by_": digest})]:
        remove_key(conn, key.user, key.fingerprint, act)


def _changing(key: UserKey) -> dict[str, object]:
    """What a user may change of a registered key."""
    return {"name": key.name, "expires_at": key.expires_at, "job": key.job, "replaces": key.replaces}


def _terms(key: UserKey) -> str:
    """What a key is registered for, in words for the audit."""
    end = "" if key.expires_at is None else f"until {key.expires_at:%Y-%m-%d %H:%M:%S} UTC"
    return ", ".join(part for part in (end, f"in place of {key.replaces}" if key.replaces else "") if part)


def _values(key: UserKey) -> dict[str, object]:
    return {
        "fingerprint": key.fingerprint,
        "username": key.user,
        "public_key": key.public_key,
        "comment": key.comment,
        "added_at": key.added_at,
        "last_used_at": key.last_used_at,
        "last_used_from": key.last_used_from,
        "made_by": key.made_by,
        "virtual_cluster": key.within,
        **_changing(key),
    }


def _owner(conn: Connection, fingerprint: str) -> str | None:
    found: str | None = conn.execute(_OWNER_OF, {"fingerprint_": fingerprint}).scalar_one_or_none()
    return found


def _require_free(conn: Connection, key: UserKey) -> bool:
    """Whether the key is not registered yet. Raises InvalidParameters when another user has it."""
    owner = _owner(conn, key.fingerprint)
    if owner not in (None, key.user):
        raise InvalidParameters(
            Text("The key {fingerprint} is registered by another user.", fingerprint=key.fingerprint),
            hint=Text("A key belongs to one user: make a new pair with `ssh-keygen -t ed25519`."),
        )
    return owner is None


def replace_keys(conn: Connection, user: str, wanted: Sequence[UserKey], act: Act) -> None:
    """Make these the user's keys, all or none; those that were there keep everything but their comment.

    Raises InvalidParameters when another user has one of them, Unauthorized.
    """
    for key in wanted:
        audit.require_token(conn, key.made_by)
        _require_free(conn, key)
    before = {key.fingerprint: key for key in keys(conn, user)}
    after = {key.fingerprint: key for key in wanted}
    for fingerprint in before:
        conn.execute(_DELETE_KEY, {"fingerprint_": fingerprint, "username_": user})
    for key in after.values():
        known = before.get(key.fingerprint)
        conn.execute(_INSERT_KEY, _values(key if known is None else replace(known, comment=key.comment)))
    for fingerprint in before.keys() - after.keys():
        audit.note(conn, "key.removed", user, fingerprint, act)
    for fingerprint in after.keys() - before.keys():
        audit.note(conn, "key.registered", user, fingerprint, act)


def keys(conn: Connection, user: str | None) -> list[UserKey]:
    """Keys of one user or of all, oldest first."""
    rows = conn.execute(_KEYS) if user is None else conn.execute(_KEYS_OF, {"username_": user})
    return [_key(row) for row in rows]


def one(conn: Connection, fingerprint: str) -> UserKey | None:
    """The key of that fingerprint, of any user."""
    row = conn.execute(_ONE_KEY, {"fingerprint_": fingerprint}).one_or_none()
    return None if row is None else _key(row)


def _key(row: AnyRow) -> UserKey:
    return UserKey(
        fingerprint=row.fingerprint,
        user=row.username,
        public_key=row.public_key,
        comment=row.comment,
        added_at=row.added_at,
        name=row.name,
        expires_at=row.expires_at,
        job=None if row.job is None else JobUid(row.job),
        replaces=row.replaces,
        last_used_at=row.last_used_at,
        last_used_from=row.last_used_from,
        made_by=row.made_by,
        within=row.virtual_cluster,
    )


def remove_key(conn: Connection, user: str, fingerprint: str, act: Act) -> None:
    """Raises NoSuchKey, also for a key of another user."""
    if _owner(conn, fingerprint) != user:
        raise NoSuchKey(
            Text("{user} has no key {fingerprint}.", user=user, fingerprint=repr(fingerprint[:100])),
            hint=Text("`GET /api/v2/keys` lists yours."),
        )
    conn.execute(_DELETE_KEY, {"fingerprint_": fingerprint, "username_": user})
    audit.note(conn, "key.removed", user, fingerprint, act)


def note_use(conn: Connection, fingerprint: str, at: datetime, source: str) -> None:
    """Remember the last use; the key that this one was registered in place of is removed with it."""
    key = one(conn, fingerprint)
    if key is None:
        return
    used = {"last_used_at": at, "last_used_from": source, "replaces": ""}
    conn.execute(_UPDATE_KEY.values(**used), {"fingerprint_": fingerprint})
    if key.replaces and _owner(conn, key.replaces) == key.user:
        conn.execute(_DELETE_KEY, {"fingerprint_": key.replaces, "username_": key.user})
        detail = f"{fingerprint}, which was registered in place of it, was used"
        audit.note(conn, "key.removed", key.user, key.replaces, Act(key.user, at, source), detail=detail)


class UserKeys(Repository):
    """Registered SSH public keys."""

    async def add(self, key: UserKey, act: Act) -> None:
        """Register; idempotent by fingerprint for the same user; InvalidParameters when another user has it."""
        await self._writer.run(partial(add_key, key=key, act=act))

    async def replace(self, user: str, wanted: Sequence[UserKey], act: Act) -> None:
        """Make these the user's keys, all or none. Raises InvalidParameters when another user has one of them."""
        await self._writer.run(partial(replace_keys, user=user, wanted=wanted, act=act))

    async def registered(self, user: str | None = None) -> list[UserKey]:
        """Registered keys."""
        return await self._database.read(partial(keys, user=user))

    async def remove(self, user: str, fingerprint: str, act: Act) -> None:
        """Raises NoSuchKey."""
        await self._writer.run(partial(remove_key, user=user, fingerprint=fingerprint, act=act))
