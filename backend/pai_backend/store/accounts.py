"""Which users there are and who of them administers: those of the api's configuration, as it was at its last start,
and those that administrators have added. The account of a name in both is as the configuration says.

Processes other than the api know no configuration of users; a gateway asks here whether the user of a key still is one.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from sqlalchemy import BindParameter, Connection, bindparam, delete, func, insert, select, union

from pai_backend.store.people_tables import accounts as table
from pai_backend.store.people_tables import users
from pai_backend.store.sharing import locked_out

_ALL = select(table.c.username, table.c.admin)
_USERS: BindParameter[str] = bindparam("users_", expanding=True)
_CONFIGURED = select(table.c.username).where(table.c.username.in_(_USERS))
_KNOWN = union(_CONFIGURED, select(users.c.username).where(users.c.username.in_(_USERS)))
_ADMINS = union(
    _CONFIGURED.where(table.c.admin),
    select(users.c.username).where(
        users.c.username.in_(_USERS), users.c.admin, users.c.username.not_in(select(table.c.username))
    ),
)
_COUNT = select(func.count()).select_from(table)


_ALL_ADMINS = union(
    select(table.c.username).where(table.c.admin),
    select(users.c.username).where(users.c.admin, users.c.username.not_in(select(table.c.username))),
)


def keep(conn: Connection, accounts: Mapping[str, bool]) -> None:
    """Make these the accounts, each with whether it administers."""
    if {row.username: row.admin for row in conn.execute(_ALL)} == dict(accounts):
        return
    conn.execute(delete(table))
    conn.execute(insert(table), [{"username": name, "admin": admin} for name, admin in sorted(accounts.items())])


def shut_out(conn: Connection, users: Collection[str]) -> Mapping[str, bool]:
    """Those of the users who may enter nothing, each with whether they are locked out; the others are gone.

    Before an api has told its accounts for the first time no account is gone.
    """
    locked = locked_out(conn, users)
    gone: set[str] = set()
    if conn.execute(_COUNT).scalar_one():
        gone = set(users) - set(conn.execute(_KNOWN, {"users_": list(users)}).scalars())
    return {user: user in locked for user in locked | gone}


def all_admins(conn: Connection) -> frozenset[str]:
    """All users who administer."""
    return frozenset(conn.execute(_ALL_ADMINS).scalars())


def admins(conn: Connection, users: Collection[str]) -> frozenset[str]:
    """Those of the users who administer."""
    return frozenset(conn.execute(_ADMINS, {"users_": list(users)}).scalars())
