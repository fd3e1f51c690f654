"""Prices and what was used at them, on both databases."""

from __future__ import annotations

from datetime import timedelta

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import Connection

from pai_backend.model.account import Group
from pai_backend.model.accounting import HOUR_US, By, Total
from pai_backend.model.budget import Level, Resource, Scope
from pai_backend.model.errors import InvalidParameters
from pai_backend.model.price import CPU, Prices, exact, of_cost
from pai_backend.store import prices as rows
from pai_backend.store.accounting import Question, UsageReport
from pai_backend.store.auditing import AuditFilter
from pai_backend.store.budgeting import held_since, spent_since
from pai_backend.store.grants import Act
from pai_backend.store.prices import PriceChange
from pai_backend.store.sql import Store
from tests.integration.store.test_budgets import ACT, BEGUN, DECEMBER, HOUR, epoch_of, placed, put, used
from tests.support.priced_stays import LATE, PRICES, STAYS, GivenPrices, GivenStay, Ledger

UNIT = 1_000_000


async def price(store: Store, kind: str, hourly: int | None, hours: float, currency: str = "") -> Prices:
    """Set a price from so many hours after ``BEGUN`` on."""
    return await store.prices.change(PriceChange(kind, hourly, BEGUN + hours * HOUR, currency), ACT)


async def cost(store: Store, *by: By, until: timedelta = 9 * HOUR) -> dict[tuple[str, ...], str]:
    report = await store.accounting.report(Question(by, BEGUN - HOUR, BEGUN + until))
    return {key: exact(of_cost(total.cost)) for key, total in report.rows.items()}


@pytest.mark.asyncio
@settings(deadline=None, max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(stays=STAYS, prices=PRICES, now=st.integers(0, 20_000), days=st.integers(0, 45))
async def test_both_databases_add_up_what_each_moment_cost(
    store: Store, stays: list[GivenStay], prices: GivenPrices, now: int, days: int
) -> None:
    ledger, at, begin = Ledger(stays, prices), LATE + timedelta(seconds=now), LATE - timedelta(days=days)

    def spent(conn: Connection) -> tuple[dict[tuple[str, str], int], dict[tuple[str, str], Total]]:
        ledger.write(conn)
        return spent_since(conn, begin, at), held_since(conn, begin, at)

    costs, held = await store._database.write(spent, announce=False)
    assert costs.keys() <= held.keys()
    report = await store.accounting.report(Question([By.USER, By.VIRTUAL_CLUSTER, By.DAY], begin, at))
    summed = dict.fromkeys(held, 0)
    for (user, vc, _), total in report.rows.items():
        summed[user, vc] += total.cost
    expected = {key: ledger.cost(begin, at, *key) for key in held}
    assert summed == expected
    assert {key: costs.get(key, 0) for key in held} == expected
    assert report.whole.cost == sum(expected.values())
    assert await store.prices.all() == (ledger.as_prices() if prices else Prices())


@pytest.mark.asyncio
async def test_a_change_prices_nothing_that_was_used_before_it(store: Store, other_store: Store) -> None:
    epoch = await epoch_of(store)
    await placed(store, epoch, 1, "alice", 2)
    await placed(store, epoch, 2, "bob", 0)
    assert (await other_store.accounting.report(Question([], BEGUN, DECEMBER))).currency is None
    await price(store, "V100", 2_500_000, 0, "EUR")
    assert await cost(store, By.USER, until=2 * HOUR) == {("alice",): "10.00", ("bob",): "0.00"}
    await price(store, "V100", 4 * UNIT, 2)
    await price(store, CPU, 20_000, 2)
    assert await cost(other_store, By.USER, until=2 * HOUR) == {("alice",): "10.00", ("bob",): "0.00"}
    assert await cost(other_store, By.USER, until=3 * HOUR) == {("alice",): "18.00", ("bob",): "0.08"}
    await price(store, "V100", None, 3)
    assert await cost(other_store, By.DAY) == {("2026-11-30",): "18.08", ("2026-12-01",): "0.48"}
    assert await cost(store) == {(): "18.56"}


@pytest.mark.asyncio
async def test_prices_are_a_timetable(store: Store) -> None:
    async def kept() -> list[tuple[float, int | None]]:
        steps = (await store.prices.all()).of.get("V100", ())
        return [((each.since - BEGUN) / HOUR, each.hourly) for each in steps]

    await price(store, "V100", None, 0)
    assert not await store.prices.all(), "it had no price"
    await price(store, "V100", 1, 0)
    await price(store, "V100", 5, 10)
    await price(store, "V100", 3, 5)
    assert await kept() == [(0, 1), (5, 3), (10, 5)], "what was planned stays"
    await price(store, "V100", 4, 5)
    await price(store, "A100", 9, 0)
    assert await kept() == [(0, 1), (5, 4), (10, 5)], "of the same moment the later word counts"
    tariff = (await store.prices.all()).at(BEGUN + 7 * HOUR)
    assert tariff.hourly == {"V100": 4, "A100": 9}
    await price(store, "V100", None, 7)
    assert await kept() == [(0, 1), (5, 4), (7, None)], "and what was planned is gone"
    assert (await store.prices.all()).at(BEGUN + 8 * HOUR).hourly == {"A100": 9}
    await price(store, "V100", None, -1)
    assert await kept() == []
    told = [(each.type, each.subject) for each in await store.audit.page(AuditFilter(types=("price.*",)))]
    assert told[:2] == [("price.removed", "V100")] * 2
    assert len(told) == 8


@pytest.mark.asyncio
async def test_the_currency_is_one_word_for_all(store: Store) -> None:
    assert (await price(store, "V100", 1, 0)).currency == "credits"
    assert (await price(store, "A100", 1, 0, "EUR")).currency == "EUR"
    assert (await price(store, "A100", 2, 5)).currency == "EUR", "as before"
    assert (await price(store, CPU, None, 0, "CNY")).currency == "CNY", "though nothing had a price"


@pytest.mark.asyncio
async def test_there_are_not_too_many(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rows, "MOST", 1)
    await price(store, "V100", 1, 0)
    await price(store, "V100", 2, 0)
    with pytest.raises(InvalidParameters, match="1 prices, which is the limit"):
        await price(store, "V100", 3, 1)
    assert (await store.prices.all()).at(BEGUN).hourly == {"V100": 2}


@pytest.mark.asyncio
async def test_a_budget_of_money_is_used_at_the_prices_of_its_time(store: Store) -> None:
    epoch = await epoch_of(store)
    await placed(store, epoch, 1, "alice", 2)
    await store.budgets.put(await put(store, Scope("alice")), ACT, keep_since=True)
    for amount, resource in ((10 * UNIT, Resource.MONEY), (20 * UNIT, Resource.CPU)):
        await put(store, Scope("alice"), limit=amount, resource=resource)

    async def money(hours: float) -> tuple[int, Level, str]:
        found = await store.budgets.uses(BEGUN + hours * HOUR)
        (each,) = [each for each in found if each.claim.budget.resource is Resource.MONEY]
        return each.used, each.level, each.claim.tariff.currency

    assert await money(1) == (0, Level.OK, "credits")
    await price(store, "V100", 2 * UNIT, 0, "EUR")
    assert await money(1) == (4 * UNIT, Level.OK, "EUR")
    await price(store, "V100", 4 * UNIT, 1)
    assert await money(1) == (4 * UNIT, Level.OK, "EUR")
    assert await money(1.5) == (8 * UNIT, Level.NEAR, "EUR")
    assert (await money(1.75 - 1e-9))[1] is Level.NEAR
    assert (await money(1.75))[1] is Level.USED_UP
    assert (await money(3))[1] is Level.OK, "in December it begins again"
    assert (await used(store, BEGUN + HOUR)).keys() == {"user alice"}
    details = [each.detail for each in await store.audit.page(AuditFilter(types=("budget.set",)))]
    assert "10.00 credits each month, warns at 80 %" in details


@pytest.mark.asyncio
async def test_hours_by_group_are_of_its_members_now_and_the_whole_counts_each_once(store: Store) -> None:
    epoch = await epoch_of(store)
    for number, user in enumerate(("alice", "bob", "carol"), 1):
        await placed(store, epoch, number, user, 1)
    await price(store, "V100", UNIT, 0)
    act = Act("root", BEGUN)
    await store.groups.add(Group("vision", members=("alice", "bob")), act)
    await store.groups.add(Group("audio", members=("alice",)), act)

    async def report(*by: By) -> UsageReport:
        return await store.accounting.report(Question(by, BEGUN, BEGUN + HOUR, daily=True))

    found = await report(By.GROUP)
    assert {key: total.gpu_us // HOUR_US for key, total in found.rows.items()} == {
        ("vision",): 2,
        ("audio",): 1,
        ("",): 1,
    }
    assert (found.whole.gpu_us, found.whole.cost) == (3 * HOUR_US, 3 * UNIT * HOUR_US)
    assert found.daily["vision", "2026-11-30"].cost == 2 * UNIT * HOUR_US
    assert (await report(By.GROUP, By.USER)).rows.keys() == {
        ("vision", "alice"),
        ("audio", "alice"),
        ("vision", "bob"),
        ("", "carol"),
    }
