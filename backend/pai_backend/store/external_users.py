"""Users whom a provider signs in, by what it knows them by: another person by the same name is not let in."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

from sqlalchemy import BindParameter, Connection, bindparam, exists, insert, or_, select

from pai_backend.model.account import Account
from pai_backend.model.errors import Forbidden
from pai_backend.model.text import Text
from pai_backend.store import groups, users
from pai_backend.store.grants import Act, UserUpdate
from pai_backend.store.people_tables import accounts as configured
from pai_backend.store.people_tables import external_users as table
from pai_backend.store.people_tables import users as added
from pai_backend.store.repository import Repository

_NAME: BindParameter[str] = bindparam("username_")
_ONE = select(table.c.subject).where(table.c.username == _NAME, table.c.issuer == bindparam("issuer_"))
_IS_KNOWN = select(or_(exists().where(added.c.username == _NAME), exists().where(configured.c.username == _NAME)))


@dataclass(frozen=True)
class ExternalUser:
    """A user as a provider knows them."""

    name: str
    issuer: str
    subject: str
    groups: frozenset[str] | None = None
    """Their groups there; None: that is not asked for."""
    admin: bool | None = None
    """Whether they administer by one of these; None: that is not asked for."""


def come(conn: Connection, user: ExternalUser, act: Act, *, take_names: bool) -> None:
    """Have the user of that name be this one, who is added when there is none; groups and rights become the provider's.

    ``take_names``: also a user whom the configuration or an administrator has named. Raises Forbidden when the name is
    another person's, UserExists as :func:`users.require_addable`.
    """
    subject = conn.execute(_ONE, {"username_": user.name, "issuer_": user.issuer}).scalar_one_or_none()
    if subject is None:
        if not conn.execute(_IS_KNOWN, {"username_": user.name}).scalar_one():
            users.add(conn, Account(user.name), act, again=False)
        elif not take_names:
            raise Forbidden(
                Text("There is a user {user} here who has not come from the provider.", user=user.name),
                hint=Text("`take_names` of `api.oidc` or `api.jupyterhub` says that both are the same person."),
            )
        conn.execute(insert(table), {"username": user.name, "issuer": user.issuer, "subject": user.subject})
    elif subject != user.subject:
        raise Forbidden(
            Text("The user {user} here is another person at the provider.", user=user.name),
            hint=Text("An administrator removes that user first (`pai user remove`), and adds the new one."),
        )
    update = _update(conn, user)
    if update != UserUpdate():
        users.change(conn, user.name, update, act, session="")


def _update(conn: Connection, user: ExternalUser) -> UserUpdate:
    """What is to change of the user for the provider's word to hold. Groups without a name there stay as they are."""
    known = groups.directory(conn)
    member_of = None
    if user.groups is not None:
        theirs = [group for group in known.groups.values() if group.external_name]
        before = {group.name for group in known.groups_of(user.name)}
        after = before - {group.name for group in theirs}
        after |= {group.name for group in theirs if group.external_name in user.groups}
        member_of = tuple(sorted(after)) if after != before else None
    found = next((each for each in known.users if each.name == user.name), None)
    admin = user.admin if found is not None and user.admin not in (None, found.admin) else None
    return UserUpdate(admin=admin, groups=member_of)


class ExternalUsers(Repository):
    """Users whom a provider signs in."""

    async def come(self, user: ExternalUser, act: Act, *, take_names: bool) -> None:
        """As the function :func:`come`, in one transaction."""
        await self._writer.run(partial(come, user=user, act=act, take_names=take_names))
