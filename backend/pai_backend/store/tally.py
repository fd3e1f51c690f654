"""How many jobs there are, without counting them: from ``job_groups``, which triggers keep."""

from __future__ import annotations

from dataclasses import dataclass

from sqlalchemy import ColumnElement, Connection, and_, func, or_, select, true

from pai_backend.store.base import JobFilter
from pai_backend.store.tables import job_groups as groups

_BY_STATE = select(groups.c.state, func.sum(groups.c.number).label("number")).group_by(groups.c.state)


@dataclass(frozen=True)
class Tally:
    """Numbers for one filter, its keyword, its tags and its GPU types left aside.

    ``all`` are the jobs of the store, ``of_users`` those of the users that are asked for, ``in_reach`` those of them in
    one of the states, ``matching`` those that match. Of one filter ``changes`` grows whenever a matching job came, went
    or got other tags or GPU types.
    """

    all: int
    of_users: int
    in_reach: int
    matching: int
    changes: int


def tally(conn: Connection, which: JobFilter) -> Tally:
    """The numbers for a filter."""
    users = and_(true(), *owned(which, groups.c.username, groups.c.virtual_cluster))
    reach = and_(users, groups.c.state.in_([state.value for state in which.states])) if which.states else users
    matching = and_(reach, *_rest(which))
    numbers = select(
        func.sum(groups.c.number),
        func.sum(groups.c.number).filter(users),
        func.sum(groups.c.number).filter(reach),
        func.sum(groups.c.number).filter(matching),
        func.sum(groups.c.changes).filter(matching),
    )
    # PostgreSQL's sums of large integers are decimals.
    return Tally(*(int(number or 0) for number in conn.execute(numbers).one()))


def owned(
    which: JobFilter, username: ColumnElement[str], virtual_cluster: ColumnElement[str]
) -> list[ColumnElement[bool]]:
    """Conditions that a job belongs to the users that are meant and may be listed; empty for all jobs."""
    found: list[ColumnElement[bool]] = [] if which.owners is None else [username.in_(which.owners)]
    if which.sight.user is not None and which.sight.managed:
        found.append(or_(username == which.sight.user, virtual_cluster.in_(which.sight.managed)))
    if which.sight.within:
        found.append(virtual_cluster == which.sight.within)
    return found


def counts(conn: Connection) -> dict[str, int]:
    """Number of jobs by state; states without jobs are left out."""
    return {row.state: int(row.number) for row in conn.execute(_BY_STATE) if row.number}


def _rest(which: JobFilter) -> list[ColumnElement[bool]]:
    conditions: list[ColumnElement[bool]] = []
    if which.virtual_clusters:
        conditions.append(groups.c.virtual_cluster.in_(which.virtual_clusters))
    if which.priorities:
        conditions.append(groups.c.priority.in_([priority or "" for priority in which.priorities]))
    return conditions
