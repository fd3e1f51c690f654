"""Which ID tokens of a provider open the backend, and whom they make of those who show them."""

from __future__ import annotations

import asyncio
import base64
import hmac
import json
import time
from collections.abc import AsyncIterator
from pathlib import Path

import httpx
import pytest
import pytest_asyncio

from pai_backend.auth.oidc import OidcProvider
from pai_backend.auth.provider_sign_ins import ProviderTerms
from pai_backend.store.grants import Act
from tests.support.api_site import ROOT, ApiSite, running_api
from tests.support.played_provider import CLIENT, PlayedProvider, new_key, played_provider

LOGIN = "/api/v2/authn/oidc/login"
TERMS = ProviderTerms(has_groups=True, admin_group="operators")


class Clock:
    """Seconds that a test lets pass, for the keys that are remembered."""

    at = 0.0


@pytest_asyncio.fixture
async def provider() -> AsyncIterator[PlayedProvider]:
    async with played_provider() as found:
        yield found


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def terms() -> ProviderTerms:
    return TERMS


@pytest_asyncio.fixture
async def site(provider: PlayedProvider, clock: Clock, terms: ProviderTerms, tmp_path: Path) -> AsyncIterator[ApiSite]:
    known = OidcProvider(provider.issuer, CLIENT, "preferred_username", "groups", clock=lambda: clock.at)
    async with running_api(tmp_path, provider=(known, terms)) as found:
        await found.store.grants.keep_accounts({"alice": False, "bob": False, "root": True})
        yield found


async def shown(site: ApiSite, token: str) -> httpx.Response:
    """The answer to who shows this ID token."""
    async with site.client(None) as client:
        return await client.post(LOGIN, json={"idToken": token})


async def users(site: ApiSite) -> dict[str, list[str]]:
    """Groups by user, with the administrators' own."""
    async with site.client(ROOT) as root:
        return {each["username"]: each["grouplist"] for each in (await root.get("/api/v2/users")).json()}


async def group(site: ApiSite, name: str, there: str = "") -> None:
    async with site.client(ROOT) as root:
        body = {"groupname": name, "externalName": there}
        (await root.post("/api/v2/groups", json=body)).raise_for_status()


@pytest.mark.asyncio
async def test_who_signed_in_at_the_provider_has_a_session(site: ApiSite, provider: PlayedProvider) -> None:
    async with site.client(None) as stranger:
        info = (await stranger.get("/api/v2/authn/info")).json()
    assert info["provider"] == {
        "issuer": provider.issuer,
        "clientId": CLIENT,
        "scopes": ["openid", "profile"],
        "loginURI": LOGIN,
    }
    answer = await shown(site, provider.token())
    assert (answer.status_code, answer.json()["user"], answer.json()["admin"]) == (200, "ann", False)
    async with site.client(answer.json()["token"]) as ann:
        (session,) = (await ann.get("/api/v2/tokens")).json()["data"]
    assert session["name"] == provider.issuer
    assert session["expiresTime"] / 1000 == pytest.approx(time.time() + 12 * 3600, abs=120)


@pytest.mark.asyncio
@pytest.mark.parametrize(
    "changes",
    [
        {"iss": "https://another.example"},
        {"iss": None},
        {"aud": "another"},
        {"aud": ["another", "more"]},
        {"aud": None},
        {"aud": [CLIENT, "another"], "azp": "another"},
        {"sub": None},
        {"sub": ""},
        {"exp": 1},
        {"exp": None},
        {"iat": None},
        {"iat": 1},
        {"iat": 99_999_999_999},
        {"iat": "now"},
        {"nbf": 99_999_999_999},
        {"preferred_username": None},
        {"preferred_username": ["ann"]},
        {"groups": None},
        {"groups": {"/lab/vision": True}},
    ],
    ids=str,
)
async def test_a_token_that_is_not_for_here_and_now_is_refused(
    site: ApiSite, provider: PlayedProvider, changes: dict[str, object]
) -> None:
    answer = await shown(site, provider.token(**changes))
    assert (answer.status_code, answer.json()["code"]) == (401, "UnauthorizedUserError")
    assert answer.json()["hint"]
    assert "ann" not in await users(site)


def by_another(token: str, algorithm: str, key: bytes = b"") -> str:
    """The token's claims below a header that names another algorithm, signed by what all know, or not."""
    header = encoded(json.dumps({"alg": algorithm, "kid": "first"}).encode())
    signed = f"{header}.{token.split('.')[1]}"
    return f"{signed}.{encoded(hmac.digest(key, signed.encode(), 'sha256')) if key else ''}"


def encoded(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


@pytest.mark.asyncio
async def test_a_token_that_the_provider_did_not_sign_is_refused(site: ApiSite, provider: PlayedProvider) -> None:
    good = provider.token()
    forged = [
        provider.signed(new_key("first")),
        provider.signed(new_key("unknown")),
        by_another(good, "HS256", provider.keys[0].as_pem(private=False)),
        by_another(good, "none"),
        by_another(good, "RS256"),
        good[:-8] + "AAAAAAAA",
        good.replace(".", "", 1),
        "x",
        "..",
        "é.é.é",
        "a" * 32_000,
    ]
    for token in forged:
        answer = await shown(site, token)
        assert (answer.status_code, answer.json()["code"]) == (401, "UnauthorizedUserError"), token[:60]
        assert token[:200] not in answer.text or len(token) < 3
    assert "ann" not in await users(site)
    assert provider.fetched == 1, "forged tokens do not make the backend ask the provider"


@pytest.mark.asyncio
async def test_a_token_is_good_for_one_sign_in(site: ApiSite, provider: PlayedProvider) -> None:
    token = provider.token()
    answers = await asyncio.gather(*(shown(site, token) for _ in range(5)))
    assert sorted(each.status_code for each in answers) == [200, 401, 401, 401, 401]


@pytest.mark.asyncio
async def test_keys_that_the_provider_changes_are_fetched_once_a_minute(
    site: ApiSite, provider: PlayedProvider, clock: Clock
) -> None:
    assert (await shown(site, provider.token())).status_code == 200
    provider.keys.append(new_key("second"))
    assert (await shown(site, provider.token(jti="a"))).status_code == 401
    clock.at = 61
    assert (await shown(site, provider.token(jti="b"))).status_code == 200
    del provider.keys[0]
    clock.at = 3601 + 61
    assert (await shown(site, provider.token(jti="c"))).status_code == 200
    assert provider.fetched == 3


@pytest.mark.asyncio
async def test_a_provider_that_says_to_be_another_is_none(site: ApiSite, provider: PlayedProvider) -> None:
    for document in ({"issuer": "https://another.example"}, {"jwks_uri": "file:///etc/passwd"}, {"jwks_uri": None}):
        provider.document = document
        answer = await shown(site, provider.token())
        assert (answer.status_code, answer.json()["code"]) == (503, "UnavailableError")
    provider.document = {}
    assert (await shown(site, provider.token())).status_code == 200


@pytest.mark.asyncio
async def test_a_name_that_another_person_has_opens_nothing(site: ApiSite, provider: PlayedProvider) -> None:
    assert (await shown(site, provider.token())).status_code == 200
    for changes in ({"sub": "f:1234:another"}, {"preferred_username": "alice"}, {"preferred_username": "root"}):
        answer = await shown(site, provider.token(**changes))
        assert (answer.status_code, answer.json()["code"]) == (403, "ForbiddenUserError"), changes
    for name in ("me", "a/b", "ANN", "x" * 65, "-a"):
        assert (await shown(site, provider.token(preferred_username=name, sub=name))).status_code == 403
    async with site.client(ROOT) as root:
        assert (await root.delete("/api/v2/users/ann")).is_success
    assert (await shown(site, provider.token(sub="f:1234:another", jti="b"))).status_code == 403, (
        "whose files would they have?"
    )
    assert [*await users(site)] == ["alice", "bob", "root"]


@pytest.mark.asyncio
@pytest.mark.parametrize("terms", [ProviderTerms(take_names=True)])
async def test_a_site_may_have_the_same_people_under_the_same_names(site: ApiSite, provider: PlayedProvider) -> None:
    answer = await shown(site, provider.token(preferred_username="alice", sub="f:1234:alice"))
    assert answer.json()["user"] == "alice"
    other = await shown(site, provider.token(preferred_username="alice", sub="f:1234:another"))
    assert other.status_code == 403


@pytest.mark.asyncio
async def test_groups_and_administration_are_the_providers_at_each_sign_in(
    site: ApiSite, provider: PlayedProvider
) -> None:
    await group(site, "vision", "/lab/vision")
    await group(site, "speech", "/lab/speech")
    await group(site, "course")
    await shown(site, provider.token())
    async with site.client(ROOT) as root:
        change = {"username": "ann", "grouplist": ["vision", "course"]}
        (await root.put("/api/v2/users/ann", json={"data": change})).raise_for_status()
    assert {"vision", "course"} <= {*(await users(site))["ann"]}
    answer = await shown(site, provider.token(groups=["/lab/speech", "operators"]))
    assert answer.json()["admin"] is True
    assert {"speech", "course", "admingroup"} <= {*(await users(site))["ann"]}
    assert "vision" not in (await users(site))["ann"]
    answer = await shown(site, provider.token(groups=[]))
    assert answer.json()["admin"] is False
    assert {"speech", "admingroup"} & {*(await users(site))["ann"]} == set()


@pytest.mark.asyncio
async def test_who_is_locked_out_here_is_not_let_in_by_the_provider(site: ApiSite, provider: PlayedProvider) -> None:
    assert (await shown(site, provider.token())).status_code == 200
    await site.store.grants.lock_out("ann", Act("root", site.ctx.clock()))
    site.ctx.identity.lockouts.forget()
    answer = await shown(site, provider.token(jti="again"))
    assert (answer.status_code, answer.json()["code"]) == (403, "LockedOutUserError")


@pytest.mark.asyncio
async def test_without_a_provider_no_token_opens_anything(tmp_path: Path, provider: PlayedProvider) -> None:
    async with running_api(tmp_path) as site, site.client(None) as stranger:
        answer = await stranger.post(LOGIN, json={"idToken": provider.token()})
        info = (await stranger.get("/api/v2/authn/info")).json()
    assert answer.status_code == 400
    assert info["provider"] is None
