"""The job list: a page of summaries and the count, from columns alone.

How many jobs match is known before the page is read (``tally``, ``matching``), and so is the cheapest of four ways:

- all jobs match, or all of some users: along the order's own index, however far the page is from its beginning;
- few jobs match, and their uids are known: these are read and sorted;
- a good share of those jobs match: along the same index, with a look at each job, until the page is full. Jobs that
  match may be anywhere in the order, even all at its end; so the walk is bounded, and a page that is not full then is
  found in the last way;
- else: those that match are found in ``ix_jobs_filter``, which holds what they are sorted by.

Measured in docs/adr/0011.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sqlalchemy import ColumnElement, Connection, Select, Subquery, UnaryExpression, select
from sqlalchemy.sql.elements import KeyedColumnElement

from pai_backend.model.errors import InvalidParameters
from pai_backend.model.text import Text
from pai_backend.store.base import JobFilter, JobSummary
from pai_backend.store.matching import FILTERED, Findings, Matches, conditions, details, unaided
from pai_backend.store.rows import SUMMARY, to_summary
from pai_backend.store.tables import jobs
from pai_backend.store.tally import Tally, owned, tally

ORDERS: dict[str, str] = {
    "submissionTime": "submitted_at",
    "launchedTime": "launched_at",
    "completedTime": "completed_at",
    "name": "name",
    "username": "username",
    "virtualCluster": "virtual_cluster",
    "state": "state",
    "retries": "retries",
    "totalTaskNumber": "task_count",
    "totalGpuNumber": "gpu_count",
    "jobPriority": "priority",
    # OpenPAI's other spellings (REST v2, parameter order)
    "completionTime": "completed_at",
    "jobName": "name",
    "vc": "virtual_cluster",
}
"""What a list can be ordered by, the summary's field names, and the columns that they are."""

LOOK, STEP = 12.0, 0.5
"""What a look at a job costs, and a step along an index, where a job in ``ix_jobs_filter`` costs 1 (SQLite: 0.2 us)."""

SLACK = 2
"""A walk goes so many times as far as it would have to if those that match were spread evenly."""


@dataclass(frozen=True)
class SortOrder:
    """A column and a direction; the uid makes the order total, so that pages neither overlap nor leave gaps."""

    column: str
    descending: bool

    def by(self, table: Subquery | None = None) -> Sequence[ColumnElement[object]]:
        """What to order ``jobs``, or a part of it, by."""
        columns = jobs.c if table is None else table.c
        first, last = self._directed(columns[self.column]), self._directed(columns["uid"])
        # Jobs that have no such value yet come last either way; the two databases differ about NULL by themselves.
        return (first.nulls_last(), last) if jobs.c[self.column].nullable else (first, last)

    def _directed(self, column: KeyedColumnElement[object]) -> UnaryExpression[object]:
        return column.desc() if self.descending else column.asc()


def listed(conn: Connection, which: JobFilter, findings: Findings) -> tuple[list[JobSummary], int]:
    """One page and how many match on all pages together, both of one snapshot.

    Raises InvalidParameters for an unknown order or a negative bound.
    """
    order = _order(which)
    numbers = tally(conn, which)
    matches = findings.matches(conn, which, numbers)
    expected = max(0, min(which.limit, matches.total - which.offset))
    if expected == 0:
        return [], matches.total
    for way in ways(which, order, matches, numbers):
        rows = _read(conn, way, order)
        if len(rows) == expected:
            break
    return rows, matches.total


def _read(conn: Connection, found: Select[tuple[str]], order: SortOrder) -> list[JobSummary]:
    page = found.subquery()
    rows = conn.execute(select(*SUMMARY).join(page, page.c.uid == jobs.c.uid).order_by(*order.by()))
    return [to_summary(row) for row in rows]


def ways(which: JobFilter, order: SortOrder, matches: Matches, numbers: Tally) -> list[Select[tuple[str]]]:
    """The queries for a page's uids that are worth trying, the cheapest first; the last finds all of it."""
    if matches.uids is not None:
        known = select(jobs.c.uid).where(jobs.c.uid.in_(matches.uids)).order_by(*order.by())
        return [_cut(known, which)]
    rows = which.offset + which.limit
    steps_a_row = numbers.all / numbers.of_users
    if matches.total == numbers.of_users and rows * steps_a_row * STEP <= numbers.in_reach:
        return [_cut(_along(which, order), which)]
    found = [_cut(_sorted(which, order), which)]
    looks = SLACK * rows * numbers.of_users // matches.total
    if looks * (LOOK + steps_a_row * STEP) <= numbers.in_reach:
        found.insert(0, _cut(_walk(which, order, looks), which))
    return found


def _cut(found: Select[tuple[str]], which: JobFilter) -> Select[tuple[str]]:
    return found.offset(which.offset).limit(which.limit)


def _along(which: JobFilter, order: SortOrder, *more: ColumnElement[str]) -> Select[tuple[str]]:
    """The jobs of the users that are asked for, in their order: from its index, which has the owners too."""
    found = select(jobs.c.uid, *more) if more else select(jobs.c.uid)
    mine = owned(which, unaided(jobs.c.username), unaided(jobs.c.virtual_cluster))
    return found.where(*mine).order_by(*order.by())


def _walk(which: JobFilter, order: SortOrder, looks: int) -> Select[tuple[str]]:
    """The jobs that match among the first ``looks`` of the order."""
    taken = (jobs.c[name] for name in dict.fromkeys((order.column, *FILTERED)))
    part = _along(which, order, *taken).limit(looks).subquery()
    states = [part.c.state.in_([state.value for state in which.states])] if which.states else []
    return select(part.c.uid).where(*states, *details(which, part)).order_by(*order.by(part))


def _sorted(which: JobFilter, order: SortOrder) -> Select[tuple[str]]:
    """The jobs that match, from the index that has all it takes."""
    found = select(jobs.c.uid, jobs.c[order.column]).where(*conditions(which))
    # The offset of nothing keeps a planner from walking along another index after all.
    part = found.offset(0).subquery()
    return select(part.c.uid).order_by(*order.by(part))


def _order(which: JobFilter) -> SortOrder:
    column = ORDERS.get(which.order)
    if column is None:
        raise InvalidParameters(
            Text("Jobs cannot be ordered by {order}.", order=repr(which.order[:60])),
            hint=Text("Use one of: {orders}.", orders=", ".join(ORDERS)),
        )
    if which.offset < 0 or which.limit < 0:
        raise InvalidParameters(
            Text("`offset` and `limit` cannot be negative."), hint=Text("Leave them out for the first jobs.")
        )
    return SortOrder(column, which.descending)
