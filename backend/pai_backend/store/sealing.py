"""What is sealed in the database and with which keys; sealing all of it again with the newest one.

A value is opened and sealed outside of transactions. It is written back only if it is still sealed with the key it was
read with, so that nothing is done twice, even if another process does the same, and whatever was done stays done after
a crash.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from sqlalchemy import Column, Connection, Table, bindparam, func, select, update

from pai_backend.store import server_secrets
from pai_backend.store.cipher import Cipher, Sealed, UnknownKey
from pai_backend.store.database import Database
from pai_backend.store.people_tables import audit_chain, kept_documents, notifications, secrets, user_secrets
from pai_backend.store.rows import Values
from pai_backend.store.tables import documents, task_keys

MARK = "sealed"
"""Name of the secret that the first process stores, so that a database says from then on whose keys it needs."""

BATCH = 50
"""Rows that are sealed again in one transaction: documents of the largest size are 70 MiB then, and take 0.5 s."""


@dataclass(frozen=True)
class _Place:
    """A table with sealed columns; each of its rows is sealed with one key."""

    table: Table
    key: str
    columns: tuple[str, ...]

    @property
    def id(self) -> Column[str]:
        """The column that names a row."""
        column: Column[str] = self.table.c[self.key]
        return column


PLACES = (
    _Place(audit_chain, "name", ("seal",)),
    _Place(documents, "job", ("spec", "source", "secrets")),
    _Place(kept_documents, "id", ("source",)),
    _Place(notifications, "id", ("target",)),
    _Place(user_secrets, "id", ("value",)),
    _Place(task_keys, "owner", ("private_pem",)),
    _Place(secrets, "name", ("value",)),
)
"""Everything that is sealed. The mark is in the last of them."""


def used_keys(conn: Connection) -> frozenset[str]:
    """Identifiers of all keys that something is sealed with: one look into an index for each key and table."""
    found: set[str] = set()
    for place in PLACES:
        by = place.table.c.sealed_by
        following = select(func.min(by)).where(by > bindparam("after_"))
        last: str | None = ""
        while (last := conn.execute(following, {"after_": last}).scalar_one()) is not None:
            found.add(last)
    return frozenset(found)


def mark(conn: Connection, made: Sealed) -> None:
    """Say with which key this database is sealed, unless it has been said."""
    server_secrets.put_secret(conn, MARK, made)


async def reseal_all(database: Database, cipher: Cipher, report: Callable[[int], None]) -> list[str]:
    """Seal again with the newest key what is sealed with another; see ``Store.reseal``."""
    unopened: list[str] = []
    for place in PLACES:
        for old in sorted(await database.read(used_keys) - {cipher.newest}):
            last = ""
            while rows := await database.read(partial(_batch, place=place, old=old, after=last)):
                last = rows[-1][place.key]
                fresh, lost = await asyncio.to_thread(_resealed, cipher, place, rows)
                unopened += [f"{place.table.name} {name}" for name in lost]
                if fresh:
                    await database.write(partial(_write, place=place, old=old, rows=fresh), announce=False)
                report(len(fresh))
    return unopened


def _batch(conn: Connection, place: _Place, old: str, after: str) -> list[Values]:
    """The next rows that are sealed with an old key, in the order of their names."""
    wanted = (
        select(place.id, *(place.table.c[name] for name in place.columns))
        .where(place.table.c.sealed_by == old, place.id > after)
        .order_by(place.id)
        .limit(BATCH)
    )
    return [dict(row) for row in conn.execute(wanted).mappings()]


def _resealed(cipher: Cipher, place: _Place, rows: list[Values]) -> tuple[list[Values], list[str]]:
    """The rows under the newest key, and the names of those that no key opens."""
    fresh: list[Values] = []
    lost: list[str] = []
    for row in rows:
        try:
            sealed = {name: None if row[name] is None else cipher.reseal(row[name]) for name in place.columns}
        except UnknownKey:
            lost.append(row[place.key])
            continue
        fresh.append({**sealed, "sealed_by": cipher.newest, "id_": row[place.key]})
    return fresh, lost


def _write(conn: Connection, place: _Place, old: str, rows: list[Values]) -> None:
    statement = update(place.table).where(place.id == bindparam("id_"), place.table.c.sealed_by == bindparam("old_"))
    conn.execute(statement, [{**row, "old_": old} for row in rows])
