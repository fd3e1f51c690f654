"""Secrets that users keep under names, for their documents to take at submission. Values are sealed, never listed."""

from __future__ import annotations

import secrets
from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime
from functools import partial

from sqlalchemy import Connection, bindparam, delete, func, insert, select, update

from pai_backend.model.errors import InvalidParameters, NoSuchSecret
from pai_backend.model.text import Text
from pai_backend.model.user_secret import MOST
from pai_backend.store import audit
from pai_backend.store.cipher import Sealed
from pai_backend.store.grants import Act
from pai_backend.store.people_tables import user_secrets as table
from pai_backend.store.repository import Repository


@dataclass(frozen=True)
class KeptSecret:
    """A secret of a user, without its value."""

    name: str
    set_at: datetime
    used_at: datetime | None
    """When a submission took it last."""


_OF_USER = table.c.username == bindparam("user_")
_ONE = _OF_USER & (table.c.name == bindparam("name_"))
_NAMED = _OF_USER & table.c.name.in_(bindparam("names_", expanding=True))
_LIST = select(table.c.name, table.c.set_at, table.c.used_at).where(_OF_USER).order_by(table.c.name)
_VALUES = select(table.c.name, table.c.value).where(_NAMED)
_COUNT = select(func.count()).select_from(table).where(_OF_USER)
_UPDATE = update(table).where(_ONE)
_USED = update(table).where(_NAMED).values(used_at=bindparam("at_", type_=table.c.used_at.type))
_DELETE = delete(table).where(_ONE)
_DELETE_ALL = delete(table).where(_OF_USER)


def forget_user(conn: Connection, user: str) -> None:
    """Delete all secrets of a user."""
    conn.execute(_DELETE_ALL, {"user_": user})


class UserSecrets(Repository):
    """Secrets of users."""

    async def list(self, user: str) -> list[KeptSecret]:
        """What the user keeps, by name."""
        rows = await self._database.read(lambda conn: conn.execute(_LIST, {"user_": user}).all())
        return [KeptSecret(row.name, row.set_at, row.used_at) for row in rows]

    async def values(self, user: str, names: Collection[str]) -> dict[str, str]:
        """The values of those of these secrets that the user has. Raises Unavailable."""
        asked = {"user_": user, "names_": list(names)}
        rows = await self._database.read(lambda conn: conn.execute(_VALUES, asked).all())
        return {row.name: (await self._ring.open(row.value)).decode() for row in rows}

    async def set(self, user: str, name: str, value: str, act: Act) -> None:
        """Keep a value, instead of an earlier one of its name. Raises InvalidParameters when there are too many."""
        made = self._ring.cipher.sealed(value.encode())
        await self._writer.run(partial(_set, user=user, name=name, made=made, act=act), announce=False)

    async def remove(self, user: str, name: str, act: Act) -> None:
        """Keep it no longer; jobs that were submitted with it have it still. Raises NoSuchSecret."""
        await self._writer.run(partial(_remove, user=user, name=name, act=act), announce=False)

    async def used(self, user: str, names: Collection[str], at: datetime) -> None:
        """Note that a submission took these."""
        values = {"user_": user, "names_": list(names), "at_": at}
        await self._writer.run(lambda conn: conn.execute(_USED, values) and None, announce=False)


def _set(conn: Connection, user: str, name: str, made: Sealed, act: Act) -> None:
    new = {"value": made.data, "sealed_by": made.by, "set_at": act.at}
    key = {"user_": user, "name_": name}
    if not conn.execute(_UPDATE.values(**new), key).rowcount:
        if conn.execute(_COUNT, key).scalar_one() >= MOST:
            raise InvalidParameters(
                Text("You keep {most} secrets, which is the limit.", most=MOST), hint=Text("Remove those not needed.")
            )
        conn.execute(insert(table), {"id": secrets.token_hex(16), "username": user, "name": name, **new})
    audit.note(conn, "secret.set", user, name, act)


def _remove(conn: Connection, user: str, name: str, act: Act) -> None:
    if not conn.execute(_DELETE, {"user_": user, "name_": name}).rowcount:
        raise NoSuchSecret(
            Text("You have no secret {name}.", name=repr(name[:100])), hint=Text("`pai secret list` shows yours.")
        )
    audit.note(conn, "secret.removed", user, name, act)
