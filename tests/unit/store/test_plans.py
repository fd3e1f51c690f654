"""The queries that run all day long use their indexes, however many jobs there are (SQLite's planner)."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from functools import partial

import pytest
from sqlalchemy import Connection, create_engine, event

from pai_backend.model.errors import NoSuchJob
from pai_backend.model.job import State
from pai_backend.store import events, listing, lookup, migrate, run_times
from pai_backend.store.base import JobFilter, Sight
from pai_backend.store.cipher import Cipher, new_key
from pai_backend.store.matching import Matches, look_for
from pai_backend.store.tally import Tally
from pai_backend.testing.builders import make_uid

CIPHER = Cipher([new_key()])  # nothing is found, so nothing is opened


@pytest.mark.parametrize(
    ("query", "index"),
    [
        (lookup.dirty, "ix_jobs_dirty"),
        (lookup.unfinished, "ix_jobs_unsettled"),
        (lambda conn: lookup.find(conn, "alice~job", None, CIPHER), "sqlite_autoindex_jobs"),
        (lambda conn: lookup.by_alias(conn, "job", CIPHER), "sqlite_autoindex_jobs"),
        (lambda conn: events.of_job(conn, make_uid(1), 0, 10), "sqlite_autoindex_events"),
        (lambda conn: events.recent(conn, "0", Sight(), 10), "INTEGER PRIMARY KEY (rowid>?)"),
        (lambda conn: events.recent(conn, "0", Sight("alice"), 10), "INTEGER PRIMARY KEY (rowid>?)"),
        (lambda conn: events.recent(conn, "0", Sight("alice", ("vc1",)), 10), "INTEGER PRIMARY KEY (rowid>?)"),
    ],
)
def test_a_query_goes_by_its_index_and_sorts_nothing(query: Callable[[Connection], object], index: str) -> None:
    plan = plan_of(query)

    assert index in plan
    assert "TEMP B-TREE" not in plan
    assert "SCAN jobs USING INDEX" in plan or "SCAN jobs USING COVERING" in plan or "SCAN" not in plan, plan


def test_the_latest_run_times_are_read_along_their_index() -> None:
    assert plan_of(lambda conn: run_times.latest(conn, 10)) == "SCAN run_times USING INDEX ix_run_times_last_at"


ORDERS = sorted(set(listing.ORDERS) - {"completionTime", "jobName", "vc"})
MANY = Tally(all=100_000, of_users=50_000, in_reach=40_000, matching=30_000, changes=1)


def planned(which: JobFilter, matches: Matches) -> list[str]:
    """How the ways to a page would be carried out, in the order in which they are tried."""
    order = listing.SortOrder(listing.ORDERS[which.order], which.descending)
    ways = listing.ways(which, order, matches, MANY)
    return [plan_of(partial(Connection.execute, statement=way)) for way in ways]


@pytest.mark.parametrize("descending", [True, False])
@pytest.mark.parametrize("order", ORDERS)
def test_all_jobs_of_a_user_come_from_the_index_of_their_order_alone(order: str, descending: bool) -> None:
    which = JobFilter(sight=Sight("alice"), order=order, descending=descending, offset=5000)

    (plan,) = planned(which, Matches(MANY.of_users))

    assert f"jobs USING COVERING INDEX ix_jobs_by_{listing.ORDERS[order]}" in plan
    assert "TEMP B-TREE" not in plan


@pytest.mark.parametrize("descending", [True, False])
@pytest.mark.parametrize("order", ORDERS)
def test_a_common_filter_goes_along_the_order_and_may_fall_back_on_the_index_of_filters(
    order: str, descending: bool
) -> None:
    which = JobFilter(
        sight=Sight("alice"), virtual_clusters=("prod",), keyword="bert", order=order, descending=descending
    )

    walk, through_all = planned(which, Matches(MANY.matching))

    assert f"SCAN jobs USING INDEX ix_jobs_by_{listing.ORDERS[order]}" in walk
    assert "jobs USING COVERING INDEX ix_jobs_filter (state=? AND username=?)" in through_all


@pytest.mark.parametrize(
    ("which", "bounds"),
    [
        (JobFilter(keyword="bert"), "(state=?)"),
        (JobFilter(keyword="bert", order="name"), "(state=?)"),
        (JobFilter(sight=Sight("alice"), states=(State.RUNNING,)), "(state=? AND username=?)"),
        (JobFilter(usernames=("alice", "bob"), priorities=(None, "test")), "(state=? AND username=?)"),
        (JobFilter(with_tags=("vision", "paper"), without_tags=("slow",), virtual_clusters=("prod",)), "(state=?)"),
    ],
)
def test_a_rare_match_is_looked_for_without_a_look_at_the_wide_rows(which: JobFilter, bounds: str) -> None:
    (plan,) = planned(which, Matches(2000))
    counting = plan_of(lambda conn: look_for(conn, which))

    assert f"SEARCH jobs USING COVERING INDEX ix_jobs_filter {bounds}" in plan
    assert f"SEARCH jobs USING COVERING INDEX ix_jobs_filter {bounds}" in counting


def test_jobs_that_are_known_are_read_one_by_one() -> None:
    (plan,) = planned(JobFilter(keyword="bert", order="name"), Matches(2, (make_uid(1), make_uid(2))))

    assert "SEARCH jobs USING INDEX sqlite_autoindex_jobs_1 (uid=?)" in plan


def plan_of(query: Callable[[Connection], object]) -> str:
    """How SQLite would carry out the first statement of a query that is not about positions of events."""
    engine = create_engine("sqlite://")
    statements: list[tuple[str, object]] = []

    @event.listens_for(engine, "before_cursor_execute")
    def note(
        _conn: Connection, _cursor: object, statement: str, parameters: object, _context: object, _many: bool
    ) -> None:
        if statement.startswith("SELECT"):
            statements.append((statement, parameters))

    with engine.connect() as conn:
        migrate.to_head(conn)
        statements.clear()
        with contextlib.suppress(NoSuchJob):  # the database is empty; only how it was searched matters
            query(conn)
        statement, parameters = next(item for item in statements if "max(events" not in item[0])
        return " / ".join(row[3] for row in conn.exec_driver_sql(f"EXPLAIN QUERY PLAN {statement}", parameters))  # type: ignore[arg-type]
