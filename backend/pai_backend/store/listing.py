"""The job list: a page of summaries and the count, from columns alone."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sqlalchemy import Column, ColumnElement, Connection, func, or_, select

from pai_backend.model.errors import InvalidParameters
from pai_backend.store.base import JobFilter, JobSummary
from pai_backend.store.rows import SUMMARY, to_summary
from pai_backend.store.tables import jobs

ORDERS: dict[str, Column[Any]] = {
    "submissionTime": jobs.c.submitted_at,
    "launchedTime": jobs.c.launched_at,
    "completedTime": jobs.c.completed_at,
    "name": jobs.c.name,
    "username": jobs.c.username,
    "virtualCluster": jobs.c.virtual_cluster,
    "state": jobs.c.state,
    "retries": jobs.c.retries,
    "totalTaskNumber": jobs.c.task_count,
    "totalGpuNumber": jobs.c.gpu_count,
    # OpenPAI's other spellings (REST v2, parameter order)
    "completionTime": jobs.c.completed_at,
    "jobName": jobs.c.name,
    "vc": jobs.c.virtual_cluster,
}
"""What a list can be ordered by: the summary's field names."""

_COUNTS = select(jobs.c.state, func.count().label("number")).group_by(jobs.c.state)


def page(conn: Connection, which: JobFilter) -> tuple[list[JobSummary], int]:
    """The page and the total that match. Raises InvalidParameters for an unknown order or a negative bound."""
    conditions = _conditions(which)
    rows = conn.execute(
        select(*SUMMARY).where(*conditions).order_by(*_order(which)).offset(which.offset).limit(which.limit)
    ).all()
    if which.offset == 0 and len(rows) < which.limit:
        return [to_summary(row) for row in rows], len(rows)
    total = conn.execute(select(func.count()).select_from(jobs).where(*conditions)).scalar_one()
    return [to_summary(row) for row in rows], total


def counts(conn: Connection) -> dict[str, int]:
    """Number of jobs by state; states without jobs are left out."""
    return {row.state: row.number for row in conn.execute(_COUNTS)}


def _conditions(which: JobFilter) -> list[ColumnElement[bool]]:
    conditions: list[ColumnElement[bool]] = []
    if which.user is not None:
        conditions.append(jobs.c.username == which.user)
    if which.states:
        conditions.append(jobs.c.state.in_([state.value for state in which.states]))
    if which.virtual_cluster is not None:
        conditions.append(jobs.c.virtual_cluster == which.virtual_cluster)
    if which.keyword:
        # As in OpenPAI: anywhere in name, user or virtual cluster; the alias is ours.
        columns = (jobs.c.name, jobs.c.alias, jobs.c.username, jobs.c.virtual_cluster)
        conditions.append(or_(*(column.icontains(which.keyword, autoescape=True) for column in columns)))
    return conditions


def _order(which: JobFilter) -> Sequence[ColumnElement[Any]]:
    column = ORDERS.get(which.order)
    if column is None:
        raise InvalidParameters(
            f"Jobs cannot be ordered by {which.order[:60]!r}.", hint=f"Use one of: {', '.join(ORDERS)}."
        )
    if which.offset < 0 or which.limit < 0:
        raise InvalidParameters(
            "`offset` and `limit` cannot be negative.", hint="Leave them out for the first 100 jobs."
        )
    ordered = column.desc() if which.descending else column.asc()
    # The uid makes the order total, so that pages neither overlap nor leave gaps.
    last = jobs.c.uid.desc() if which.descending else jobs.c.uid.asc()
    # Jobs that have no such time yet come last either way; the two databases differ about NULL by themselves.
    return (ordered.nulls_last(), last) if column.nullable else (ordered, last)
