"""What is used of a budget equals what usage adds up for the same users, virtual cluster and time."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from hypothesis import given, settings
from hypothesis import strategies as st
from sqlalchemy import create_engine

from pai_backend.model.accounting import HOUR_US, By, Total, totals
from pai_backend.model.budget import Budget, Claim, Per, Resource, Scope, use, window
from pai_backend.store.accounting import periods
from pai_backend.store.budgeting import held_since, spent_since
from pai_backend.store.people_tables import prices as prices_table
from pai_backend.store.tables import stays as stays_table
from tests.support.priced_stays import LATE, PRICES, STAYS, GivenPrices, GivenStay, Ledger

FAR = datetime(2000, 1, 1, tzinfo=UTC)
USERS, CLUSTERS = ("alice", "bob", "carol"), ("default", "research")


@settings(deadline=None, max_examples=80)
@given(
    stays=STAYS,
    prices=PRICES,
    now=st.integers(0, 20_000),
    users=st.one_of(st.none(), st.frozensets(st.sampled_from(USERS))),
    cluster=st.sampled_from(["", *CLUSTERS]),
    per=st.sampled_from(Per),
    resource=st.sampled_from(Resource),
)
def test_use_equals_usage_over_the_end_of_a_month(
    stays: list[GivenStay],
    prices: GivenPrices,
    now: int,
    users: frozenset[str] | None,
    cluster: str,
    per: Per,
    resource: Resource,
) -> None:
    at, ledger = LATE + timedelta(seconds=now), Ledger(stays, prices)
    scope = Scope(group="some", virtual_cluster=cluster)
    budget = Budget("a", scope, resource, per, 1, 80, LATE - timedelta(days=40, seconds=7), LATE, "root")
    claim = Claim(budget, window(budget, at), users)
    begin = claim.window.begin
    engine = create_engine("sqlite://")
    for table in (stays_table, prices_table):
        table.create(engine)  # the others take a tenth of a second for each example
    with engine.begin() as conn:
        ledger.write(conn)
        held = held_since(conn, begin, at)
        for key, cost in spent_since(conn, begin, at).items():
            held[key] += Total(cost=cost)
        by = [By.USER, By.VIRTUAL_CLUSTER, By.JOB, By.DAY]
        summed = totals(periods(conn, FAR, at, None, ()), by, begin, at, prices=ledger.as_prices())
    counted = [(user, vc) for user in users or USERS for vc in CLUSTERS if cluster in ("", vc) and users != frozenset()]
    wanted = sum((each for (user, vc, *_), each in summed.items() if (user, vc) in counted), Total())
    assert wanted.cost == sum(ledger.cost(begin, at, *each) for each in counted)
    assert (
        use(claim, held).used
        == {
            Resource.GPU: wanted.gpu_us,
            Resource.CPU: wanted.cpu_us,
            Resource.MONEY: wanted.cost // HOUR_US,
        }[resource]
    )


@given(at=st.datetimes(datetime(2001, 1, 1), datetime(2100, 1, 1), timezones=st.just(UTC)))
def test_months_follow_each_other(at: datetime) -> None:
    budget = Budget("a", Scope("alice"), Resource.GPU, Per.MONTH, 1, 80, FAR, FAR, "root")
    found = window(budget, at)
    assert found.end is not None
    assert found.begin <= at < found.end
    assert (found.begin.day, found.end.day, found.begin.hour, found.end.hour) == (1, 1, 0, 0)
    assert window(budget, found.end).begin == found.end
    assert window(budget, found.end - timedelta(microseconds=1)) == found
