"""The job list: a page of summaries and the count, from columns alone.

A page is found in an index that holds everything lists filter and order by (``ix_jobs_list``), whatever the filter and
the order: 100,000 jobs are looked through in some 25 ms, and only the rows of the page itself are then read. An index
for each order would be faster where nothing is filtered, and no help where something is. A table of tags to join with
took 150 ms for a tag that half of the jobs have; as texts in the index they take as long as any filter.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pydantic_core import to_json
from sqlalchemy import Column, ColumnElement, Connection, Integer, func, literal, or_, select
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.sql.compiler import SQLCompiler
from sqlalchemy.sql.functions import FunctionElement

from pai_backend.model.errors import InvalidParameters
from pai_backend.store.base import JobFilter, JobSummary
from pai_backend.store.rows import SUMMARY, to_summary
from pai_backend.store.tables import jobs


class _place_in(FunctionElement[int]):  # noqa: N801 — a function of SQL, written as one
    """Where a text holds another, counted from 1, or 0. Each database has a name of its own for it. The case counts."""

    type = Integer()
    inherit_cache = True


@compiles(_place_in, "sqlite")
def _instr(element: _place_in, compiler: SQLCompiler, **options: Any) -> str:
    return f"instr({compiler.process(element.clauses, **options)})"


@compiles(_place_in, "postgresql")
def _strpos(element: _place_in, compiler: SQLCompiler, **options: Any) -> str:
    return f"strpos({compiler.process(element.clauses, **options)})"


# An expression, so that SQLite does not walk the index on names with a look at a wide row for each.
_NAME = jobs.c.name + literal("")

ORDERS: dict[str, ColumnElement[Any]] = {
    "submissionTime": jobs.c.submitted_at,
    "launchedTime": jobs.c.launched_at,
    "completedTime": jobs.c.completed_at,
    "name": _NAME,
    "username": jobs.c.username,
    "virtualCluster": jobs.c.virtual_cluster,
    "state": jobs.c.state,
    "retries": jobs.c.retries,
    "totalTaskNumber": jobs.c.task_count,
    "totalGpuNumber": jobs.c.gpu_count,
    "jobPriority": jobs.c.priority,
    # OpenPAI's other spellings (REST v2, parameter order)
    "completionTime": jobs.c.completed_at,
    "jobName": _NAME,
    "vc": jobs.c.virtual_cluster,
}
"""What a list can be ordered by: the summary's field names."""

_COUNTS = select(jobs.c.state, func.count().label("number")).group_by(jobs.c.state)


def page(conn: Connection, which: JobFilter) -> list[JobSummary]:
    """One page. Raises InvalidParameters for an unknown order or a negative bound."""
    order = _order(which)
    found = select(jobs.c.uid).where(*_conditions(which)).order_by(*order)
    page = found.offset(which.offset).limit(which.limit).subquery()
    rows = conn.execute(select(*SUMMARY).join(page, page.c.uid == jobs.c.uid).order_by(*order))
    return [to_summary(row) for row in rows]


def total(conn: Connection, which: JobFilter) -> int:
    """How many jobs match, on all pages together."""
    return conn.execute(select(func.count()).select_from(jobs).where(*_conditions(which))).scalar_one()


def counts(conn: Connection) -> dict[str, int]:
    """Number of jobs by state; states without jobs are left out."""
    return {row.state: row.number for row in conn.execute(_COUNTS)}


def _conditions(which: JobFilter) -> list[ColumnElement[bool]]:
    conditions: list[ColumnElement[bool]] = []
    if which.user is not None:
        conditions.append(jobs.c.username == which.user)
    if which.usernames:
        conditions.append(jobs.c.username.in_(which.usernames))
    if which.states:
        conditions.append(jobs.c.state.in_([state.value for state in which.states]))
    if which.virtual_clusters:
        conditions.append(jobs.c.virtual_cluster.in_(which.virtual_clusters))
    if which.priorities:
        named = [priority for priority in which.priorities if priority is not None]
        unnamed = [jobs.c.priority.is_(None)] if None in which.priorities else []
        conditions.append(or_(jobs.c.priority.in_(named), *unnamed))
    if which.with_tags:
        conditions.append(or_(*(_has(tag) for tag in which.with_tags)))
    conditions += [~_has(tag) for tag in which.without_tags]
    if which.keyword:
        conditions.append(jobs.c.search.contains(which.keyword.lower(), autoescape=True))
    return conditions


def _has(tag: str) -> ColumnElement[bool]:
    """Whether a job has the tag. By its JSON form with the quotes, so that it is found whole; the case counts."""
    return _place_in(jobs.c.tags, to_json(tag).decode()) > 0


def _order(which: JobFilter) -> Sequence[ColumnElement[Any]]:
    column = ORDERS.get(which.order)
    if column is None:
        raise InvalidParameters(
            f"Jobs cannot be ordered by {which.order[:60]!r}.", hint=f"Use one of: {', '.join(ORDERS)}."
        )
    if which.offset < 0 or which.limit < 0:
        raise InvalidParameters("`offset` and `limit` cannot be negative.", hint="Leave them out for the first jobs.")
    ordered = column.desc() if which.descending else column.asc()
    # The uid makes the order total, so that pages neither overlap nor leave gaps.
    last = jobs.c.uid.desc() if which.descending else jobs.c.uid.asc()
    # Jobs that have no such value yet come last either way; the two databases differ about NULL by themselves.
    can_lack = isinstance(column, Column) and column.nullable
    return (ordered.nulls_last(), last) if can_lack else (ordered, last)
