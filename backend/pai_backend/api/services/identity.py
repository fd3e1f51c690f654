"""Sessions and tokens, in OpenPAI's shapes."""

from __future__ import annotations

from datetime import timedelta

from pai_backend.api.context import ApiContext
from pai_backend.api.openpai.jobs import milliseconds
from pai_backend.api.openpai.wire import (
    NewToken,
    ProviderInfo,
    SignedIn,
    TokenList,
    TokenWire,
)
from pai_backend.api.people_queries import PasswordLogin, ProviderLogin, TokenQuery
from pai_backend.api.queries import words
from pai_backend.auth.identity import digest
from pai_backend.auth.policy import administers
from pai_backend.auth.users import User
from pai_backend.model.errors import Forbidden, InvalidParameters, NoVirtualCluster
from pai_backend.model.scope import Scope
from pai_backend.model.text import Text
from pai_backend.store.base import AccessToken

WITHIN_ONE = frozenset({Scope.READ, Scope.JOBS, Scope.SSH})
"""What a token for jobs of one virtual cluster may do unless it is said: files, say, belong to none."""
ID_DIGITS = 16  # of a token's digest: enough to name it, of no use to a reader of the database


class IdentityService:
    """Who the caller is and what they sign in with."""

    def __init__(self, ctx: ApiContext) -> None:
        self._ctx = ctx

    async def sign_in(self, login: PasswordLogin, source: str) -> SignedIn:
        """A session for a name and password. Raises WrongPassword, TooManyRequests."""
        password = login.password.get_secret_value()
        token, account = await self._ctx.identity.sign_in(login.username, password, source)
        must_change = account.must_change_password
        return SignedIn(user=account.name, token=token, admin=account.admin, must_change_password=must_change)

    def provider(self, path: str) -> ProviderInfo | None:
        """The provider of OpenID Connect that signs users in; ``path`` takes what comes of it."""
        found = self._ctx.identity.provider
        if found is None:
            return None
        known = found.provider
        return ProviderInfo(
            issuer=known.issuer, client_id=known.client_id, scopes=tuple(found.terms.scopes), loginURI=path
        )

    async def sign_in_by_provider(self, login: ProviderLogin, source: str) -> SignedIn:
        """A session for who has just signed in at the provider. Raises as ``Identity.sign_in_by_provider``."""
        token, account = await self._ctx.identity.sign_in_by_provider(login.id_token.get_secret_value(), source)
        return SignedIn(user=account.name, token=token, admin=account.admin)

    async def tokens(self, user: User) -> TokenList:
        """The caller's sessions and application tokens. Raises Forbidden for application tokens."""
        require_person(user)
        kept = await self._ctx.identity.tokens(user)
        shown = tuple(_shown(token) for token in kept)
        return TokenList(
            tokens=tuple(token.id for token in shown),
            application_tokens=tuple(token.id for token in shown if token.application),
            data=shown,
        )

    async def make_token(self, user: User, query: TokenQuery) -> NewToken:
        """A new application token of the caller. Raises Forbidden for application tokens, InvalidParameters."""
        require_person(user)
        unknown = [each for each in words(query.scopes) if each not in list(Scope)]
        if unknown:
            raise InvalidParameters(
                Text("{unknown} is not a scope.", unknown=repr(unknown[0][:40])),
                hint=Text("Scopes are: {scope}.", scope=", ".join(Scope)),
            )
        scopes = frozenset(map(Scope, words(query.scopes)))
        if query.virtual_cluster:
            self._require_known(user, query.virtual_cluster)
            scopes = scopes or WITHIN_ONE
        life = None if query.lifetime_s is None else timedelta(seconds=query.lifetime_s)
        token = await self._ctx.identity.make_application_token(user, query.name, scopes, life, query.virtual_cluster)
        return NewToken(token=token, application=True, id=digest(token)[:ID_DIGITS])

    def _require_known(self, user: User, wanted: str) -> None:
        """Raises NoVirtualCluster for one that does not exist, or that the user may neither use nor manage."""
        rules, known = self._ctx.rules, self._ctx.virtual_clusters
        if wanted not in known or not (rules.granted(user, wanted) or administers(user, wanted)):
            usable = ", ".join(each for each in known if rules.granted(user, each)) or "none"
            raise NoVirtualCluster(
                Text("There is no virtual cluster {wanted} that you may use.", wanted=repr(wanted[:100])),
                hint=Text("You may use: {usable}.", usable=usable),
            )

    async def revoke(self, user: User, token: str, source: str) -> None:
        """End a token of the caller, by itself or its id. Raises NoSuchToken, Forbidden."""
        require_person(user)
        await self._ctx.identity.revoke(user, token, source)


def require_person(user: User) -> None:
    """Raises Forbidden for application tokens."""
    if user.application:
        raise Forbidden(
            Text("An application token cannot manage tokens."),
            hint=Text("Sign in, or use the token of the configuration."),
        )


def _shown(token: AccessToken) -> TokenWire:
    return TokenWire(
        id=token.digest[:ID_DIGITS],
        application=token.application,
        created_time=milliseconds(token.created_at),
        expires_time=milliseconds(token.expires_at) if token.expires_at is not None else None,
        name=token.name,
        scopes=tuple(sorted(token.scopes)),
        virtual_cluster=token.virtual_cluster or None,
        last_used_time=milliseconds(token.last_used_at) if token.last_used_at is not None else None,
    )
