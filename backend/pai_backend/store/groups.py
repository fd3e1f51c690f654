"""Groups of users, and grants of virtual clusters to users and groups; every change with its event in the audit."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection
from functools import partial
from typing import Literal

from sqlalchemy import BindParameter, Connection, bindparam, delete, func, insert, select, update

from pai_backend.model.account import ADMINS, EVERYONE, Account, Directory, Group, VcGrants
from pai_backend.model.errors import GroupExists, InvalidParameters, NoSuchGroup
from pai_backend.model.text import Text
from pai_backend.store import audit, budgets, sharing
from pai_backend.store.grants import Act, GroupUpdate
from pai_backend.store.people_tables import group_members, users, vc_grants
from pai_backend.store.people_tables import groups as table
from pai_backend.store.repository import Repository
from pai_backend.store.rows import AnyRow

Kind = Literal["user", "group"]

_USERS = select(users).order_by(users.c.username)
_GROUPS = select(table).order_by(table.c.name)
_MEMBERS = select(group_members).order_by(group_members.c.groupname, group_members.c.username)
_GRANTS = select(vc_grants)
_NAME: BindParameter[str] = bindparam("name_")
_TAKEN = select(table.c.name).where(func.lower(table.c.name) == func.lower(_NAME))
_SET = update(table).where(table.c.name == _NAME)
_FORGET = delete(table).where(table.c.name == _NAME)
_FORGET_MEMBERS = delete(group_members).where(group_members.c.groupname == _NAME)
_FORGET_MEMBERSHIPS = delete(group_members).where(group_members.c.username == _NAME)
_FORGET_GRANTS = delete(vc_grants).where(vc_grants.c.kind == bindparam("kind_"), vc_grants.c.subject == _NAME)


def directory(conn: Connection) -> Directory:
    """Users, groups and grants as they are."""
    members: defaultdict[str, list[str]] = defaultdict(list)
    for row in conn.execute(_MEMBERS):
        members[row.groupname].append(row.username)
    granted: dict[str, defaultdict[str, VcGrants]] = {"user": defaultdict(VcGrants), "group": defaultdict(VcGrants)}
    for row in conn.execute(_GRANTS):
        before, one = granted[row.kind][row.subject], frozenset((row.virtual_cluster,))
        more = VcGrants(before.use, before.manages | one) if row.manages else VcGrants(before.use | one, before.manages)
        granted[row.kind][row.subject] = more
    groups = {
        row.name: Group(
            row.name, row.description, row.external_name, tuple(members[row.name]), granted["group"][row.name]
        )
        for row in conn.execute(_GROUPS)
    }
    return Directory(tuple(account(row) for row in conn.execute(_USERS)), groups, dict(granted["user"]))


def account(row: AnyRow) -> Account:
    """A user as their row has it, without what groups and grants add."""
    must_change = row.must_change_password
    return Account(row.username, row.admin, row.email, row.password_hash, must_change_password=must_change)


def add(conn: Connection, group: Group, act: Act) -> None:
    """Add a group. Raises GroupExists, also for a name that differs in case alone."""
    if group.name.lower() in (EVERYONE, ADMINS) or conn.execute(_TAKEN, {"name_": group.name}).first() is not None:
        raise GroupExists(
            Text("A group {group} exists, in this or in another case.", group=group.name),
            hint=Text("`pai group set` changes a group."),
        )
    conn.execute(insert(table), _values(group))
    _put_members(conn, group.name, group.members)
    put_grants(conn, "group", group.name, group.grants or VcGrants())
    audit.note(conn, "group.added", act.by, group.name, act, detail=_said(group))


def change(conn: Connection, name: str, to: GroupUpdate, act: Act) -> None:
    """Change what is given of a group. Raises NoSuchGroup, and InvalidParameters for all but grants of ``EVERYONE``."""
    known = directory(conn)
    if name == EVERYONE and (to.members, to.description, to.external_name) != (None, None, None):
        raise InvalidParameters(
            Text("Of the group {everyone} only the grants can be changed: it has every user.", everyone=EVERYONE),
            hint=Text("Use a group of another name."),
        )
    if name == EVERYONE and name not in known.groups and to.grants is not None:
        conn.execute(insert(table), _values(known.everyone))
    kept = known.everyone if name == EVERYONE else known.groups.get(name)
    if kept is None:
        raise no_such_group(name)
    changed = Group(
        name,
        kept.description if to.description is None else to.description,
        kept.external_name if to.external_name is None else to.external_name,
        kept.members if to.members is None else tuple(sorted(to.members)),
        kept.grants if to.grants is None else to.grants,
    )
    conn.execute(_SET.values(**_values(changed)), {"name_": name})
    if to.members is not None:
        conn.execute(_FORGET_MEMBERS, {"name_": name})
        _put_members(conn, name, changed.members)
    if to.grants is not None:
        put_grants(conn, "group", name, to.grants)
    audit.note(conn, "group.changed", act.by, name, act, detail=_said(changed))


def remove(conn: Connection, name: str, act: Act) -> None:
    """Remove a group, its grants, budgets and what is shared with it; of ``EVERYONE`` only that its grants count.

    Raises NoSuchGroup.
    """
    if name not in directory(conn).groups:
        raise no_such_group(name)
    sharing.end_of_group(conn, name, act)
    if name != EVERYONE:
        budgets.end_of_group(conn, name, act)
    conn.execute(_FORGET_MEMBERS, {"name_": name})
    put_grants(conn, "group", name, VcGrants())
    conn.execute(_FORGET, {"name_": name})
    audit.note(conn, "group.removed", act.by, name, act)


def put_grants(conn: Connection, kind: Kind, name: str, grants: VcGrants) -> None:
    """Make these the grants of a user or a group."""
    conn.execute(_FORGET_GRANTS, {"kind_": kind, "name_": name})
    rows = [
        {"kind": kind, "subject": name, "virtual_cluster": each, "manages": each in grants.manages}
        for each in sorted(grants.usable)
    ]
    if rows:
        conn.execute(insert(vc_grants), rows)


def require_known(conn: Connection, groups: Collection[str]) -> None:
    """Raise NoSuchGroup for the first name that no group has, and for the group of all users."""
    known = directory(conn).groups if groups else {}
    for name in groups:
        if name not in known or name == EVERYONE:
            raise no_such_group(name)


def put_memberships(conn: Connection, user: str, groups: Collection[str]) -> None:
    """Make a user a member of exactly these groups. Raises NoSuchGroup."""
    require_known(conn, groups)
    conn.execute(_FORGET_MEMBERSHIPS, {"name_": user})
    for name in sorted(set(groups)):
        conn.execute(insert(group_members), {"groupname": name, "username": user})


def forget_user(conn: Connection, name: str) -> None:
    """End the memberships and grants of a user."""
    conn.execute(_FORGET_MEMBERSHIPS, {"name_": name})
    put_grants(conn, "user", name, VcGrants())


def no_such_group(name: str) -> NoSuchGroup:
    """The error for a name that no group has."""
    return NoSuchGroup(
        Text("No group has the name {name}.", name=repr(name[:100])), hint=Text("`pai group list` shows all groups.")
    )


def _put_members(conn: Connection, name: str, members: Collection[str]) -> None:
    rows = [{"groupname": name, "username": each} for each in sorted(set(members))]
    if rows:
        conn.execute(insert(group_members), rows)


def _values(group: Group) -> dict[str, str]:
    return {"name": group.name, "description": group.description, "external_name": group.external_name}


def _said(group: Group) -> str:
    grants = group.grants or VcGrants()
    parts = {"members": group.members, "use": sorted(grants.use), "manage": sorted(grants.manages)}
    return "; ".join(f"{word}: {', '.join(names)}" for word, names in parts.items() if names)


class Groups(Repository):
    """Groups of users and grants of virtual clusters."""

    async def directory(self) -> Directory:
        """Users that administrators have added, groups and grants, as of one moment."""
        return await self._database.read(directory)

    async def add(self, group: Group, act: Act) -> None:
        """Add a group. Raises GroupExists."""
        await self._writer.run(partial(add, group=group, act=act))

    async def change(self, name: str, to: GroupUpdate, act: Act) -> None:
        """Change what is given of a group. Raises NoSuchGroup, InvalidParameters."""
        await self._writer.run(partial(change, name=name, to=to, act=act))

    async def remove(self, name: str, act: Act) -> None:
        """Remove a group. Members lose what it granted them. Raises NoSuchGroup."""
        await self._writer.run(partial(remove, name=name, act=act))
