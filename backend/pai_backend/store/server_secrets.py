"""The server's own secrets, sealed, and names that only one may claim."""

from __future__ import annotations

from datetime import datetime
from functools import partial

from sqlalchemy import Connection, bindparam, delete, insert, select

from pai_backend.store.cipher import Sealed
from pai_backend.store.people_tables import claims, secrets
from pai_backend.store.repository import Repository

_SECRET = select(secrets.c.value).where(secrets.c.name == bindparam("name_"))
_SECRET_NAMES = select(secrets.c.name).where(secrets.c.name.between(bindparam("first_"), bindparam("last_")))
_INSERT_SECRET = insert(secrets)
_CLAIM = select(claims.c.name).where(claims.c.name == bindparam("name_"))
_INSERT_CLAIM = insert(claims)
_FORGET_CLAIMS = delete(claims).where(claims.c.expires_at < bindparam("now_", type_=claims.c.expires_at.type))


def secret(conn: Connection, name: str) -> bytes | None:
    """A server secret, if made already, sealed."""
    kept = conn.execute(_SECRET, {"name_": name}).scalar_one_or_none()
    return None if kept is None else bytes(kept)


def secret_names(conn: Connection, prefix: str) -> list[str]:
    """Names of server secrets that begin so."""
    return list(conn.execute(_SECRET_NAMES, {"first_": prefix, "last_": f"{prefix}~"}).scalars())


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


class Secrets(Repository):
    """The server's own secrets, and names that only one may claim."""

    async def kept(self, name: str) -> str | None:
        """A named server secret; None when there is none."""
        kept = await self._database.read(partial(secret, name=name))
        return None if kept is None else await self._text(kept)

    async def get(self, name: str, make: str) -> str:
        """A named server secret (gateway host key, signing key): the kept one, or ``make`` stored atomically."""
        kept = await self._database.read(partial(secret, name=name))
        if kept is None:
            made = self._ring.cipher.sealed(make.encode())
            kept = await self._writer.run(partial(put_secret, name=name, made=made), announce=False)
        return await self._text(kept)

    async def claim(self, name: str, until: datetime, now: datetime) -> bool:
        """Whether the caller is the first to claim this name; forgotten after ``until``. One wins of any number."""
        return await self._writer.run(partial(claim, name=name, until=until, now=now), announce=False)
