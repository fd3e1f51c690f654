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
from pai_backend.store.tables import metadata
from pai_backend.testing.builders import make_uid


@pytest.mark.parametrize(
    ("query", "index"),
    [
        (lookup.dirty, "ix_jobs_dirty"),
        (lookup.unfinished, "ix_jobs_unsettled"),
        (lambda conn: listing.page(conn, JobFilter(limit=0)), "ix_jobs_submitted_at_uid"),
        (lambda conn: listing.page(conn, JobFilter(user="alice", limit=0)), "ix_jobs_username_submitted_at_uid"),
        (
            lambda conn: listing.page(conn, JobFilter(states=(State.RUNNING,), limit=0)),
            "ix_jobs_state_submitted_at_uid",
        ),
        (listing.counts, "ix_jobs_state_submitted_at_uid"),
        (lambda conn: lookup.find(conn, "alice~job", None), "sqlite_autoindex_jobs"),
        (lambda conn: lookup.by_alias(conn, "job"), "sqlite_autoindex_jobs"),
        (lambda conn: events.of_job(conn, make_uid(1), 0, 10), "sqlite_autoindex_events"),
        (lambda conn: events.recent(conn, "0", None, 10), "INTEGER PRIMARY KEY (rowid>?)"),
        (lambda conn: events.recent(conn, "0", "alice", 10), "INTEGER PRIMARY KEY (rowid>?)"),
    ],
)
def test_a_query_goes_by_its_index_and_sorts_nothing(query: Callable[[Connection], object], index: str) -> None:
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
        plan = " / ".join(row[3] for row in conn.exec_driver_sql(f"EXPLAIN QUERY PLAN {statement}", parameters))  # type: ignore[arg-type]

    assert index in plan
    assert "TEMP B-TREE" not in plan
    assert "SCAN jobs USING INDEX" in plan or "SCAN jobs USING COVERING" in plan or "SCAN" not in plan, plan
