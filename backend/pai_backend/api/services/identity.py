"""Users, their sessions and their tokens, in OpenPAI's shapes."""

from __future__ import annotations

from pai_backend.api.context import ApiContext
from pai_backend.api.key_wire import NewKey
from pai_backend.api.openpai.jobs import milliseconds
from pai_backend.api.openpai.wire import (
    ChangedUser,
    NewToken,
    SignedIn,
    SshKey,
    TokenList,
    TokenWire,
    UserExtension,
    UserList,
    UserWire,
)
from pai_backend.api.queries import Login, UserChange
from pai_backend.api.services.keys import KeyService
from pai_backend.auth.accounts import Account
from pai_backend.auth.identity import digest
from pai_backend.auth.users import User
from pai_backend.model.errors import Forbidden, NoSuchUser, NotSupported
from pai_backend.store.base import AccessToken

ID_DIGITS = 16  # of a token's digest: enough to name it, of no use to a reader of the database
ADMINS, EVERYONE = "admingroup", "default"
"""OpenPAI's two groups that are always there."""
ME = "me"


class IdentityService:
    """Who the caller is and what they sign in with."""

    def __init__(self, ctx: ApiContext) -> None:
        self._ctx = ctx

    async def sign_in(self, login: Login, source: str) -> SignedIn:
        """A session for a name and password. Raises WrongPassword, TooManyRequests."""
        password = login.password.get_secret_value()
        token, account = await self._ctx.identity.sign_in(login.username, password, source)
        return SignedIn(user=account.name, token=token, admin=account.admin)

    async def tokens(self, user: User) -> TokenList:
        """The caller's sessions and application tokens. Raises Forbidden for application tokens."""
        _require_person(user)
        kept = await self._ctx.identity.tokens(user)
        shown = tuple(_shown(token) for token in kept)
        return TokenList(
            tokens=tuple(token.id for token in shown),
            application_tokens=tuple(token.id for token in shown if token.application),
            data=shown,
        )

    async def make_token(self, user: User) -> NewToken:
        """A new application token of the caller. Raises Forbidden for application tokens."""
        _require_person(user)
        token = await self._ctx.identity.make_application_token(user)
        return NewToken(token=token, application=True, id=digest(token)[:ID_DIGITS])

    async def revoke(self, user: User, token: str, source: str) -> None:
        """End a token of the caller, by itself or its id. Raises NoSuchToken, Forbidden."""
        _require_person(user)
        await self._ctx.identity.revoke(user, token, source)

    async def users(self, user: User) -> UserList:
        """The users whom the caller may know: all for an admin, else the caller."""
        accounts = self._ctx.identity.accounts.all() if user.admin else [self._account(user, ME)]
        return UserList(tuple([await self._user(account) for account in accounts]))

    async def user(self, user: User, name: str) -> UserWire:
        """A user's profile. Raises Forbidden for another user's, NoSuchUser."""
        return await self._user(self._account(user, name))

    async def change(self, user: User, name: str, change: UserChange, source: str) -> ChangedUser:
        """Change the caller's profile: the registered SSH keys are the only part that is kept here.

        Raises NotSupported for other parts, Forbidden, NoSuchUser, InvalidParameters for an invalid key.
        """
        account = self._account(user, name)
        if account.name != user.name:
            raise Forbidden("Only its user may change a profile.", hint=f"Ask {account.name}.")
        data = change.data
        changes_account = data.username not in (None, account.name) or data.email not in (None, account.email)
        if changes_account or data.new_password is not None:
            raise NotSupported(
                "Names, passwords and mail addresses are kept in the backend's configuration.",
                hint="Ask the administrator to change api.users.",
            )
        if data.extension is not None and data.extension.ssh_keys is not None:
            wanted = [
                NewKey.model_validate({"publicKey": key.value, "comment": key.title}) for key in data.extension.ssh_keys
            ]
            await KeyService(self._ctx, source).replace(user, wanted)
        return ChangedUser(**dict(await self._user(account)))

    def _account(self, user: User, name: str) -> Account:
        wanted = user.name if name == ME else name
        if wanted != user.name and not user.admin:
            raise Forbidden("Profiles of other users are shown to admins only.", hint="Ask for /api/v2/users/me.")
        account = self._ctx.identity.accounts.get(wanted)
        if account is None:
            raise NoSuchUser(f"There is no user {wanted[:100]!r}.", hint="`GET /api/v2/users` lists all.")
        return account

    async def _user(self, account: Account) -> UserWire:
        keys = await self._ctx.store.keys(account.name)
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


def _require_person(user: User) -> None:
    if user.application:
        raise Forbidden(
            "An application token cannot manage tokens.", hint="Sign in, or use the token of the configuration."
        )


def _shown(token: AccessToken) -> TokenWire:
    return TokenWire(
        id=token.digest[:ID_DIGITS],
        application=token.application,
        created_time=milliseconds(token.created_at),
        expires_time=milliseconds(token.expires_at) if token.expires_at is not None else None,
    )
