"""Registered SSH keys of users, host keys of tasks, the server's own secrets, and names that only one may claim."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime

from sqlalchemy import Connection, bindparam, delete, insert, select

from pai_backend.model.errors import InvalidParameters, NoSuchKey
from pai_backend.store.base import UserKey
from pai_backend.store.cipher import Sealed
from pai_backend.store.tables import claims, secrets, task_keys, user_keys

_KEYS = select(user_keys).order_by(user_keys.c.added_at, user_keys.c.fingerprint)
_KEYS_OF = _KEYS.where(user_keys.c.username == bindparam("username_"))
_OWNER_OF = select(user_keys.c.username).where(user_keys.c.fingerprint == bindparam("fingerprint_"))
_INSERT_KEY = insert(user_keys)
_DELETE_KEY = delete(user_keys).where(
    user_keys.c.fingerprint == bindparam("fingerprint_"), user_keys.c.username == bindparam("username_")
)
_TASK_KEY = select(task_keys.c.private_pem).where(task_keys.c.owner == bindparam("owner_"))
_INSERT_TASK_KEY = insert(task_keys)
_SECRET = select(secrets.c.value).where(secrets.c.name == bindparam("name_"))
_INSERT_SECRET = insert(secrets)
_CLAIM = select(claims.c.name).where(claims.c.name == bindparam("name_"))
_INSERT_CLAIM = insert(claims)
_FORGET_CLAIMS = delete(claims).where(claims.c.expires_at < bindparam("now_", type_=claims.c.expires_at.type))


def add_key(conn: Connection, key: UserKey) -> None:
    """Register. Raises InvalidParameters when another user has the key."""
    if _require_free(conn, key):
        conn.execute(_INSERT_KEY, _values(key))


def _values(key: UserKey) -> dict[str, object]:
    return {
        "fingerprint": key.fingerprint,
        "username": key.user,
        "public_key": key.public_key,
        "comment": key.comment,
        "added_at": key.added_at,
    }


def _require_free(conn: Connection, key: UserKey) -> bool:
    """Whether nobody has the key yet. Raises InvalidParameters when another user has it."""
    owner = conn.execute(_OWNER_OF, {"fingerprint_": key.fingerprint}).scalar_one_or_none()
    if owner not in (None, key.user):
        raise InvalidParameters(
            f"The key {key.fingerprint} is registered by another user.",
            hint="A key stands for one person: make a new pair with `ssh-keygen -t ed25519`.",
        )
    return owner is None


def replace_keys(conn: Connection, user: str, wanted: Sequence[UserKey]) -> None:
    """Make these the user's keys, all or none; those that were there keep their time of registration.

    Raises InvalidParameters when another user has one of them.
    """
    for key in wanted:
        _require_free(conn, key)
    before = {key.fingerprint: key for key in keys(conn, user)}
    for fingerprint in before:
        conn.execute(_DELETE_KEY, {"fingerprint_": fingerprint, "username_": user})
    for key in {key.fingerprint: key for key in wanted}.values():
        known = before.get(key.fingerprint)
        conn.execute(_INSERT_KEY, _values(replace(key, added_at=known.added_at) if known is not None else key))


def keys(conn: Connection, user: str | None) -> list[UserKey]:
    """Keys of one user or of all, oldest first."""
    rows = conn.execute(_KEYS) if user is None else conn.execute(_KEYS_OF, {"username_": user})
    return [UserKey(row.fingerprint, row.username, row.public_key, row.comment, row.added_at) for row in rows]


def remove_key(conn: Connection, user: str, fingerprint: str) -> None:
    """Raises NoSuchKey, also for a key of somebody else."""
    owner = conn.execute(_OWNER_OF, {"fingerprint_": fingerprint}).scalar_one_or_none()
    if owner != user:
        raise NoSuchKey(f"{user} has no key {fingerprint[:100]!r}.", hint="`GET /api/v2/keys` lists yours.")
    conn.execute(_DELETE_KEY, {"fingerprint_": fingerprint, "username_": user})


def task_key(conn: Connection, owner: str) -> bytes | None:
    """The host key of a task slot, sealed."""
    kept = conn.execute(_TASK_KEY, {"owner_": owner}).scalar_one_or_none()
    return None if kept is None else bytes(kept)


def put_task_key(conn: Connection, owner: str, made: Sealed, public: str) -> bytes:
    """Keep a host key unless the slot has one; the one that is kept, sealed."""
    kept = task_key(conn, owner)
    if kept is not None:
        return kept
    values = {"owner": owner, "private_pem": made.data, "public": public, "sealed_by": made.by}
    conn.execute(_INSERT_TASK_KEY, values)
    return made.data


def secret(conn: Connection, name: str) -> bytes | None:
    """A server secret, if made already, sealed."""
    kept = conn.execute(_SECRET, {"name_": name}).scalar_one_or_none()
    return None if kept is None else bytes(kept)


def put_secret(conn: Connection, name: str, made: Sealed) -> bytes:
    """Keep a secret unless there is one of that name; the one that is kept, sealed."""
    kept = secret(conn, name)
    if kept is not None:
        return kept
    conn.execute(_INSERT_SECRET, {"name": name, "value": made.data, "sealed_by": made.by})
    return made.data


def claim(conn: Connection, name: str, until: datetime, now: datetime) -> bool:
    """Whether the name was free; it is taken now. Names whose time is over are forgotten on the way."""
    conn.execute(_FORGET_CLAIMS, {"now_": now})
    if conn.execute(_CLAIM, {"name_": name}).one_or_none() is not None:
        return False
    conn.execute(_INSERT_CLAIM, {"name": name, "expires_at": until})
    return True
