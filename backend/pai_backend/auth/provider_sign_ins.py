"""Sign-ins of users whom a provider of OpenID Connect knows."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from pai_backend.auth.newcomers import let_come
from pai_backend.auth.oidc import LEEWAY_S, YOUNG_S, OidcProvider
from pai_backend.model.errors import Unauthorized
from pai_backend.model.text import Text
from pai_backend.store.external_users import ExternalUser
from pai_backend.store.grants import Act

if TYPE_CHECKING:
    from pai_backend.store.sql import Store


@dataclass(frozen=True)
class ProviderTerms:
    """What a site has agreed on with its provider."""

    scopes: Sequence[str] = ("openid", "profile")
    has_groups: bool = False
    admin_group: str = ""
    take_names: bool = False
    session: timedelta = timedelta(hours=12)


class ProviderSignIns:
    """Makes users of this backend of those of a provider."""

    def __init__(self, provider: OidcProvider, terms: ProviderTerms, store: Store) -> None:
        self.provider, self.terms = provider, terms
        self._store = store

    async def signed_in(self, id_token: str, now: datetime, source: str) -> str:
        """The name of the user whose ID token it is: they, their groups and rights are here as the provider says.

        Each token is good for one sign-in. Raises Unauthorized, Forbidden when the name is another person's, and
        Unavailable.
        """
        who = await self.provider.who(id_token)
        used = f"id-token:{hashlib.sha256(id_token.encode()).hexdigest()}"
        if not await self._store.secrets.claim(used, now + timedelta(seconds=YOUNG_S + 2 * LEEWAY_S), now):
            raise Unauthorized(
                Text("The provider's ID token was used already."), hint=Text("Sign in again with `pai login`.")
            )
        terms = self.terms
        user = ExternalUser(
            who.name,
            self.provider.issuer,
            who.subject,
            who.groups if terms.has_groups else None,
            terms.admin_group in who.groups if terms.admin_group else None,
        )
        act = Act(who.name, now, source)
        await let_come(self._store.external_users, user, act, take_names=terms.take_names)
        return who.name
