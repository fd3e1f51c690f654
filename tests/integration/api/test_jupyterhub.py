"""Users of a JupyterHub come with the token that the Hub gave their server."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
import pytest_asyncio

from pai_backend.auth import jupyterhub
from pai_backend.auth.accounts import Accounts
from pai_backend.auth.identity import digest
from pai_backend.auth.jupyterhub import CONFIRM_S, LIFE, REFUSED_S, HubApi, HubTokens
from pai_backend.model.account import Account
from pai_backend.store.grants import Act
from pai_backend.store.sql import Store
from tests.integration.api.test_openpai_jobs import submitted
from tests.support.api_site import ROOT, ApiSite, running_api
from tests.support.played_hub import ANN, SCOPES, PlayedHub, played_hub, token
from tests.support.sealing import KEYS

ADA = token("a")


@pytest_asyncio.fixture
async def hub() -> AsyncIterator[PlayedHub]:
    async with played_hub() as found:
        yield found


@pytest_asyncio.fixture
async def site(hub: PlayedHub, tmp_path: Path) -> AsyncIterator[ApiSite]:
    """An API whose users are those of the Hub, and the usual ones."""
    async with running_api(tmp_path, hub=HubApi(hub.api_url, "pai")) as found:
        await found.store.grants.keep_accounts({"alice": False, "bob": False, "root": True})
        yield found


@dataclass
class Confirmed:
    """Sessions of the Hub's tokens, at times that the test sets."""

    store: Store
    tokens: HubTokens = field(init=False)
    at: float = 0.0
    changes: list[float] = field(default_factory=list)

    @property
    def now(self) -> datetime:
        """The time of day."""
        return datetime(2026, 11, 26, tzinfo=UTC) + timedelta(seconds=self.at)

    async def user(self, text: str) -> str:
        """Whose session it is, or the code of what refuses it."""
        refusal = await self.tokens.confirm(digest(text), text)
        kept = await self.store.tokens.get(digest(text), self.now)
        assert refusal is None or kept is None
        return refusal.code if refusal else kept.user if kept else ""


@pytest_asyncio.fixture
async def confirmed(hub: PlayedHub, tmp_path: Path) -> AsyncIterator[Confirmed]:
    store = Store(f"sqlite:///{tmp_path / 'pai.sqlite'}", KEYS)
    await store.open()
    accounts = Accounts((), (), store.groups.directory)
    found = Confirmed(store)

    def changed() -> None:
        accounts.forget()
        found.changes.append(found.at)

    found.tokens = HubTokens(
        HubApi(hub.api_url, "pai"),
        store.tokens,
        store.external_users,
        now=lambda: found.now,
        changed=changed,
        clock=lambda: found.at,
    )
    yield found
    await store.aclose()


@pytest.mark.asyncio
async def test_a_user_of_the_hub_is_one_here_from_the_first_request_on(site: ApiSite, hub: PlayedHub) -> None:
    async with site.client(ADA) as ann, site.client(ROOT) as root:
        job = await submitted(site, ann)
        told = (await ann.get("/api/v2/users/me")).json()
        listed = (await root.get("/api/v2/users")).json()
        shown = (await ann.get("/api/v2/tokens")).json()["data"]
    assert job.user == "ann"
    assert (told["username"], told["admin"]) == ("ann", False), "who administers the Hub does not administer here"
    assert "ann" in {each["username"] for each in listed}
    assert [(each["name"], each["application"]) for each in shown] == [("JupyterHub", False)]
    assert hub.asked == {ADA: 1}


@pytest.mark.asyncio
async def test_what_the_hub_does_not_know_opens_nothing_and_tokens_of_ours_are_none_of_its_business(
    site: ApiSite, hub: PlayedHub
) -> None:
    async with site.client(token("b")) as stranger, site.client("not-of-a-hub") as other, site.client(ROOT) as root:
        assert (await stranger.get("/api/v2/jobs")).status_code == 401
        assert (await other.get("/api/v2/jobs")).status_code == 401
        assert (await root.get("/api/v2/jobs")).status_code == 200
        names = {each["username"] for each in (await root.get("/api/v2/users")).json()}
    assert hub.asked == {token("b"): 1}
    assert names == {"alice", "bob", "root"}


@pytest.mark.asyncio
@pytest.mark.parametrize(
    "said",
    [
        {**ANN, "scopes": SCOPES[1:]},
        {**ANN, "scopes": ["access:services!service=another"]},
        {**ANN, "scopes": "access:services"},
        {**ANN, "kind": "service"},
        {**ANN, "name": "me"},
        {**ANN, "name": "a/../b"},
        {**ANN, "name": "ALICE"},
        {**ANN, "name": "alice"},
        {**ANN, "name": "root"},
    ],
)
async def test_who_may_not_come_is_told_why(site: ApiSite, hub: PlayedHub, said: object) -> None:
    hub.users[ADA] = said
    async with site.client(ADA) as ann, site.client(ROOT) as root:
        answer = await ann.get("/api/v2/jobs")
        names = {each["username"] for each in (await root.get("/api/v2/users")).json()}
    assert (answer.status_code, answer.json()["code"]) == (403, "ForbiddenUserError")
    assert answer.json()["hint"]
    assert names == {"alice", "bob", "root"}


@pytest.mark.asyncio
@pytest.mark.parametrize("status", [302, 404, 500, 200])
async def test_a_hub_that_does_not_answer_as_one_refuses_for_now(site: ApiSite, hub: PlayedHub, status: int) -> None:
    hub.status = status
    async with site.client(ADA) as ann:
        answer = await ann.get("/api/v2/jobs")
    assert (answer.status_code, answer.json()["code"]) == (503, "UnavailableError")
    assert ADA not in answer.text
    assert hub.asked == {ADA: 1}, "the token goes nowhere else"


@pytest.mark.asyncio
async def test_a_user_who_is_disabled_or_removed_here_does_not_come_back_by_the_hub(site: ApiSite) -> None:
    async with site.client(ADA) as ann, site.client(ROOT) as root:
        assert (await ann.get("/api/v2/jobs")).status_code == 200
        await site.store.grants.lock_out("ann", Act("root", site.ctx.clock()))
        site.ctx.identity.lockouts.forget()
        assert (await ann.get("/api/v2/jobs")).json()["code"] == "LockedOutUserError"
        await site.store.grants.let_in("ann", Act("root", site.ctx.clock()))
        site.ctx.identity.lockouts.forget()
        assert (await ann.get("/api/v2/jobs")).status_code == 200
        assert (await root.delete("/api/v2/users/ann")).is_success
        assert (await ann.get("/api/v2/jobs")).status_code in (401, 403)
        assert "ann" not in {each["username"] for each in (await root.get("/api/v2/users")).json()}


@pytest.mark.asyncio
async def test_a_session_lasts_as_long_as_the_hub_says_so(confirmed: Confirmed, hub: PlayedHub) -> None:
    for confirmed.at in range(0, 3600, 5):
        assert await confirmed.user(ADA) == "ann"
    assert hub.asked[ADA] == 3600 / CONFIRM_S
    assert len(confirmed.changes) <= 2 + 3600 / (LIFE.total_seconds() / 2), "few of its ends are written"
    hub.users.clear()
    assert await confirmed.user(ADA) == "ann"
    confirmed.at += CONFIRM_S
    assert await confirmed.user(ADA) == ""
    hub.users[ADA] = ANN
    confirmed.at += REFUSED_S
    assert await confirmed.user(ADA) == "ann"


@pytest.mark.asyncio
async def test_a_session_outlives_the_hub_by_minutes_only(confirmed: Confirmed, hub: PlayedHub) -> None:
    assert await confirmed.user(ADA) == "ann"
    hub.status = 503
    confirmed.at = LIFE.total_seconds() - 1
    assert await confirmed.user(ADA) == "ann"
    confirmed.at += REFUSED_S
    assert await confirmed.user(ADA) == "UnavailableError"
    hub.status = 0
    confirmed.at += REFUSED_S
    assert await confirmed.user(ADA) == "ann"


@pytest.mark.asyncio
async def test_a_token_that_passes_to_another_user_takes_no_session_along(confirmed: Confirmed, hub: PlayedHub) -> None:
    assert await confirmed.user(ADA) == "ann"
    hub.users[ADA] = {**ANN, "name": "bob"}
    confirmed.at += CONFIRM_S
    assert await confirmed.user(ADA) == "bob"


@pytest.mark.asyncio
async def test_a_user_of_the_past_is_not_the_hubs(confirmed: Confirmed) -> None:
    act = Act("root", confirmed.now)
    await confirmed.store.grants.add_user(Account("ann"), act, again=False)
    await confirmed.store.grants.remove_user("ann", act)
    assert await confirmed.user(ADA) == "ForbiddenUserError"
    await confirmed.store.grants.add_user(Account("ann"), act, again=True)
    confirmed.at += REFUSED_S + 1
    assert await confirmed.user(ADA) == "ForbiddenUserError", "an administrator may mean another person"


@pytest.mark.asyncio
async def test_a_site_may_have_the_same_people_under_the_same_names(hub: PlayedHub, tmp_path: Path) -> None:
    hub.users[ADA] = {**ANN, "name": "root"}
    async with running_api(tmp_path, hub=HubApi(hub.api_url, "pai", take_names=True)) as site, site.client(ADA) as root:
        await site.store.grants.keep_accounts({"alice": False, "bob": False, "root": True})
        assert (await root.get("/api/v2/users/me")).json()["admin"] is True


@pytest.mark.asyncio
async def test_many_requests_ask_the_hub_once_and_strangers_keep_nobody_waiting(
    confirmed: Confirmed, hub: PlayedHub, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(jupyterhub, "STRANGERS", 3)
    assert await confirmed.user(ADA) == "ann"
    hub.gate.clear()
    strangers = [asyncio.create_task(confirmed.user(f"{number:032x}")) for number in range(6)]
    confirmed.at += CONFIRM_S
    own = [asyncio.create_task(confirmed.user(ADA)) for _ in range(20)]
    await hub.until_asked(ADA, 2)
    hub.gate.set()
    assert {*await asyncio.gather(*own)} == {"ann"}
    assert sorted(await asyncio.gather(*strangers)) == ["", "", "", *["UnavailableError"] * 3]
    assert hub.asked[ADA] == 2
