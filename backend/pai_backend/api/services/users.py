"""Users, in OpenPAI's shapes: who there is, and what administrators and they themselves change."""

from __future__ import annotations

from pai_backend.api.context import ApiContext
from pai_backend.api.key_wire import NewKey
from pai_backend.api.openpai.jobs import milliseconds
from pai_backend.api.openpai.wire import ChangedUser, SshKey, UserExtension, UserList, UserWire
from pai_backend.api.queries import NewUser, UserChange, UserData
from pai_backend.api.services.identity import require_person
from pai_backend.api.services.keys import KeyService
from pai_backend.auth.users import User
from pai_backend.model.account import Account
from pai_backend.model.errors import Forbidden, InvalidParameters, NoSuchUser, NotSupported, UserExists, WrongPassword
from pai_backend.store.grants import Act, UserUpdate

ADMINS, EVERYONE = "admingroup", "default"
"""OpenPAI's two groups that are always there."""
ME = "me"


class UserService:
    """Users. ``source`` is the address that the caller's request came from, for the audit."""

    def __init__(self, ctx: ApiContext, source: str = "") -> None:
        self._ctx, self._source = ctx, source
        self._accounts = ctx.identity.accounts

    async def users(self, user: User) -> UserList:
        """The users whom the caller may know: all for an admin, else the caller."""
        accounts = await self._accounts.all() if user.admin else [await self._account(user, ME)]
        return UserList(tuple([await self._shown(account) for account in accounts]))

    async def user(self, user: User, name: str) -> UserWire:
        """A user's profile. Raises Forbidden for another user's, NoSuchUser."""
        return await self._shown(await self._account(user, name))

    async def add(self, user: User, new: NewUser) -> UserWire:
        """Add a user, who can sign in from now on. Raises Forbidden, UserExists."""
        _require_administrator(user)
        if self._ctx.users_share_rights:
            raise Forbidden(
                "Tasks of this backend run as one account, so that each user could read the keys, the database and the "
                "files of all.",
                hint="As root, give users accounts (engine.accounts); or set engine.trust_all_users if they may do so.",
            )
        if await self._accounts.get(new.username) is not None:
            raise UserExists(f"There is a user {new.username}.", hint="`pai user set` changes one who was added.")
        account = Account(
            new.username, new.admin, new.email, await self._ctx.identity.hash(new.password.get_secret_value())
        )
        await self._ctx.store.grants.add_user(account, self._act(user), again=new.again)
        self._ctx.identity.forget()
        return await self._shown(account)

    async def change(self, user: User, name: str, change: UserChange) -> ChangedUser:
        """Change a user: themselves their keys, mail address and password, an administrator also others and who is one.

        Raises NotSupported for what the configuration says, Forbidden, NoSuchUser, WrongPassword, InvalidParameters.
        """
        account, data = await self._account(user, name), change.data
        if data.username not in (None, account.name):
            raise NotSupported("A user cannot be renamed.", hint="Add one of the new name.")
        update = await self._update(user, account, data)
        if data.extension is not None and data.extension.ssh_keys is not None:
            if account.name != user.name:
                raise Forbidden("Only its user may change the keys of a profile.", hint=f"Ask {account.name}.")
            wanted = [
                NewKey.model_validate({"publicKey": key.value, "comment": key.title}) for key in data.extension.ssh_keys
            ]
            await KeyService(self._ctx, self._source).replace(user, wanted)
        if update.given():
            session = user.token if account.name == user.name else ""
            grants = self._ctx.store.grants
            account = await grants.change_user(account.name, update, self._act(user), session=session)
            self._ctx.identity.forget()
        return ChangedUser(**dict(await self._shown(account)))

    async def remove(self, user: User, name: str) -> None:
        """Remove a user; what lets them in ends. Raises Forbidden, NoSuchUser, UserHasJobs, NotSupported."""
        _require_administrator(user)
        account = await self._account(user, name)
        if account.name == user.name:
            raise InvalidParameters("You cannot remove yourself.", hint="Ask another administrator.")
        self._require_added(account)
        await self._ctx.store.grants.remove_user(account.name, self._act(user))
        self._ctx.identity.forget()

    async def _update(self, user: User, account: Account, data: UserData) -> UserUpdate:
        """What is to change of the account. Raises as :meth:`change`."""
        update = UserUpdate(
            admin=None if data.admin in (None, account.admin) else data.admin,
            email=None if data.email in (None, account.email) else data.email,
        )
        if not update.given() and data.new_password is None:
            return update
        require_person(user)
        self._require_added(account)
        if update.admin is not None:
            _require_administrator(user)
            if account.name == user.name:
                raise InvalidParameters("You cannot end your own rights.", hint="Ask another administrator.")
        if data.new_password is None:
            return update
        if account.name == user.name:
            if data.old_password is None:
                raise WrongPassword("The password is missing.", hint="Give `oldPassword`, the one that you have now.")
            await self._ctx.identity.require_password(user.name, data.old_password.get_secret_value(), self._source)
        new = await self._ctx.identity.hash(data.new_password.get_secret_value())
        return UserUpdate(update.admin, update.email, new)

    def _require_added(self, account: Account) -> None:
        if any(each.name == account.name for each in self._accounts.configured):
            raise NotSupported(
                f"Rights, password and mail address of {account.name} are set in the backend's configuration.",
                hint="Ask the administrator to change api.users or api.tokens.",
            )

    def _act(self, user: User) -> Act:
        return Act(user.name, self._ctx.clock(), self._source)

    async def _account(self, user: User, name: str) -> Account:
        wanted = user.name if name == ME else name
        if wanted != user.name and not user.admin:
            raise Forbidden("Profiles of other users are shown to admins only.", hint="Ask for /api/v2/users/me.")
        account = await self._accounts.get(wanted)
        if account is None:
            raise NoSuchUser(f"There is no user {wanted[:100]!r}.", hint="`GET /api/v2/users` lists all.")
        return account

    async def _shown(self, account: Account) -> UserWire:
        keys = await self._ctx.store.user_keys.registered(account.name)
        shown = (SshKey(title=key.comment, value=key.public_key, time=milliseconds(key.added_at)) for key in keys)
        return UserWire(
            username=account.name,
            email=account.email,
            grouplist=(EVERYONE, ADMINS) if account.admin else (EVERYONE,),
            admin=account.admin,
            virtual_cluster=self._ctx.virtual_clusters,
            storage_config=(),
            extension=UserExtension(ssh_keys=tuple(shown)),
        )


def _require_administrator(user: User) -> None:
    require_person(user)
    if not user.admin:
        raise Forbidden("Only an administrator may do this.", hint="Ask one.")
