"""Signing in, tokens and users, with OpenPAI's paths."""

from __future__ import annotations

from pai_backend.api.base import ApiHandler
from pai_backend.api.openpai.wire import (
    ChangedUser,
    Message,
    NewToken,
    SignedIn,
    SignInInfo,
    TokenList,
    UserList,
    UserWire,
)
from pai_backend.api.operation import Operation, operation
from pai_backend.api.queries import NewUser, PasswordLogin, UserChange
from pai_backend.api.services.identity import IdentityService
from pai_backend.api.services.users import UserService
from pai_backend.model.errors import (
    Forbidden,
    InvalidParameters,
    LockedOut,
    NoSuchToken,
    NoSuchUser,
    NotSupported,
    TooManyRequests,
    Unavailable,
    UserExists,
    UserHasJobs,
    WrongPassword,
)

LOGIN_PATH = "/api/v1/authn/basic/login"


class _IdentityHandler(ApiHandler):
    """A handler with the identity service."""

    @property
    def identity(self) -> IdentityService:
        """The service."""
        return IdentityService(self.ctx)


class AuthnInfoHandler(ApiHandler):
    """``/api/v2/authn/info``."""

    public = True

    @operation(Operation("How users sign in.", answer=SignInInfo))
    async def get(self) -> SignInInfo:
        """By name and password."""
        return SignInInfo(authn_type="basic", loginURI=LOGIN_PATH, loginURIMethod="post")


class BasicLoginHandler(_IdentityHandler):
    """``/api/v2/authn/basic/login``."""

    public = True

    @operation(
        Operation(
            "Sign in with name and password.",
            body=PasswordLogin,
            answer=SignedIn,
            raises=(WrongPassword, TooManyRequests, LockedOut, Unavailable),
        )
    )
    async def post(self, login: PasswordLogin) -> SignedIn:
        """A session's token."""
        return await self.identity.sign_in(login, self.request.remote_ip or "")


class TokenLoginHandler(BasicLoginHandler):
    """``/api/v1/token``, the older path of the same."""


class BasicLogoutHandler(_IdentityHandler):
    """``/api/v2/authn/basic/logout``."""

    @operation(Operation("End the session whose token this request has.", answer=Message, raises=(NoSuchToken,)))
    async def delete(self) -> Message:
        """The token is good for nothing from now on; one of the configuration cannot be ended this way."""
        token = self.request.headers.get("Authorization", "").partition(" ")[2].strip()
        await self.identity.revoke(self.user, token, self.request.remote_ip or "")
        return Message(message="The session is ended.")


class TokensHandler(_IdentityHandler):
    """``/api/v2/tokens``."""

    @operation(Operation("The caller's sessions and application tokens.", answer=TokenList, raises=(Forbidden,)))
    async def get(self) -> TokenList:
        """The tokens by their ids."""
        return await self.identity.tokens(self.user)


class ApplicationTokensHandler(_IdentityHandler):
    """``/api/v2/tokens/application``."""

    @operation(Operation("Make an application token.", answer=NewToken, raises=(Forbidden,)))
    async def post(self) -> NewToken:
        """The token, shown this once."""
        return await self.identity.make_token(self.user)


class TokenCheckHandler(ApiHandler):
    """``/api/v2/tokens/check``."""

    @operation(Operation("Whether the token of this request is good.", answer=Message))
    async def get(self) -> Message:
        """It is, or this would not answer."""
        return Message(message=f"The token is good; it is {self.user.name}'s.")


class OneTokenHandler(_IdentityHandler):
    """``/api/v2/tokens/{token}``."""

    @operation(Operation("Revoke a token of the caller.", answer=Message, raises=(NoSuchToken, Forbidden)))
    async def delete(self, token: str) -> Message:
        """Named by itself or by its id."""
        await self.identity.revoke(self.user, token, self.request.remote_ip or "")
        return Message(message="The token is revoked.")


class _UserHandler(ApiHandler):
    """A handler with the users."""

    @property
    def users(self) -> UserService:
        """The service."""
        return UserService(self.ctx, self.request.remote_ip or "")


class UsersHandler(_UserHandler):
    """``/api/v2/users``."""

    @operation(Operation("The users that the caller may see.", answer=UserList))
    async def get(self) -> UserList:
        """All for an admin, oneself for others."""
        return await self.users.users(self.user)

    @operation(
        Operation("Add a user.", body=NewUser, answer=UserWire, status=201, raises=(Forbidden, UserExists, Unavailable))
    )
    async def post(self, new: NewUser) -> UserWire:
        """For administrators. The user can sign in at once, at every process of the backend within 2 s."""
        return await self.users.add(self.user, new)


class OneUserHandler(_UserHandler):
    """``/api/v2/users/{user}``; ``me`` is the caller."""

    @operation(Operation("A user's profile.", answer=UserWire, raises=(NoSuchUser, Forbidden)))
    async def get(self, user: str) -> UserWire:
        """The caller's, or for an admin any user's."""
        return await self.users.user(self.user, user)

    @operation(
        Operation(
            "Change a user: SSH keys, mail address, password, whether they administer.",
            body=UserChange,
            answer=ChangedUser,
            raises=(NoSuchUser, Forbidden, NotSupported, WrongPassword, TooManyRequests),
        )
    )
    async def put(self, user: str, change: UserChange) -> ChangedUser:
        """The profile as it is now."""
        return await self.users.change(self.user, user, change)

    @operation(
        Operation(
            "Remove a user and what lets them in.",
            status=204,
            raises=(NoSuchUser, Forbidden, NotSupported, UserHasJobs, InvalidParameters),
        )
    )
    async def delete(self, user: str) -> None:
        """For administrators. Ended jobs and files of the user stay."""
        await self.users.remove(self.user, user)
