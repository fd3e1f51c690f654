"""Signing in and tokens, with OpenPAI's paths."""

from __future__ import annotations

from pai_backend.api.base import ApiHandler
from pai_backend.api.openpai.wire import (
    Message,
    NewToken,
    SignedIn,
    SignInInfo,
    TokenList,
)
from pai_backend.api.operation import Operation, operation
from pai_backend.api.people_queries import PasswordLogin, ProviderLogin, TokenQuery
from pai_backend.api.services.identity import IdentityService
from pai_backend.model.errors import (
    Forbidden,
    LockedOut,
    NoSuchToken,
    NotSupported,
    NoVirtualCluster,
    TooManyRequests,
    Unauthorized,
    Unavailable,
    WrongPassword,
)

LOGIN_PATH = "/api/v1/authn/basic/login"
PROVIDER_LOGIN_PATH = "/api/v2/authn/oidc/login"


class _IdentityHandler(ApiHandler):
    """A handler with the identity service."""

    @property
    def identity(self) -> IdentityService:
        """The service."""
        return IdentityService(self.ctx)


class AuthnInfoHandler(_IdentityHandler):
    """``/api/v2/authn/info``."""

    public = True

    @operation(Operation("How users sign in.", answer=SignInInfo))
    async def get(self) -> SignInInfo:
        """By name and password, and by a provider of OpenID Connect where there is one."""
        provider = self.identity.provider(PROVIDER_LOGIN_PATH)
        return SignInInfo(authn_type="basic", loginURI=LOGIN_PATH, loginURIMethod="post", provider=provider)


class BasicLoginHandler(_IdentityHandler):
    """``/api/v2/authn/basic/login``."""

    public = True

    @operation(
        Operation(
            "Sign in with name and password.",
            audit="session.begun",
            body=PasswordLogin,
            answer=SignedIn,
            raises=(WrongPassword, TooManyRequests, LockedOut, Unavailable),
        )
    )
    async def post(self, login: PasswordLogin) -> SignedIn:
        """A session's token."""
        return await self.identity.sign_in(login, self.request.remote_ip or "")


class ProviderLoginHandler(_IdentityHandler):
    """``/api/v2/authn/oidc/login``."""

    public = True

    @operation(
        Operation(
            "Sign in with the ID token of a provider of OpenID Connect.",
            audit="session.begun",
            body=ProviderLogin,
            answer=SignedIn,
            raises=(NotSupported, Unauthorized, Forbidden, LockedOut, Unavailable),
        )
    )
    async def post(self, login: ProviderLogin) -> SignedIn:
        """A session's token."""
        return await self.identity.sign_in_by_provider(login, self.request.remote_ip or "")


class TokenLoginHandler(BasicLoginHandler):
    """``/api/v1/token``, the older path of the same."""


class BasicLogoutHandler(_IdentityHandler):
    """``/api/v2/authn/basic/logout``."""

    sets_passwords = True

    @operation(
        Operation(
            "End the session whose token this request has.",
            audit="session.ended",
            answer=Message,
            raises=(NoSuchToken,),
        )
    )
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

    @operation(
        Operation(
            "Make an application token.",
            audit="token.made",
            query=TokenQuery,
            answer=NewToken,
            raises=(Forbidden, NoVirtualCluster),
        )
    )
    async def post(self, query: TokenQuery) -> NewToken:
        """The token, shown this once."""
        return await self.identity.make_token(self.user, query)


class TokenCheckHandler(ApiHandler):
    """``/api/v2/tokens/check``."""

    @operation(Operation("Whether the token of this request is good.", answer=Message))
    async def get(self) -> Message:
        """It is, or this would not answer."""
        return Message(message=f"The token is good; it is {self.user.name}'s.")


class OneTokenHandler(_IdentityHandler):
    """``/api/v2/tokens/{token}``."""

    path_is_secret = True

    @operation(
        Operation(
            "Revoke a token of the caller.", audit="token.revoked", answer=Message, raises=(NoSuchToken, Forbidden)
        )
    )
    async def delete(self, token: str) -> Message:
        """Named by itself or by its id."""
        await self.identity.revoke(self.user, token, self.request.remote_ip or "")
        return Message(message="The token is revoked.")
