"""Access tokens by their digests: a reader of the database cannot sign in with what is in it."""

from __future__ import annotations

from datetime import datetime
from functools import partial

from sqlalchemy import ColumnElement, Connection, bindparam, delete, insert, or_, select, update

from pai_backend.model.errors import Forbidden, NoSuchToken
from pai_backend.model.scope import Scope
from pai_backend.model.text import Text
from pai_backend.store import certificates, keys, notifications, sharing, task_keys
from pai_backend.store.base import AccessToken
from pai_backend.store.grants import Act
from pai_backend.store.people_tables import access_tokens
from pai_backend.store.repository import Repository
from pai_backend.store.rows import AnyRow

SHORTEST_ID = 12
"""Digits of a digest by which a token may be named: 48 bits, more than one user's tokens will ever share."""

MOST = 100
"""Sessions that one user may have, and application tokens: more than anybody signs in from."""

_NOW = bindparam("now_", type_=access_tokens.c.expires_at.type)
_LIVES: ColumnElement[bool] = or_(access_tokens.c.expires_at.is_(None), access_tokens.c.expires_at > _NOW)
_ONE = select(access_tokens).where(access_tokens.c.digest == bindparam("digest_"), _LIVES)
_OF_USER = (
    select(access_tokens)
    .where(access_tokens.c.username == bindparam("username_"), _LIVES)
    .order_by(access_tokens.c.created_at, access_tokens.c.digest)
)
_DIGESTS = select(access_tokens.c.digest).where(access_tokens.c.username == bindparam("username_"))
_INSERT = insert(access_tokens)
_DELETE = delete(access_tokens).where(access_tokens.c.digest == bindparam("digest_"))
_USED = (
    update(access_tokens)
    .where(access_tokens.c.digest == bindparam("digest_"))
    .values(last_used_at=bindparam("at_", type_=access_tokens.c.last_used_at.type))
)
_PROLONG = (
    update(access_tokens)
    .where(access_tokens.c.digest == bindparam("digest_"), access_tokens.c.username == bindparam("username_"))
    .values(expires_at=bindparam("until_", type_=access_tokens.c.expires_at.type))
)
_FORGET = delete(access_tokens).where(access_tokens.c.expires_at <= _NOW)


def add_token(conn: Connection, token: AccessToken) -> None:
    """Keep it, and forget those whose time is over. Raises Forbidden for one application token too many."""
    kept = tokens_of(conn, token.user, token.created_at)
    alike = [one for one in kept if one.application is token.application]
    if token.application and len(alike) >= MOST:
        raise Forbidden(
            Text("{user} has {most} application tokens.", user=token.user, most=MOST),
            hint=Text("Revoke those that are not in use."),
        )
    for one in alike[: max(0, len(alike) - MOST + 1)]:
        conn.execute(_DELETE, {"digest_": one.digest})
    conn.execute(_FORGET, {"now_": token.created_at})
    conn.execute(
        _INSERT,
        {
            "digest": token.digest,
            "username": token.user,
            "application": token.application,
            "created_at": token.created_at,
            "expires_at": token.expires_at,
            "name": token.name,
            "scopes": " ".join(sorted(token.scopes)),
            "virtual_cluster": token.virtual_cluster,
        },
    )


def put_token(conn: Connection, token: AccessToken) -> None:
    """Give the user's token of that digest its new end, or keep it as a new one."""
    given = {"digest_": token.digest, "username_": token.user, "until_": token.expires_at}
    if conn.execute(_PROLONG, given).rowcount == 0:
        conn.execute(_DELETE, {"digest_": token.digest})  # of another user: a name that has changed
        add_token(conn, token)


def note_use(conn: Connection, digest: str, at: datetime) -> None:
    """Write down the last use of a token."""
    conn.execute(_USED, {"digest_": digest, "at_": at})


def token(conn: Connection, digest: str, now: datetime) -> AccessToken | None:
    """The token of this digest, unless its time is over."""
    row = conn.execute(_ONE, {"digest_": digest, "now_": now}).one_or_none()
    return _token(row) if row is not None else None


def tokens_of(conn: Connection, user: str, now: datetime) -> list[AccessToken]:
    """A user's tokens whose time is not over, oldest first."""
    return [_token(row) for row in conn.execute(_OF_USER, {"username_": user, "now_": now})]


def remove_token(conn: Connection, user: str, digest: str, act: Act) -> None:
    """Forget the user's token of that digest, or of that beginning of one, and end what it made. Raises NoSuchToken."""
    mine = conn.execute(_DIGESTS, {"username_": user}).scalars()
    found = [each for each in mine if len(digest) >= SHORTEST_ID and each.startswith(digest)]
    if len(found) != 1:
        raise NoSuchToken(Text("You have no such token."), hint=Text("`GET /api/v2/tokens` lists yours."))
    conn.execute(_DELETE, {"digest_": found[0]})
    for kind in (keys, certificates, sharing, task_keys, notifications):
        kind.end_of_token(conn, found[0], act)


def _token(row: AnyRow) -> AccessToken:
    return AccessToken(
        row.digest,
        row.username,
        row.application,
        row.created_at,
        row.expires_at,
        row.name,
        frozenset(map(Scope, row.scopes.split())),
        row.last_used_at,
        row.virtual_cluster,
    )


class Tokens(Repository):
    """Access tokens, by their digests."""

    async def add(self, token: AccessToken) -> None:
        """Keep a token's digest; those whose time was over at its making are forgotten on the way.

        A user has a bounded number: the oldest session makes room for a new one. Raises Forbidden for one
        application token too many.
        """
        await self._writer.run(partial(add_token, token=token), announce=False)

    async def put(self, token: AccessToken) -> None:
        """As :meth:`add`; of a token that is kept already, only its end is new."""
        await self._writer.run(partial(put_token, token=token), announce=False)

    async def get(self, digest: str, now: datetime) -> AccessToken | None:
        """The token of this digest, unless its time is over."""
        return await self._database.read(partial(token, digest=digest, now=now))

    async def of_user(self, user: str, now: datetime) -> list[AccessToken]:
        """A user's tokens whose time is not over, oldest first."""
        return await self._database.read(partial(tokens_of, user=user, now=now))

    async def note_use(self, digest: str, at: datetime) -> None:
        """Write down the last use of a token; to be called once a minute at most."""
        await self._writer.run(partial(note_use, digest=digest, at=at), announce=False)

    async def remove(self, user: str, digest: str, act: Act) -> None:
        """Forget a token of the user, by its digest or the digest's beginning, and end what it made.

        Those are keys, certificates and shares that an application token had made, if its user has not made them
        again since. Raises NoSuchToken.
        """
        await self._writer.run(partial(remove_token, user=user, digest=digest, act=act))
