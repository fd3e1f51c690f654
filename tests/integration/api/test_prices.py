"""Who sets prices, and what `pai price` says of them."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import datetime
from pathlib import Path
from typing import Any

import httpx
import pytest
import pytest_asyncio

from pai_backend.model.account import VcGrants
from pai_backend.store.auditing import AuditFilter
from pai_backend.store.grants import Act, UserUpdate
from tests.integration.api.test_key_commands import Pai
from tests.integration.api.test_scopes import token_of
from tests.integration.api.test_users import pai
from tests.support.api_site import ALICE, BOB, ROOT, ApiSite, running_api

PATH = "/api/v2/prices"
__all__ = ["pai"]


@pytest_asyncio.fixture
async def site(tmp_path: Path) -> AsyncIterator[ApiSite]:
    """Alice manages research."""
    async with running_api(tmp_path) as found:
        manages = UserUpdate(grants=VcGrants(frozenset({"default"}), frozenset({"research"})))
        await found.store.grants.change_user("alice", manages, Act("root", found.ctx.clock()), session="")
        found.ctx.identity.forget()
        yield found


async def put(site: ApiSite, token: str, **price: Any) -> httpx.Response:
    async with site.client(token) as client:
        return await client.put(PATH, json={"type": "V100", "hourly": "2.50", **price})


async def seen(site: ApiSite, token: str) -> list[tuple[Any, ...]]:
    async with site.client(token) as client:
        found = (await client.get(PATH)).raise_for_status().json()["data"]
    return [(each["type"], each["hourly"], each["holds"]) for each in found]


@pytest.mark.asyncio
async def test_administrators_set_them_and_all_users_read_them(site: ApiSite) -> None:
    for token in (ALICE, BOB, (await token_of(site, ROOT, "read,admin", virtualCluster="research"))["token"]):
        answer = await put(site, token)
        assert (answer.status_code, answer.json()["message"]) == (403, "Prices are set by administrators.")
        assert await seen(site, token) == []
    limited = (await token_of(site, ROOT, "read"))["token"]
    assert (await put(site, limited)).status_code == 403, "a token for reading alone"
    found = (await put(site, ROOT)).raise_for_status().json()
    assert (found["currency"], found["data"][0]["changedBy"]) == ("credits", "root")
    for token in (ALICE, BOB, ROOT, limited):
        assert await seen(site, token) == [("V100", "2.50", True)]
    told = await site.store.audit.page(AuditFilter(types=("price.*",)))
    assert {(each.type, each.by, each.result) for each in told if each.result != "done"} == {
        ("price.set", user, "ForbiddenUserError") for user in ("alice", "bob", "root")
    }
    assert [(each.subject, each.detail[:24]) for each in told if each.result == "done"] == [
        ("V100", "2.50 credits an hour fro")
    ]


@pytest.mark.asyncio
async def test_a_price_holds_from_its_moment_on(site: ApiSite) -> None:
    await put(site, ROOT, since="2026-01-01T00:00:00Z", hourly=1.1)
    await put(site, ROOT, since="2999-01-01T00:00:00+08:00", hourly="4")
    await put(site, ROOT, type="cpu", hourly="0")
    found = (await put(site, ROOT, hourly="3.000001", currency="CNY")).json()
    rows = [(each["type"], each["hourly"], each["holds"]) for each in found["data"]]
    assert rows == [
        ("V100", "1.10", False),
        ("V100", "3.000001", True),
        ("V100", "4.00", False),
        ("cpu", "0.00", True),
    ]
    assert found["currency"] == "CNY"
    steps = [each for each in found["data"] if each["type"] == "V100"]
    assert [each["until"] for each in steps] == [steps[1]["since"], steps[2]["since"], None]
    assert datetime.fromisoformat(steps[2]["since"]) == datetime.fromisoformat("2998-12-31T16:00:00Z")
    ended = (await put(site, ROOT, hourly=None)).json()["data"]
    assert [(each["hourly"], each["holds"]) for each in ended if each["type"] == "V100"] == [
        ("1.10", False),
        ("3.000001", False),
        (None, True),
    ]


@pytest.mark.asyncio
async def test_what_is_no_price_is_refused(site: ApiSite) -> None:
    for price in (
        {"hourly": "-1"},
        {"hourly": "0.0000001"},
        {"hourly": "1e400"},
        {"hourly": "NaN"},
        {"hourly": "1000000.01"},
        {"hourly": "much"},
        {"hourly": True},
        {"hourly": ["1"]},
        {"type": ""},
        {"type": "a\x00b"},
        {"currency": ""},
        {"currency": "two words"},
        {"since": "2026-01-01T00:00:00"},
        {"colour": "red"},
    ):
        answer = await put(site, ROOT, **price)
        assert (answer.status_code, answer.json()["code"]) == (400, "InvalidParametersError"), (price, answer.text)
    assert await seen(site, ROOT) == []


@pytest.mark.asyncio
async def test_pai_sets_lists_and_removes_them_and_budgets_of_money(pai: Pai) -> None:
    assert (await pai("price", "list"))[:2] == (0, "Nothing has a price.\n")
    made = ("price", "set", "V100", "2.50", "--from", "2026-01-01", "--currency", "EUR")
    code, _, err = await pai(*made)
    assert (code, "Prices are set by administrators." in err) == (2, True)
    assert (await pai(*made, token=ROOT))[0] == 0
    assert (await pai("price", "set", "cpu", "0.02", "--from", "2026-02-03", token=ROOT))[0] == 0
    code, out, _ = await pai("price", "remove", "V100", token=ROOT)
    lines = [line.split() for line in out.splitlines()]
    assert lines[1][:4] == ["V100", "2.50", "EUR", "2026-01-01"]
    assert (lines[2][:2], lines[2][-1]) == (["V100", "none"], "yes")
    assert lines[3] == ["cpu", "0.02", "EUR", "2026-02-03", "-", "yes"]
    for amount in ("2,50", "-1", "1.0000001", "1e3"):
        with pytest.raises(SystemExit, match="2"):
            await pai("price", "set", "V100", amount, token=ROOT)
    code, out, _ = await pai("budget", "set", "1500", "--user", "alice", "--money", token=ROOT)
    assert (code, "1,500.00 EUR for user alice." in out) == (0, True)
    code, out, _ = await pai("budget", "list")
    assert " ".join(out.splitlines()[1].split()[1:7]) == "user alice 1,500.00 EUR 0.00 0"
    code, _, err = await pai("budget", "set", "1", "--user", "alice", "--money", "--cpu", token=ROOT)
    assert (code, "Give --cpu or --money, not both" in err) == (2, True)
    code, out, _ = await pai("budget", "set", "0.5", "--user", "alice", token=ROOT)
    assert (code, "0.5 GPU hours for user alice." in out) == (0, True)
