"""The queries that run all day long use their indexes, however many jobs there are (SQLite's planner)."""

from __future__ import annotations

import contextlib
from collections.abc import Callable

import pytest
from sqlalchemy import Connection, create_engine, event

from pai_backend.model.errors import NoSuchJob
from pai_backend.model.job import State
from pai_backend.store import events, listing, lookup
from pai_backend.store.base import JobFilter
from pai_backend.store.cipher import Cipher, new_key
from pai_backend.store.tables import metadata
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
        (lambda conn: events.recent(conn, "0", None, 10), "INTEGER PRIMARY KEY (rowid>?)"),
        (lambda conn: events.recent(conn, "0", "alice", 10), "INTEGER PRIMARY KEY (rowid>?)"),
    ],
)
def test_a_query_goes_by_its_index_and_sorts_nothing(query: Callable[[Connection], object], index: str) -> None:
    plan = plan_of(query)

    assert index in plan
    assert "TEMP B-TREE" not in plan
    assert "SCAN jobs USING INDEX" in plan or "SCAN jobs USING COVERING" in plan or "SCAN" not in plan, plan


@pytest.mark.parametrize(
    ("which", "index"),
    [
        (JobFilter(limit=0), "ix_jobs_list"),
        (JobFilter(user="alice", limit=0), "ix_jobs_username_list"),
        (JobFilter(states=(State.RUNNING,), limit=0), "ix_jobs_list"),
        (JobFilter(keyword="bert", limit=0), "ix_jobs_list"),
        (JobFilter(with_tags=("vision", "paper"), without_tags=("slow",), limit=0), "ix_jobs_list"),
        (
            JobFilter(user="alice", virtual_clusters=("prod",), priorities=(None, "test"), limit=0),
            "ix_jobs_username_list",
        ),
        *((JobFilter(order=order, limit=0), "ix_jobs_") for order in listing.ORDERS),
    ],
)
def test_a_page_is_found_without_a_look_at_the_wide_rows(which: JobFilter, index: str) -> None:
    plan = plan_of(lambda conn: listing.page(conn, which))
    counting = plan_of(lambda conn: listing.total(conn, which))

    assert "jobs USING COVERING INDEX" in counting
    assert f"jobs USING COVERING INDEX {index}" in plan
    assert "SCAN jobs USING INDEX" not in plan
    assert "documents" not in plan
    assert "tasks" not in plan


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
        metadata.create_all(conn)
        statements.clear()
        with contextlib.suppress(NoSuchJob):  # the database is empty; only how it was searched matters
            query(conn)
        statement, parameters = next(item for item in statements if "max(events" not in item[0])
        return " / ".join(row[3] for row in conn.exec_driver_sql(f"EXPLAIN QUERY PLAN {statement}", parameters))  # type: ignore[arg-type]
