"""Groups of users and what they grant, in OpenPAI's shapes."""

from __future__ import annotations

from pai_backend.api.context import ApiContext
from pai_backend.api.openpai.site_wire import Acls, GroupExtension, GroupList, UserGroup
from pai_backend.api.people_queries import GroupData, NewGroup
from pai_backend.api.services.keys import require_account
from pai_backend.api.services.openpai_site import storages_of
from pai_backend.api.services.rights import granted, require_administrator, require_may_grant
from pai_backend.auth.users import User
from pai_backend.model.account import ADMINS, EVERYONE, Group, VcGrants
from pai_backend.model.errors import InvalidParameters, NotSupported
from pai_backend.model.text import Text
from pai_backend.store.grants import Act, GroupUpdate
from pai_backend.store.groups import no_such_group

_ADMINS = Group(ADMINS, "Administrators.", grants=None)


class GroupService:
    """Groups. ``source`` is the address that the caller's request came from, for the audit."""

    def __init__(self, ctx: ApiContext, source: str = "") -> None:
        self._ctx, self._source = ctx, source

    async def groups(self, user: User) -> GroupList:
        """The groups that the caller may see: all for administrators and managers, for others those they are in."""
        directory = await self._ctx.identity.accounts.directory()
        others = directory.groups.values() if user.admin or user.manages else directory.groups_of(user.name)
        added = sorted((each for each in others if each.name != EVERYONE), key=lambda each: each.name)
        return GroupList(tuple(self._shown(each, user) for each in (directory.everyone, _ADMINS, *added)))

    async def group(self, user: User, name: str) -> UserGroup:
        """One of them. Raises NoSuchGroup."""
        for each in (await self.groups(user)).root:
            if each.groupname == name:
                return each
        raise no_such_group(name)

    async def add(self, user: User, new: NewGroup) -> UserGroup:
        """Add a group. Raises Forbidden, GroupExists, NoSuchUser, InvalidParameters."""
        require_administrator(user)
        update = await self._update(new, VcGrants())
        group = Group(
            new.groupname,
            update.description or "",
            update.external_name or "",
            update.members or (),
            update.grants or VcGrants(),
        )
        await self._ctx.store.groups.add(group, self._act(user))
        self._ctx.identity.forget()
        return await self.group(user, new.groupname)

    async def change(self, user: User, name: str, data: GroupData) -> UserGroup:
        """Change a group: administrators everything, managers whether it may use what they manage.

        Raises NoSuchGroup, Forbidden, NoSuchUser, InvalidParameters, NotSupported.
        """
        if data.groupname not in (None, name):
            raise NotSupported(Text("A group cannot be renamed."), hint=Text("Add a group of the new name."))
        if name == ADMINS:
            raise NotSupported(
                Text("{admins} has no grants of its own.", admins=ADMINS),
                hint=Text("`pai user set NAME --admin` adds to it."),
            )
        directory = await self._ctx.identity.accounts.directory()
        kept = directory.everyone if name == EVERYONE else directory.groups.get(name)
        if kept is None:
            raise no_such_group(name)
        update = await self._update(data, kept.grants or VcGrants())
        beyond_grants = (update.description, update.external_name, update.members) != (None, None, None)
        if beyond_grants or kept.grants is None or update.grants is None:
            require_administrator(user)
        else:
            require_may_grant(user, kept.grants, update.grants)
        await self._ctx.store.groups.change(name, update, self._act(user))
        self._ctx.identity.forget()
        return await self.group(user, name)

    async def remove(self, user: User, name: str) -> None:
        """Remove a group; of `default` only its grants, so that everyone may use everything. Raises NoSuchGroup."""
        require_administrator(user)
        await self._ctx.store.groups.remove(name, self._act(user))
        self._ctx.identity.forget()

    async def _update(self, data: GroupData, before: VcGrants) -> GroupUpdate:
        acls = data.extension.acls
        if acls.admin:
            raise InvalidParameters(
                Text("A group does not make administrators."), hint=Text("`pai user set NAME --admin` does.")
            )
        for name in data.members or ():
            await require_account(self._ctx, name)
        grants = None
        if acls.virtual_clusters is not None or acls.manages is not None:
            grants = granted(before, acls.virtual_clusters, acls.manages, self._ctx.virtual_clusters)
        return GroupUpdate(data.description, data.external_name, data.members, grants)

    def _act(self, user: User) -> Act:
        return Act(user.name, self._ctx.clock(), self._source)

    def _shown(self, group: Group, user: User) -> UserGroup:
        grants = group.grants
        usable = self._ctx.virtual_clusters if grants is None else tuple(sorted(grants.usable))
        acls = Acls(
            admin=group.name == ADMINS,
            virtual_clusters=usable,
            manages=() if grants is None else tuple(sorted(grants.manages)),
            everything=grants is None,
            storage_configs=tuple(each.name for each in storages_of(self._ctx, user)),
        )
        return UserGroup(
            groupname=group.name,
            description=group.description,
            external_name=group.external_name,
            members=group.members,
            extension=GroupExtension(acls=acls),
        )
