"""Users and groups, with OpenPAI's paths."""

from __future__ import annotations

from pai_backend.api.base import ALL_VERBS, ApiHandler
from pai_backend.api.openpai.site_wire import GroupList, UserGroup
from pai_backend.api.openpai.wire import ChangedUser, HoldingsWire, UserList, UserWire
from pai_backend.api.operation import Operation, operation
from pai_backend.api.people_queries import GroupChange, NewGroup, NewUser, NewUserQuery, RemoveUserQuery, UserChange
from pai_backend.api.services.groups import GroupService
from pai_backend.api.services.users import UserService
from pai_backend.model.errors import (
    Forbidden,
    GroupExists,
    InvalidParameters,
    MustChangePassword,
    NoSuchGroup,
    NoSuchUser,
    NotSupported,
    TooManyRequests,
    Unavailable,
    UserExists,
    UserHasJobs,
    WrongPassword,
)
from pai_backend.model.scope import Scope


class _UserHandler(ApiHandler):
    """A handler with the users."""

    @property
    def users(self) -> UserService:
        """The service."""
        return UserService(self.ctx, self.request.remote_ip or "")

    @classmethod
    def scope_of(cls, verb: str) -> Scope:
        """To change users takes SSH: of a profile, a program may change the keys alone, which let it into tasks."""
        return Scope.SSH if verb in ("post", "put", "delete") else super().scope_of(verb)


class UsersHandler(_UserHandler):
    """``/api/v2/users``."""

    users_own = frozenset({"put", "post"})

    @operation(Operation("The users that the caller may see.", answer=UserList))
    async def get(self) -> UserList:
        """All for administrators and managers, oneself for others."""
        return await self.users.users(self.user)

    @operation(
        Operation(
            "Add a user.",
            audit="user.added",
            told_by_store=True,
            query=NewUserQuery,
            body=NewUser,
            answer=UserWire,
            status=201,
            raises=(Forbidden, UserExists, NoSuchGroup, Unavailable),
        )
    )
    async def post(self, query: NewUserQuery, new: NewUser) -> UserWire:
        """For administrators. The user can sign in at once, at every process of the backend within 2 s."""
        return await self.users.add(self.user, new, dry_run=query.dry_run)

    @operation(
        Operation(
            "Change the user that `data.username` names.",
            audit="user.changed",
            told_by_store=True,
            body=UserChange,
            answer=ChangedUser,
            raises=(NoSuchUser, NoSuchGroup, Forbidden, NotSupported, WrongPassword, TooManyRequests),
        )
    )
    async def put(self, change: UserChange) -> ChangedUser:
        """As for the user's own path; OpenPAI's clients send it here."""
        return await self.users.change(self.user, change.data.username or "", change)


class OneUserHandler(_UserHandler):
    """``/api/v2/users/{user}``; ``me`` is the caller."""

    users_own = frozenset({"put", "delete"})

    sets_passwords = True

    @operation(Operation("A user's profile.", answer=UserWire, raises=(NoSuchUser, Forbidden)))
    async def get(self, user: str) -> UserWire:
        """The caller's, or for an admin any user's."""
        return await self.users.user(self.user, user)

    @operation(
        Operation(
            "Change a user: SSH keys, mail address, password, rights, whether they are disabled.",
            audit="user.changed",
            told_by_store=True,
            body=UserChange,
            answer=ChangedUser,
            raises=(
                NoSuchUser,
                NoSuchGroup,
                Forbidden,
                MustChangePassword,
                NotSupported,
                WrongPassword,
                TooManyRequests,
            ),
        )
    )
    async def put(self, user: str, change: UserChange) -> ChangedUser:
        """The profile as it is now."""
        return await self.users.change(self.user, user, change)

    @operation(
        Operation(
            "Remove a user and what lets them in.",
            audit="user.removed",
            told_by_store=True,
            query=RemoveUserQuery,
            status=204,
            raises=(NoSuchUser, Forbidden, NotSupported, UserHasJobs, InvalidParameters),
        )
    )
    async def delete(self, user: str, query: RemoveUserQuery) -> None:
        """For administrators. Ended jobs and files of the user stay."""
        await self.users.remove(self.user, user, query.transfer_to or "")


class UserHoldingsHandler(_UserHandler):
    """``/api/v2/users/{user}/holdings``."""

    users_own = ALL_VERBS

    @operation(
        Operation(
            "What belongs to a user, or lets them in: to be read before they are disabled or removed.",
            answer=HoldingsWire,
            raises=(NoSuchUser, Forbidden),
        )
    )
    async def get(self, user: str) -> HoldingsWire:
        """The caller's own, or for administrators any user's."""
        return await self.users.holdings(self.user, user)


class _GroupHandler(ApiHandler):
    """A handler with the groups."""

    @property
    def groups(self) -> GroupService:
        """The service."""
        return GroupService(self.ctx, self.request.remote_ip or "")


class GroupsHandler(_GroupHandler):
    """``/api/v2/groups``."""

    @operation(Operation("The groups of users that the caller may see.", answer=GroupList))
    async def get(self) -> GroupList:
        """Everybody, administrators, then those that administrators have added."""
        return await self.groups.groups(self.user)

    @operation(
        Operation(
            "Add a group.",
            audit="group.added",
            told_by_store=True,
            body=NewGroup,
            answer=UserGroup,
            status=201,
            raises=(Forbidden, GroupExists, NoSuchUser),
        )
    )
    async def post(self, new: NewGroup) -> UserGroup:
        """For administrators."""
        return await self.groups.add(self.user, new)

    @operation(
        Operation(
            "Change the group that `data.groupname` names.",
            audit="group.changed",
            told_by_store=True,
            body=GroupChange,
            answer=UserGroup,
            raises=(Forbidden, NoSuchGroup, NoSuchUser, NotSupported),
        )
    )
    async def put(self, change: GroupChange) -> UserGroup:
        """As for the group's own path; OpenPAI's clients send it here."""
        return await self.groups.change(self.user, change.data.groupname or "", change.data)


class OneGroupHandler(_GroupHandler):
    """``/api/v2/groups/{group}``."""

    @operation(Operation("A group of users.", answer=UserGroup, raises=(NoSuchGroup,)))
    async def get(self, group: str) -> UserGroup:
        """The group and what it may use."""
        return await self.groups.group(self.user, group)

    @operation(
        Operation(
            "Change a group: description, members, virtual clusters.",
            audit="group.changed",
            told_by_store=True,
            body=GroupChange,
            answer=UserGroup,
            raises=(Forbidden, NoSuchGroup, NoSuchUser, NotSupported),
        )
    )
    async def put(self, group: str, change: GroupChange) -> UserGroup:
        """For administrators; managers of a virtual cluster let the group use it."""
        return await self.groups.change(self.user, group, change.data)

    @operation(
        Operation(
            "Remove a group.", audit="group.removed", told_by_store=True, status=204, raises=(Forbidden, NoSuchGroup)
        )
    )
    async def delete(self, group: str) -> None:
        """For administrators. Members lose what the group granted them."""
        await self.groups.remove(self.user, group)


class GroupMembersHandler(_UserHandler):
    """``/api/v2/groups/{group}/userlist``."""

    @operation(Operation("The users of a group that the caller may see.", answer=UserList, raises=(NoSuchGroup,)))
    async def get(self, group: str) -> UserList:
        """All for administrators and managers, oneself for others."""
        return await self.users.members(self.user, group)
