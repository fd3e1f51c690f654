"""Users, in OpenPAI's shapes: who they are, and what administrators, managers and they themselves change."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from pai_backend.api.context import ApiContext
from pai_backend.api.key_wire import NewKey
from pai_backend.api.openpai.jobs import milliseconds
from pai_backend.api.openpai.wire import (
    ChangedUser,
    HoldingsWire,
    SshKey,
    UserExtension,
    UserList,
    UserWire,
    VcGrantsWire,
)
from pai_backend.api.people_queries import NewUser, UserChange, UserData
from pai_backend.api.services.identity import require_person
from pai_backend.api.services.keys import KeyService, require_account
from pai_backend.api.services.rights import granted, require_administrator, require_may_grant
from pai_backend.auth.identity import user_of
from pai_backend.auth.users import User
from pai_backend.model.account import ADMINS, EVERYONE, Account, VcGrants
from pai_backend.model.errors import (
    Forbidden,
    InvalidParameters,
    MustChangePassword,
    NoSuchUser,
    NotSupported,
    UserExists,
    WrongPassword,
)
from pai_backend.model.text import Text
from pai_backend.store.grants import Act, UserUpdate
from pai_backend.store.groups import no_such_group

ME = "me"


class UserService:
    """Users. ``source`` is the address that the caller's request came from, for the audit."""

    def __init__(self, ctx: ApiContext, source: str = "") -> None:
        self._ctx, self._source = ctx, source
        self._accounts = ctx.identity.accounts

    async def users(self, user: User) -> UserList:
        """The users whom the caller may know: all for administrators and managers, else the caller."""
        sees_all = user.admin or user.manages
        accounts = await self._accounts.all() if sees_all else [await self._account(user, ME)]
        return UserList(tuple([await self._shown(account, user) for account in accounts]))

    async def members(self, user: User, group: str) -> UserList:
        """Those of them that are in a group. Raises NoSuchGroup."""
        if group not in {EVERYONE, ADMINS, *(await self._accounts.directory()).groups}:
            raise no_such_group(group)
        return UserList(tuple(each for each in (await self.users(user)).root if group in each.grouplist))

    async def user(self, user: User, name: str) -> UserWire:
        """A user's profile. Raises Forbidden for another user's, NoSuchUser."""
        return await self._shown(await self._account(user, name), user)

    async def add(self, user: User, new: NewUser, *, dry_run: bool = False) -> UserWire:
        """Add a user, who can sign in from now on; ``dry_run``: only say whether that can be done.

        Raises Forbidden, UserExists, NoSuchGroup, InvalidParameters.
        """
        require_administrator(user)
        if self._ctx.users_share_rights:
            raise Forbidden(
                Text(
                    "Tasks of this backend run as one account, so that each user could read the keys, the "
                    "database and the files of all."
                ),
                hint=Text(
                    "As root, give users accounts (engine.accounts); or set engine.trust_all_users if they may do so."
                ),
            )
        if new.username.lower() in {each.name.lower() for each in await self._accounts.all()}:
            raise UserExists(
                Text("There is a user {username}, in this or in another case.", username=new.username),
                hint=Text("`pai user set` changes one who was added."),
            )
        account = Account(
            new.username,
            new.admin,
            new.email,
            "",
            granted(VcGrants(), new.virtual_cluster, new.manages, self._ctx.virtual_clusters),
            _added_groups(new.grouplist),
        )
        if dry_run:
            await self._ctx.store.grants.require_addable(account, again=new.again)
            return await self._shown(account, user)
        hashed = await self._ctx.identity.hash(new.password.get_secret_value())
        account = replace(account, password_hash=hashed, must_change_password=new.must_change_password)
        await self._ctx.store.grants.add_user(account, self._act(user), again=new.again)
        self._ctx.identity.forget()
        return await self.user(user, new.username)

    async def change(self, user: User, name: str, change: UserChange) -> ChangedUser:
        """Change a user: themselves their keys, mail address and password; an administrator also others and all rights;
        a manager whether others may use what they manage.

        Raises NotSupported for what the configuration says, Forbidden, NoSuchUser, NoSuchGroup, WrongPassword,
        InvalidParameters.
        """
        account, data = await self._account(user, name), change.data
        if user.must_change_password:
            _require_password_alone(data)
        if data.username not in (None, account.name):
            raise NotSupported(Text("A user cannot be renamed."), hint=Text("Add one of the new name."))
        update = await self._update(user, account, data)
        if data.extension is not None and data.extension.ssh_keys is not None:
            if account.name != user.name:
                raise Forbidden(
                    Text("Only its user may change the keys of a profile."),
                    hint=Text("Ask {account}.", account=account.name),
                )
            wanted = [
                NewKey.model_validate({"publicKey": key.value, "comment": key.title}) for key in data.extension.ssh_keys
            ]
            await KeyService(self._ctx, self._source).replace(user, wanted)
        if data.disabled is not None:
            keys = KeyService(self._ctx, self._source)
            await (keys.lock_out if data.disabled else keys.let_in)(user, account.name)
        if not update.is_empty():
            session = user.token if account.name == user.name else ""
            await self._ctx.store.grants.change_user(account.name, update, self._act(user), session=session)
            self._ctx.identity.forget()
        return ChangedUser(**dict(await self._shown(await self._account(user, account.name), user)))

    async def holdings(self, user: User, name: str) -> HoldingsWire:
        """What belongs to a user: the caller, or for administrators any user. Raises Forbidden, NoSuchUser."""
        if name not in (ME, user.name):
            require_administrator(user)
        account = await self._account(user, name)
        found = await self._ctx.store.grants.holdings(account.name, self._ctx.clock())
        return HoldingsWire(**vars(found), files=f"/{account.name}")

    async def remove(self, user: User, name: str, heir: str) -> None:
        """Remove a user; what lets them in ends, and the heir, if one is named, gets what the user has named.

        Raises Forbidden, NoSuchUser, UserHasJobs, NotSupported, InvalidParameters.
        """
        require_administrator(user)
        account = await self._account(user, name)
        if account.name == user.name:
            raise InvalidParameters(Text("You cannot remove yourself."), hint=Text("Ask another administrator."))
        self._require_added(account)
        if heir == account.name:
            raise InvalidParameters(
                Text("{heir} is the user to be removed.", heir=heir), hint=Text("Transfer to another user.")
            )
        if heir:
            await require_account(self._ctx, heir)
        await self._ctx.store.grants.remove_user(account.name, self._act(user), heir=heir)
        self._ctx.identity.forget()

    async def _update(self, user: User, account: Account, data: UserData) -> UserUpdate:
        """What is to change of the account. Raises as :meth:`change`."""
        update = UserUpdate(
            admin=None if data.admin in (None, account.admin) else data.admin,
            email=None if data.email in (None, account.email) else data.email,
            password_hash=None,
            groups=None if data.grouplist is None else _added_groups(data.grouplist),
            grants=self._grants(user, account, data),
        )
        if update.groups is not None:
            require_administrator(user)
        if not update.profile() and data.new_password is None:
            return update
        require_person(user)
        self._require_added(account)
        if account.name != user.name:
            require_administrator(user)
        if update.admin is not None:
            require_administrator(user)
            if account.name == user.name:
                raise InvalidParameters(
                    Text("You cannot end your own rights."), hint=Text("Ask another administrator.")
                )
        if data.new_password is None:
            return update
        if account.name == user.name:
            if data.old_password is None:
                raise WrongPassword(
                    Text("The password is missing."), hint=Text("Give `oldPassword`, the one that you have now.")
                )
            await self._ctx.identity.require_password(user.name, data.old_password.get_secret_value(), self._source)
            if data.old_password.get_secret_value() == data.new_password.get_secret_value():
                raise InvalidParameters(Text("The new password is the old one."), hint=Text("Take another."))
        new = await self._ctx.identity.hash(data.new_password.get_secret_value())
        must_change = bool(data.must_change_password) and account.name != user.name
        return replace(update, password_hash=new, must_change_password=must_change)

    def _grants(self, user: User, account: Account, data: UserData) -> VcGrants | None:
        """The new grants of the account; None: they stay. Raises Forbidden, InvalidParameters, NotSupported."""
        if data.virtual_cluster is None and data.manages is None:
            return None
        after = granted(account.own, data.virtual_cluster, data.manages, self._ctx.virtual_clusters)
        require_may_grant(user, account.own, after)
        if account.name in self._ctx.rules.grants:
            raise NotSupported(
                Text("The virtual clusters of {account} are set in the backend's configuration.", account=account.name),
                hint=Text("Ask the administrator to change cluster.grants."),
            )
        return after

    def _is_configured(self, account: Account) -> bool:
        return any(each.name == account.name for each in self._accounts.configured)

    def _require_added(self, account: Account) -> None:
        if self._is_configured(account):
            raise NotSupported(
                Text(
                    "Rights, password and mail address of {account} are set in the backend's configuration.",
                    account=account.name,
                ),
                hint=Text("Ask the administrator to change api.users or api.tokens."),
            )

    def _act(self, user: User) -> Act:
        return Act(user.name, self._ctx.clock(), self._source)

    async def _account(self, user: User, name: str) -> Account:
        wanted = user.name if name == ME else name
        if wanted != user.name and not user.admin and not user.manages:
            raise Forbidden(
                Text("Profiles of other users are shown to administrators and managers only."),
                hint=Text("Ask for /api/v2/users/me."),
            )
        account = await self._accounts.get(wanted)
        if account is None:
            raise NoSuchUser(
                Text("There is no user {wanted}.", wanted=repr(wanted[:100])),
                hint=Text("`GET /api/v2/users` lists all."),
            )
        return account

    async def _shown(self, account: Account, to: User) -> UserWire:
        """The profile; a manager sees of others no mail address and no keys."""
        is_private = not to.admin and account.name != to.name
        keys = () if is_private else await self._ctx.store.user_keys.registered(account.name)
        shown = (SshKey(title=key.comment, value=key.public_key, time=milliseconds(key.added_at)) for key in keys)
        owner = user_of(account)
        usable = (each for each in self._ctx.virtual_clusters if self._ctx.rules.granted(owner, each))
        return UserWire(
            username=account.name,
            email="" if is_private else account.email,
            grouplist=(EVERYONE, *((ADMINS,) if account.admin else ()), *account.groups),
            admin=account.admin,
            virtual_cluster=tuple(usable),
            manages=tuple(sorted(account.manages)),
            own=VcGrantsWire(use=tuple(sorted(account.own.use)), manages=tuple(sorted(account.own.manages))),
            disabled=await self._ctx.identity.lockouts.is_locked(account.name),
            must_change_password=account.must_change_password,
            configured=self._is_configured(account),
            storage_config=(),
            extension=UserExtension(ssh_keys=tuple(shown)),
        )


def _require_password_alone(data: UserData) -> None:
    """Raise MustChangePassword unless a password is set, and nothing else changed."""
    given = data.model_dump(exclude_none=True, exclude={"username", "old_password", "new_password"})
    if data.new_password is None or given:
        raise MustChangePassword(
            Text("Set a password of your own first, and nothing else with it."), hint=Text("`pai password` does it.")
        )


def _added_groups(names: Sequence[str]) -> tuple[str, ...]:
    """The groups of a list without those that every user, or every administrator, is in anyway."""
    return tuple(dict.fromkeys(name for name in names if name not in (EVERYONE, ADMINS)))
