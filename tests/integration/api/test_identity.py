"""Signing in, tokens, users and limits over HTTP."""

from __future__ import annotations

import asyncio
import base64
import os
import sys
import threading
from collections.abc import AsyncIterator
from pathlib import Path

import httpx
import pytest
import pytest_asyncio
from argon2 import PasswordHasher

from pai_backend.access.keys import make_ed25519
from pai_backend.auth.accounts import hash_password, password_fits
from pai_backend.auth.guessing import FREE, Guesses
from pai_backend.auth.limits import limits
from pai_backend.model.account import Account
from tests.support.api_site import ALICE, BOB, ROOT, ApiSite, running_api
from tests.support.documents import scm_document

PASSWORD = "correct horse"
CAROL = Account("carol", email="carol@example.org", password_hash=hash_password(PASSWORD))
OLA = Account("ola", admin=True, password_hash=hash_password("another one"))


@pytest_asyncio.fixture
async def api(tmp_path: Path) -> AsyncIterator[ApiSite]:
    async with running_api(tmp_path, accounts=[CAROL, OLA]) as site:
        yield site


def bearer(token: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {token}"}


async def signed_in(api: ApiSite, name: str = "carol", password: str = PASSWORD) -> str:
    async with api.client(None) as client:
        answer = await client.post("/api/v1/token", json={"username": name, "password": password, "expiration": 3600})
    assert answer.status_code == 200, answer.text
    token: str = answer.json()["token"]
    return token


@pytest.mark.asyncio
@pytest.mark.parametrize(
    "path", ["/api/v1/token", "/api/v2/token", "/api/v1/authn/basic/login", "/api/v2/authn/basic/login"]
)
async def test_a_name_and_password_make_a_session_at_every_path(api: ApiSite, path: str) -> None:
    body = {"username": "carol", "password": PASSWORD}
    async with api.client(None) as client:
        for answer in (await client.post(path, json=body), await client.post(path, data=body)):
            assert {**answer.json(), "token": ""} == {
                "user": "carol",
                "token": "",
                "admin": False,
                "hasGitHubPAT": False,
                "mustChangePassword": False,
            }
            me = await client.get("/api/v2/users/me", headers=bearer(answer.json()["token"]))
            assert me.json()["username"] == "carol"


@pytest.mark.asyncio
@pytest.mark.parametrize(
    ("name", "password", "code"),
    [
        ("nobody", PASSWORD, "IncorrectPasswordError"),
        ("alice", "whatever", "IncorrectPasswordError"),  # has a token of the configuration, and no password
        ("carol", "wrong", "IncorrectPasswordError"),
        ("carol", "", "IncorrectPasswordError"),
    ],
)
async def test_a_wrong_name_or_password_is_400_as_in_openpai(api: ApiSite, name: str, password: str, code: str) -> None:
    async with api.client(None) as client:
        answer = await client.post("/api/v2/authn/basic/login", json={"username": name, "password": password})
    assert (answer.status_code, answer.json()["code"]) == (400, code)
    assert PASSWORD not in answer.text


@pytest.mark.asyncio
async def test_a_wrong_name_is_as_a_wrong_password(
    api: ApiSite, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """The same words and as many computed hashes; and no name that may be a password is logged."""
    costs: list[str] = []
    verify = PasswordHasher.verify

    def counted(self: PasswordHasher, kept: str, password: bytes) -> bool:
        costs.append(kept.split("$")[3])
        return verify(self, kept, password)

    monkeypatch.setattr(PasswordHasher, "verify", counted)
    async with api.client(None) as client:
        answers = [
            await client.post("/api/v1/token", json={"username": name, "password": "wrong horse"})
            for name in ("carol", "alice", "my-own-password")
        ]
    assert len({(answer.status_code, answer.json()["message"], answer.json()["hint"]) for answer in answers}) == 1
    assert len(costs) == 3
    assert len(set(costs)) == 1
    assert "carol from 127.0.0.1 refused" in caplog.text
    assert "my-own" not in caplog.text
    assert "horse" not in caplog.text


@pytest.mark.asyncio
async def test_guesses_are_locked_out_and_others_are_not(api: ApiSite) -> None:
    async def guess(client: httpx.AsyncClient, name: str) -> int:
        answer = await client.post("/api/v1/token", json={"username": name, "password": "wrong"})
        return answer.status_code

    api.ctx.identity.guesses = Guesses(lambda: 1.0)  # a lock does not end while the test runs
    async with api.client(None) as client:
        first = [await guess(client, "carol") for _ in range(FREE + 1)]
        crowd = asyncio.gather(*(guess(client, "carol" if number % 2 else f"user-{number}") for number in range(40)))
        assert await signed_in(api, "ola", "another one")
        rest = await crowd
        text = (await client.post("/api/v1/token", json={"username": "carol", "password": PASSWORD})).json()
    assert first == [400] * FREE + [429]
    assert set(rest) == {400, 429}
    assert text["code"] == "TooManyRequestsError"


@pytest.mark.asyncio
async def test_likely_guesses_are_checked_by_threads_that_give_way(
    api: ApiSite, monkeypatch: pytest.MonkeyPatch
) -> None:
    found: list[int] = []

    def checked(account: Account | None, password: str) -> bool:
        found.append(os.getpriority(os.PRIO_PROCESS, threading.get_native_id()))
        return password_fits(account, password)

    monkeypatch.setattr("pai_backend.auth.identity.password_fits", checked)
    await signed_in(api)
    api.ctx.identity.guesses.failed(("carol", "127.0.0.1"))
    await signed_in(api)
    before, after = found
    assert before < after if sys.platform == "linux" else before == after


@pytest.mark.asyncio
async def test_refusals_of_the_locked_are_delayed_and_a_bounded_number_at_once(
    api: ApiSite, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pai_backend.auth.identity.HOLD_S", 3600.0)
    monkeypatch.setattr("pai_backend.auth.identity.HELD", 1)
    api.ctx.identity.guesses = Guesses(lambda: 1.0)
    for _ in range(FREE):
        api.ctx.identity.guesses.failed(("carol", "127.0.0.1"))
    body = {"username": "carol", "password": PASSWORD}
    async with api.client(None) as client:
        both = [asyncio.create_task(client.post("/api/v1/token", json=body)) for _ in range(2)]
        answered, held = await asyncio.wait(both, return_when=asyncio.FIRST_COMPLETED)
        for task in held:
            task.cancel()
    assert ([task.result().status_code for task in answered], len(held)) == ([429], 1)


@pytest.mark.asyncio
async def test_a_session_ends_by_logout_or_after_seven_days(api: ApiSite) -> None:
    token, other = await signed_in(api), await signed_in(api)
    async with api.client(None) as client:
        gone = await client.delete("/api/v2/authn/basic/logout", headers=bearer(token))
        assert gone.status_code == 200
        assert (await client.get("/api/v2/tokens/check", headers=bearer(token))).status_code == 401
        assert (await client.get("/api/v2/tokens/check", headers=bearer(other))).status_code == 200
        (listed,) = (await client.get("/api/v2/tokens", headers=bearer(other))).json()["data"]
    assert listed["expiresTime"] - listed["createdTime"] == 7 * 24 * 3600 * 1000


@pytest.mark.asyncio
async def test_an_application_token_works_as_bearer_and_as_basic_password_until_it_is_revoked(api: ApiSite) -> None:
    async with api.client() as alice, api.client(None) as client:
        made = (await alice.post("/api/v2/tokens/application")).json()
        as_basic = {"Authorization": "Basic " + base64.b64encode(f"alice:{made['token']}".encode()).decode()}
        as_other = {"Authorization": "Basic " + base64.b64encode(f"bob:{made['token']}".encode()).decode()}
        ways = [await client.get("/api/v2/jobs", headers=headers) for headers in (bearer(made["token"]), as_basic)]
        stranger = await client.get("/api/v2/jobs", headers=as_other)
        listed = (await alice.get("/api/v2/tokens")).json()
        revoked = await alice.delete(f"/api/v2/tokens/{listed['applicationTokens'][0]}")
        after = await client.get("/api/v2/jobs", headers=bearer(made["token"]))
        again = await alice.delete(f"/api/v2/tokens/{made['token']}")
    assert made["application"] is True
    assert [each.status_code for each in ways] == [200, 200]
    assert stranger.status_code == 401
    assert listed["applicationTokens"] == [made["id"]]
    assert listed["tokens"] == [made["id"]]
    assert revoked.status_code == 200
    assert after.status_code == 401
    assert (again.status_code, again.json()["code"]) == (404, "NoTokenError")


@pytest.mark.asyncio
async def test_a_token_is_revoked_by_itself_too_and_by_its_owner_alone(api: ApiSite) -> None:
    async with api.client() as alice, api.client(BOB) as bob:
        token = (await alice.post("/api/v2/tokens/application")).json()["token"]
        foreign = await bob.delete(f"/api/v2/tokens/{token}")
        own = await alice.delete(f"/api/v2/tokens/{token}")
    assert (foreign.status_code, foreign.json()["code"]) == (404, "NoTokenError")
    assert own.status_code == 200


@pytest.mark.asyncio
async def test_an_application_token_manages_no_tokens(api: ApiSite) -> None:
    async with api.client() as alice, api.client(None) as client:
        headers = bearer((await alice.post("/api/v2/tokens/application")).json()["token"])
        answers = [
            await client.get("/api/v2/tokens", headers=headers),
            await client.post("/api/v2/tokens/application", headers=headers),
            await client.delete("/api/v2/tokens/abcdefabcdef", headers=headers),
            await client.delete("/api/v2/authn/basic/logout", headers=headers),
        ]
    assert [(each.status_code, each.json()["code"]) for each in answers] == [(403, "ForbiddenUserError")] * 4


@pytest.mark.asyncio
async def test_tokens_are_kept_as_digests(api: ApiSite, tmp_path: Path) -> None:
    token = await signed_in(api)
    assert token.encode() not in everything_in(tmp_path)


def everything_in(directory: Path) -> bytes:
    return b"".join(path.read_bytes() for path in directory.iterdir() if path.is_file())


@pytest.mark.asyncio
async def test_an_admin_of_the_configuration_is_one_in_a_session(api: ApiSite) -> None:
    token = await signed_in(api, "ola", "another one")
    async with api.client() as alice, api.client(token) as ola:
        await alice.post("/api/v2/jobs", content=scm_document())
        assert [row["id"] for row in (await ola.get("/api/v2/jobs")).json()] == ["alice~hello"]


@pytest.mark.asyncio
async def test_a_profile_is_shown_to_its_user_and_to_admins(api: ApiSite) -> None:
    async with api.client() as alice, api.client(ROOT) as root:
        mine = (await alice.get("/api/v2/users/me")).json()
        same = [(await alice.get(path)).json() for path in ("/api/v1/user/alice", "/api/v2/user/alice")]
        foreign = await alice.get("/api/v2/users/bob")
        seen = (await root.get("/api/v2/users/carol")).json()
        nobody = await root.get("/api/v2/users/nobody")
        users = [(await client.get("/api/v2/users")).json() for client in (alice, root)]
    assert same == [mine, mine]
    assert mine == {
        "username": "alice",
        "email": "",
        "grouplist": ["default"],
        "admin": False,
        "virtualCluster": ["default", "research"],
        "manages": [],
        "own": {"use": [], "manages": []},
        "disabled": False,
        "mustChangePassword": False,
        "configured": True,
        "storageConfig": [],
        "extension": {"sshKeys": []},
    }
    assert (foreign.status_code, foreign.json()["code"]) == (403, "ForbiddenUserError")
    assert seen["email"] == "carol@example.org"
    assert (nobody.status_code, nobody.json()["code"]) == (400, "NoUserError")
    assert [[user["username"] for user in each] for each in users] == [
        ["alice"],
        ["alice", "bob", "carol", "ola", "root"],
    ]


@pytest.mark.asyncio
async def test_ssh_keys_of_the_profile_are_the_registered_keys(api: ApiSite) -> None:
    first, second = (make_ed25519("")[1] for _ in range(2))
    async with api.client() as alice:
        await alice.post("/api/v2/keys", json={"publicKey": first, "comment": "laptop"})
        shown = (await alice.get("/api/v2/users/me")).json()["extension"]["sshKeys"]
        change = {"data": {"extension": {"sshKeys": [{"title": "desk", "value": second, "time": 1}]}}, "patch": True}
        changed = await alice.put("/api/v2/users/me", json=change)
        kept = (await alice.get("/api/v2/keys")).json()["data"]
        broken = {"data": {"extension": {"sshKeys": [{"title": "x", "value": "ssh-rsa nonsense"}]}}}
        refused = await alice.put("/api/v2/users/me", json=broken)
        still = (await alice.get("/api/v2/keys")).json()["data"]
    assert [(key["title"], key["value"]) for key in shown] == [("laptop", first.strip())]
    assert changed.json()["extension"]["sshKeys"][0]["title"] == "desk"
    assert [key["comment"] for key in kept] == ["desk"]
    assert (refused.status_code, still) == (400, kept)


@pytest.mark.asyncio
@pytest.mark.parametrize("data", [{"newPassword": "a new one"}, {"email": "new@example.org"}, {"username": "x"}])
async def test_what_the_configuration_holds_is_not_changed_over_rest(api: ApiSite, data: dict[str, str]) -> None:
    async with api.client() as alice, api.client(ROOT) as root:
        answer = await alice.put("/api/v2/users/me", json={"data": data, "patch": True})
        foreign = await root.put("/api/v2/users/alice", json={"data": {"extension": {"sshKeys": []}}})
    assert (answer.status_code, answer.json()["code"]) == (400, "NotImplementedError")
    assert (foreign.status_code, foreign.json()["code"]) == (403, "ForbiddenUserError")


@pytest.mark.asyncio
async def test_limits_count_by_user_and_refuse_with_429(tmp_path: Path) -> None:
    async with (
        running_api(tmp_path, rates=limits(lists_per_minute=2, submissions_per_hour=1, clock=lambda: 0.0)) as site,
        site.client() as alice,
        site.client(BOB) as bob,
    ):
        lists = [await alice.get(path) for path in ("/api/v2/jobs", "/api/v1/jobs", "/api/v2/jobs")]
        submissions = [await alice.post("/api/v2/jobs", content=scm_document(name)) for name in ("a", "b")]
        others = [await bob.get("/api/v2/jobs"), await bob.post("/api/v1/jobs", content=scm_document("a"))]
    assert [each.status_code for each in lists] == [200, 200, 429]
    assert lists[-1].json()["code"] == "TooManyRequestsError"
    assert "Try again in" in lists[-1].json()["hint"]
    assert [each.status_code for each in submissions] == [202, 429]
    assert [each.status_code for each in others] == [200, 201]


@pytest.mark.asyncio
@pytest.mark.parametrize("header", ["Basic", "Basic !", "Basic YWxpY2U=", "Digest x", f"Basic {ALICE}", "Bearer"])
async def test_no_other_credential_is_taken(api: ApiSite, header: str) -> None:
    async with httpx.AsyncClient(base_url=api.url) as client:
        answer = await client.get("/api/v2/jobs", headers={"Authorization": header})
    assert (answer.status_code, answer.json()["code"]) == (401, "UnauthorizedUserError")


@pytest.mark.asyncio
async def test_tokens_of_users_are_good_at_the_service_proxy_until_revoked(api: ApiSite) -> None:
    session = await signed_in(api)
    async with api.client(session) as client:
        (await client.post("/api/v2/jobs", content=scm_document())).raise_for_status()
        made = (await client.post("/api/v2/tokens/application")).json()
        for token, status in ((session, 503), (made["token"], 503), ("none", 401)):
            answer = await client.get("/s/hello--web/", headers=bearer(token))
            assert answer.status_code == status, answer.text
        assert (await client.delete(f"/api/v2/tokens/{made['id']}")).status_code == 200
        assert (await client.get("/s/hello--web/", headers=bearer(made["token"]))).status_code == 401
