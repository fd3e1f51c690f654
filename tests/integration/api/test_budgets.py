"""Who sets and sees which budgets, and what they say of use, submissions and trials."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import httpx
import pytest
import pytest_asyncio

from jupyter_pai.commands.budgets import text_of
from pai_backend.model.account import Group, VcGrants
from pai_backend.store.auditing import AuditFilter
from pai_backend.store.grants import Act, UserUpdate
from pai_backend.testing.builders import T0
from tests.integration.api.test_cells import machine
from tests.integration.api.test_trial import asking
from tests.integration.api.test_usage import HOUR, ran
from tests.support.api_site import ALICE, BOB, ROOT, ApiSite, running_api

PATH = "/api/v2/budgets"


@pytest_asyncio.fixture
async def site(tmp_path: Path) -> AsyncIterator[ApiSite]:
    """Alice has held 6 GPU hours in default; a group with Bob; Alice manages research."""
    async with running_api(tmp_path) as found:
        lease = await found.store.leadership.acquire("one", 3600, T0, force=True)
        assert lease is not None
        await ran(found, lease.epoch, 1, "alice", "default", "V100", 2, 3 * HOUR)
        act = Act("root", found.ctx.clock())
        await found.store.groups.add(Group("vision", members=("bob",)), act)
        manages = UserUpdate(grants=VcGrants(frozenset({"default"}), frozenset({"research"})))
        await found.store.grants.change_user("alice", manages, act, session="")
        found.ctx.identity.forget()
        yield found


async def put(site: ApiSite, token: str, **budget: Any) -> httpx.Response:
    async with site.client(token) as client:
        return await client.put(PATH, json={"hours": 10, **budget})


async def seen(site: ApiSite, token: str) -> list[tuple[Any, ...]]:
    async with site.client(token) as client:
        found = (await client.get(PATH)).raise_for_status().json()["data"]
    return sorted((each["user"] or "", each["group"] or "", each["virtualCluster"] or "") for each in found)


def since_t0(hours: float, **budget: Any) -> dict[str, Any]:
    return {"hours": hours, "per": "total", "since": T0.isoformat(), **budget}


@pytest.mark.asyncio
async def test_users_see_what_concerns_them_and_managers_set_what_they_manage(site: ApiSite) -> None:
    for budget in ({"user": "alice"}, {"user": "bob"}, {"group": "vision"}, {"virtualCluster": "default"}):
        assert (await put(site, ROOT, **budget)).status_code == 200
        assert (await put(site, ALICE, **budget)).status_code == 403
        assert (await put(site, BOB, **budget)).status_code == 403
    assert (await put(site, ALICE, virtualCluster="research")).json()["mayChange"] is True
    assert (await put(site, ALICE, virtualCluster="research", user="bob")).status_code == 200
    alice, bob, vision, default = ("alice", "", ""), ("bob", "", ""), ("", "vision", ""), ("", "", "default")
    research, share = ("", "", "research"), ("bob", "", "research")
    assert await seen(site, ROOT) == sorted([alice, bob, vision, default, research, share])
    assert await seen(site, ALICE) == sorted([alice, default, research, share])
    assert await seen(site, BOB) == sorted([bob, vision, default, research, share])


@pytest.mark.asyncio
async def test_only_who_may_set_one_removes_it_and_a_hidden_one_looks_like_none(site: ApiSite) -> None:
    hidden = (await put(site, ROOT, user="bob")).json()["id"]
    theirs = (await put(site, ROOT, user="alice")).json()["id"]
    async with site.client(ALICE) as client:
        answers = [await client.delete(f"{PATH}/{each}") for each in (hidden, "0" * 8, theirs)]
    assert [answer.status_code for answer in answers] == [400, 400, 403]
    assert answers[0].json()["message"].replace(hidden, "0" * 8) == answers[1].json()["message"]
    async with site.client(ROOT) as client:
        assert (await client.delete(f"{PATH}/{hidden}")).status_code == 204
    assert ("bob", "", "") not in await seen(site, ROOT)
    told = await site.store.audit.page(AuditFilter(types=("budget.*",)))
    assert [(each.type, each.by, each.subject) for each in told if each.result == "done"] == [
        ("budget.removed", "root", "user bob"),
        ("budget.set", "root", "user alice"),
        ("budget.set", "root", "user bob"),
    ]


@pytest.mark.asyncio
async def test_what_makes_no_budget_is_refused(site: ApiSite) -> None:
    for budget, status in (
        ({}, 400),
        ({"user": "alice", "group": "vision"}, 400),
        ({"user": "alice", "hours": -1}, 400),
        ({"user": "alice", "warnPercent": 0}, 400),
        ({"user": "alice", "since": T0.isoformat()}, 400),
        ({"user": "alice", "colour": "red"}, 400),
        ({"user": "nobody-known"}, 400),
        ({"group": "unknown"}, 404),
        ({"virtualCluster": "unknown"}, 404),
        ({"user": "alice", "amount": "10"}, 400),
        ({"user": "alice", "resource": "money"}, 400),
        ({"user": "alice", "resource": "money", "hours": None}, 400),
        ({"user": "alice", "resource": "money", "hours": None, "amount": "0.0000001"}, 400),
        ({"user": "alice", "resource": "money", "hours": None, "amount": "-1"}, 400),
        ({"user": "alice", "hours": None}, 400),
    ):
        answer = await put(site, ROOT, **budget)
        assert answer.status_code == status, (budget, answer.text)
    assert await seen(site, ROOT) == []


@pytest.mark.asyncio
async def test_use_is_what_usage_says_and_a_second_setting_changes_it(site: ApiSite) -> None:
    first = (await put(site, ROOT, **since_t0(10, user="alice"))).json()
    assert (first["usedHours"], first["level"], first["ends"]) == (6.0, "ok", None)
    again = (await put(site, ROOT, user="alice", per="total", hours=7)).json()
    assert (again["id"], again["level"]) == (first["id"], "near")
    assert datetime.fromisoformat(again["begins"]) == T0, "its beginning stays"
    assert (await put(site, ROOT, user="alice", per="total", hours=6)).json()["level"] == "used-up"
    month = (await put(site, ROOT, user="alice")).json()
    assert month["id"] != first["id"]
    assert datetime.fromisoformat(month["ends"]) - datetime.fromisoformat(month["begins"]) >= timedelta(days=28)
    async with site.client(ROOT) as client:
        text = text_of((await client.get(PATH)).json())
    assert ["user", "alice", "6", "GPU", "hours", "6.0", "used", "up"] in [
        line.split()[1:9] for line in text.splitlines()
    ]


@pytest.mark.asyncio
async def test_a_budget_of_money_counts_what_hours_cost(site: ApiSite) -> None:
    terms = {"resource": "money", "hours": None, **since_t0(0, user="alice"), "amount": "12"}
    terms["hours"] = None
    assert (await put(site, ALICE, **terms)).status_code == 403
    made = (await put(site, ROOT, **terms)).json()
    assert (made["amount"], made["usedAmount"], made["currency"]) == ("12.00", "0.00", "credits")
    assert (made["hours"], made["usedHours"], made["level"]) == (None, None, "ok")
    async with site.client(ROOT) as client:
        body = {"type": "V100", "hourly": 1.75, "since": T0.isoformat(), "currency": "EUR"}
        (await client.put("/api/v2/prices", json=body)).raise_for_status()
        (now,) = (await client.get(PATH)).json()["data"]
        assert (now["usedAmount"], now["currency"], now["level"]) == ("10.50", "EUR", "near")
        shown = text_of({"data": [now]}).splitlines()[1].split()
        assert shown[1:7] == ["user", "alice", "12.00", "EUR", "10.50", "87"]
    async with site.client(ALICE) as client:
        found = (await client.post("/api/v2/validate", content=asking(1, 1))).json()["warnings"]
        assert [each["code"] for each in found if each["code"].startswith("budget")] == ["budget-near"]
        (text,) = [each["message"] for each in found if each["code"] == "budget-near"]
        assert text.startswith("10.50 of 12.00 EUR of the budget of the user alice since ")
        found = (await client.post("/api/v2/validate", content=asking(1, 0))).json()["warnings"]
        assert not [each for each in found if each["code"].startswith("budget")], "its CPUs cost nothing"


@pytest.mark.asyncio
async def test_who_submits_is_warned(site: ApiSite) -> None:
    async def validated(gpus: int) -> list[str]:
        async with site.client(ALICE) as client:
            answer = (await client.post("/api/v2/validate", content=asking(1, gpus))).raise_for_status().json()
        assert answer["valid"], answer
        return [each["code"] for each in answer["warnings"] if each["code"].startswith("budget")]

    await put(site, ROOT, **since_t0(7, virtualCluster="default"))
    assert (await validated(1), await validated(0)) == (["budget-near"], [])
    await put(site, ROOT, **since_t0(6, virtualCluster="default"))
    assert (await validated(1), await validated(0)) == (["budget-used-up"], [])


@pytest.mark.asyncio
async def test_a_trial_says_for_which_budget_it_would_wait(tmp_path: Path) -> None:
    async with running_api(tmp_path, nodes=[machine("carol")]) as site, site.client(ALICE) as client:
        text = asking(1, 1)
        assert (await client.post("/api/v2/trial", content=text)).json()["outcome"] == "starts"
        await put(site, ROOT, user="alice", hours=0)
        tried = (await client.post("/api/v2/trial", content=text)).json()
        assert (tried["outcome"], tried["waiting"]) == ("waits", None)
        assert tried["held"].startswith("budget used up: the budget of the user alice for ")
        answer = await client.post("/api/v2/trial", content=asking(1, 0))
        assert answer.json()["outcome"] == "starts", "it uses no GPU hours"
