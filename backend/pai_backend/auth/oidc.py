"""What a provider of OpenID Connect says of a user who has signed in there: the ID token, checked.

``pai login`` is the provider's client and signs its user in; the backend is shown the ID token that came of it. Source:
OpenID Connect Core 1.0 §3.1.3.7, Discovery 1.0 §4, RFC 8252 (clients that run on a user's computer).
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from joserfc import jwt
from joserfc.errors import JoseError
from joserfc.jwk import KeySet
from tornado.httpclient import AsyncHTTPClient, HTTPError, HTTPRequest

from pai_backend.model.errors import Unauthorized, Unavailable
from pai_backend.model.text import Text

ALGORITHMS = ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "Ed25519", "EdDSA")
"""Those with public keys: with others the key would be a secret that this client does not have."""
LEEWAY_S = 30
"""How far the clocks of provider and backend may be apart."""
YOUNG_S = 300
"""An ID token is shown right after it was made; an older one was not, or the clocks are apart."""
ANSWER_S = 10.0
KNOWN_S = 3600.0
REFETCH_S = 60.0
"""Keys are asked for again when a token names an unknown one, but not more often."""
MOST_BYTES = 1_048_576


@dataclass(frozen=True)
class SignedInThere:
    """A user of the provider."""

    subject: str
    """What the provider knows the user by, for ever."""
    name: str
    groups: frozenset[str]


class OidcProvider:
    """A provider, as its discovery document describes it."""

    def __init__(
        self,
        issuer: str,
        client_id: str,
        name_claim: str,
        groups_claim: str = "",
        *,
        clock: Callable[[], float] = time.monotonic,
        now: Callable[[], float] = time.time,
    ) -> None:
        self.issuer, self.client_id = issuer, client_id
        self._name_claim, self._groups_claim = name_claim, groups_claim
        self._clock, self._now = clock, now
        self._client = AsyncHTTPClient(force_instance=True, max_body_size=MOST_BYTES)
        self._keys: tuple[float, KeySet] | None = None
        self._lock = asyncio.Lock()

    async def who(self, id_token: str) -> SignedInThere:
        """The user whose ID token it is. Raises Unauthorized with the reason, Unavailable when it shows no keys."""
        begun = self._clock()
        keys = await self._keys_since(begun - KNOWN_S)
        try:
            claims = self._claims(id_token, keys)
        except (JoseError, ValueError) as error:
            # The provider may sign by a new key.
            newer = await self._keys_since(begun - REFETCH_S)
            if newer is keys:
                raise _refused(error) from None
            try:
                claims = self._claims(id_token, newer)
            except (JoseError, ValueError) as again:
                raise _refused(again) from None
        return self._user(claims)

    def _claims(self, id_token: str, keys: KeySet) -> Mapping[str, Any]:
        """The claims of a token that is the provider's, for us, and new."""
        claims = jwt.decode(id_token, keys, algorithms=ALGORITHMS).claims
        jwt.JWTClaimsRegistry(
            now=int(self._now()),
            leeway=LEEWAY_S,
            iss={"essential": True, "value": self.issuer},
            aud={"essential": True, "value": self.client_id},
            sub={"essential": True},
            exp={"essential": True},
            iat={"essential": True},
        ).validate(claims)
        if "azp" in claims and claims["azp"] != self.client_id:
            raise ValueError("it was made for another client")
        if claims["iat"] < self._now() - YOUNG_S - LEEWAY_S:
            raise ValueError(f"it is older than {YOUNG_S} s")
        return claims

    def _user(self, claims: Mapping[str, Any]) -> SignedInThere:
        name = inside(claims, self._name_claim)
        if not isinstance(name, str) or not name:
            raise _refused(ValueError(f"it has no claim {self._name_claim}"))
        groups = inside(claims, self._groups_claim) if self._groups_claim else []
        if isinstance(groups, str):
            groups = [groups]
        if not isinstance(groups, list):
            # A provider that tells no groups would take from all users the rights that they have by groups.
            raise _refused(ValueError(f"it has no claim {self._groups_claim}"))
        return SignedInThere(str(claims["sub"]), name, frozenset(map(str, groups)))

    async def _keys_since(self, moment: float) -> KeySet:
        async with self._lock:
            if self._keys is None or self._keys[0] < moment:
                self._keys = self._clock(), await self._fetched_keys()
            return self._keys[1]

    async def _fetched_keys(self) -> KeySet:
        document = await self._json(f"{self.issuer.rstrip('/')}/.well-known/openid-configuration")
        if document.get("issuer") != self.issuer:
            raise _away(f"its discovery document is of {str(document.get('issuer'))[:200]}")
        try:
            return KeySet.import_key_set(await self._json(str(document.get("jwks_uri"))))  # type: ignore[arg-type]
        except (JoseError, ValueError, KeyError, TypeError) as error:
            raise _away(f"its keys cannot be read: {error}") from None

    async def _json(self, url: str) -> dict[str, Any]:
        try:
            request = HTTPRequest(url, connect_timeout=ANSWER_S, request_timeout=ANSWER_S)
            found = json.loads((await self._client.fetch(request)).body)
        except (OSError, HTTPError, ValueError) as error:
            raise _away(f"{url}: {error}") from None
        if not isinstance(found, dict):
            raise _away(f"{url} does not answer with a JSON object")
        return found


def inside(claims: Mapping[str, Any], path: str) -> object:
    """The claim of that name, or where names are divided by points, the one inside others; None without it."""
    if path in claims:
        return claims[path]
    found: object = claims
    for part in path.split("."):
        found = found.get(part) if isinstance(found, Mapping) else None
    return found


def _refused(error: Exception) -> Unauthorized:
    return Unauthorized(
        Text("The provider's ID token is not accepted: {error}.", error=error),
        hint=Text("Sign in again with `pai login`."),
    )


def _away(reason: str) -> Unavailable:
    return Unavailable(
        Text("The provider that signs users in does not answer as one: {reason}.", reason=reason),
        hint=Text("Try again later."),
    )
