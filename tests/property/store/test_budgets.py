"""What is used of a budget equals what usage adds up for the same users, virtual cluster and time."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from hypothesis import given, settings
from hypothesis import strategies as st
from sqlalchemy import create_engine

from pai_backend.model.accounting import By, Stay, Total, totals
from pai_backend.model.budget import Budget, Claim, Per, Resource, Scope, use, window
from pai_backend.model.ids import JobUid, TaskUid
from pai_backend.store.accounting import Change, note, periods
from pai_backend.store.budgeting import held_since
from pai_backend.store.tables import stays as table

LATE = datetime(2026, 12, 31, 22, tzinfo=UTC)
FAR = datetime(2000, 1, 1, tzinfo=UTC)
STAYS = st.lists(
    st.tuples(
        st.sampled_from(["alice", "bob", "carol"]),
        st.sampled_from(["default", "research"]),
        st.integers(0, 8),  # GPUs
        st.integers(-3_000_000, 9_000),  # begins so many seconds around the end of a year
        st.one_of(st.none(), st.integers(1, 3_000_000)),  # and lasts so many; None: it goes on
    ),
    max_size=20,
)


@settings(deadline=None, max_examples=80)
@given(
    stays=STAYS,
    now=st.integers(0, 20_000),
    users=st.one_of(st.none(), st.frozensets(st.sampled_from(["alice", "bob", "carol"]))),
    cluster=st.sampled_from(["", "default", "research"]),
    per=st.sampled_from(Per),
    resource=st.sampled_from(Resource),
)
def test_use_equals_usage_over_the_end_of_a_month(
    stays: list[tuple[str, str, int, int, int | None]],
    now: int,
    users: frozenset[str] | None,
    cluster: str,
    per: Per,
    resource: Resource,
) -> None:
    at = LATE + timedelta(seconds=now)
    engine = create_engine("sqlite://")
    table.create(engine)  # the others take a tenth of a second for each example
    with engine.begin() as conn:
        for number, (user, vc, gpus, begins, lasts) in enumerate(stays):
            task = TaskUid(f"task-{number}")
            stay = Stay(task, JobUid(f"j{number:016d}"), user, vc, "V100", gpus, 3, opportunistic=number % 2 == 0)
            began = LATE + timedelta(seconds=begins)
            note(conn, [Change(began, (), (stay,))])
            if lasts is not None:
                note(conn, [Change(began + timedelta(seconds=lasts), (task,), ())])
    scope = Scope(group="some", virtual_cluster=cluster)
    budget = Budget("a", scope, resource, per, 1, 80, LATE - timedelta(days=40, seconds=7), LATE, "root")
    claim = Claim(budget, window(budget, at), users)
    with engine.connect() as conn:
        used = use(claim, held_since(conn, claim.window.begin, at)).used_us
        summed = totals(
            periods(conn, FAR, at, None, ()), [By.USER, By.VIRTUAL_CLUSTER, By.JOB, By.DAY], claim.window.begin, at
        )
    wanted = sum(
        (each for (user, vc, *_), each in summed.items() if (users is None or user in users) and cluster in ("", vc)),
        Total(),
    )
    assert used == (wanted.gpu_us if resource is Resource.GPU else wanted.cpu_us)


@given(at=st.datetimes(datetime(2001, 1, 1), datetime(2100, 1, 1), timezones=st.just(UTC)))
def test_months_follow_each_other(at: datetime) -> None:
    budget = Budget("a", Scope("alice"), Resource.GPU, Per.MONTH, 1, 80, FAR, FAR, "root")
    found = window(budget, at)
    assert found.end is not None
    assert found.begin <= at < found.end
    assert (found.begin.day, found.end.day, found.begin.hour, found.end.hour) == (1, 1, 0, 0)
    assert window(budget, found.end).begin == found.end
    assert window(budget, found.end - timedelta(microseconds=1)) == found
