"""Stays of tasks at their places: written in the transactions that give places and take them back, and kept.

They outlive their jobs, so that what was used in a month stays known.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial

from sqlalchemy import Connection, bindparam, delete, insert, or_, select, update

from pai_backend.model.account import Directory
from pai_backend.model.accounting import By, Period, Stay, Total, totals
from pai_backend.model.errors import InvalidParameters
from pai_backend.model.ids import TaskUid
from pai_backend.model.text import Text
from pai_backend.store import groups
from pai_backend.store.prices import all_prices
from pai_backend.store.repository import Repository
from pai_backend.store.rows import AnyRow
from pai_backend.store.tables import stays as table

MOST_ROWS = 250_000
"""Stays that one question adds up; some seconds of a thread."""

_AT = bindparam("at_", type_=table.c.ended_at.type)
_INSERT = insert(table)
_END = update(table).where(table.c.task == bindparam("task_"), table.c.ended_at.is_(None)).values(ended_at=_AT)
# What began and ended in one transaction's moment lasted for nothing.
_FORGET = delete(table).where(table.c.task == bindparam("task_"), table.c.ended_at <= table.c.began_at)


@dataclass(frozen=True, slots=True)
class Change:
    """Stays that end at a moment, and those that begin then."""

    at: datetime
    ended: Sequence[TaskUid]
    begun: Sequence[Stay]


def note(conn: Connection, changes: Iterable[Change]) -> None:
    """Write these changes, one after the other. In a write transaction."""
    gone, new = list[dict[str, object]](), dict[TaskUid, dict[str, object]]()
    over = list[dict[str, object]]()
    for change in changes:
        for task in change.ended:
            row = new.pop(task, None)
            if row is None:
                gone.append({"task_": task, "at_": change.at})
            elif row["began_at"] != change.at:
                over.append({**row, "ended_at": change.at})
        new.update((stay.task, _values(stay, change.at)) for stay in change.begun)
    if gone:
        conn.execute(_END, gone)
        conn.execute(_FORGET, [{"task_": row["task_"]} for row in gone])
    if over or new:
        conn.execute(_INSERT, [*over, *new.values()])


def _values(stay: Stay, at: datetime) -> dict[str, object]:
    return {
        "task": stay.task,
        "began_at": at,
        "ended_at": None,
        "job": stay.job,
        "username": stay.user,
        "virtual_cluster": stay.virtual_cluster,
        "gpu_type": stay.gpu_type,
        "gpus": stay.gpus,
        "cpus": stay.cpus,
        "opportunistic": stay.opportunistic,
    }


def periods(
    conn: Connection, begin: datetime, end: datetime, users: Sequence[str] | None, clusters: Sequence[str]
) -> list[Period]:
    """Stays that touch the time: of all, or of these users and in these virtual clusters. Raises InvalidParameters."""
    asked = select(table).where(table.c.began_at < end, or_(table.c.ended_at.is_(None), table.c.ended_at > begin))
    if users is not None:
        asked = asked.where(or_(table.c.username.in_(users), table.c.virtual_cluster.in_(clusters)))
    rows = conn.execute(asked.limit(MOST_ROWS + 1)).all()
    if len(rows) > MOST_ROWS:
        raise InvalidParameters(
            Text("More than {most_rows} runs of tasks were there in that time.", most_rows=format(MOST_ROWS, ",")),
            hint=Text("Ask for a shorter time."),
        )
    return [_period(row) for row in rows]


def _period(row: AnyRow) -> Period:
    stay = Stay(
        row.task,
        row.job,
        row.username,
        row.virtual_cluster,
        row.gpu_type,
        row.gpus,
        row.cpus,
        row.opportunistic,
    )
    return Period(stay, row.began_at, row.ended_at)


@dataclass(frozen=True)
class UsageReport:
    """What was held, told apart; all of it together; with ``daily`` the same told apart by day, too.

    ``currency``: None where nothing ever had a price.
    """

    rows: Mapping[tuple[str, ...], Total]
    whole: Total
    daily: Mapping[tuple[str, ...], Total]
    currency: str | None


@dataclass(frozen=True)
class Question:
    """What of the ledger is asked for: of all, or of these users and in these virtual clusters."""

    by: Sequence[By]
    begin: datetime
    end: datetime
    users: Sequence[str] | None = None
    clusters: Sequence[str] = ()
    daily: bool = False


def _report(conn: Connection, asked: Question) -> UsageReport:
    found = periods(conn, asked.begin, asked.end, asked.users, asked.clusters)
    prices = all_prices(conn)
    of_users = _groups_of_users(groups.directory(conn)) if By.GROUP in asked.by else {}
    add_up = partial(totals, found, begin=asked.begin, end=asked.end, prices=prices, groups=of_users)
    rows = add_up(asked.by)
    daily = add_up([*asked.by, By.DAY]) if asked.daily else {}
    whole = add_up([]).get((), Total()) if By.GROUP in asked.by else sum(rows.values(), Total())
    return UsageReport(rows, whole, daily, prices.currency if prices else None)


def _groups_of_users(directory: Directory) -> Mapping[str, Sequence[str]]:
    """The groups that administrators added each user to, as they are now."""
    found = defaultdict[str, list[str]](list)
    for group in sorted(directory.groups.values(), key=lambda group: group.name):
        for user in group.members:
            found[user].append(group.name)
    return found


class Accounting(Repository):
    """What was held by whom."""

    async def report(self, asked: Question) -> UsageReport:
        """What was held, added up in a thread, at the prices of its time.

        Raises InvalidParameters for a time with too many stays.
        """
        return await self._database.read(partial(_report, asked=asked))

    async def totals(
        self,
        by: Sequence[By],
        begin: datetime,
        end: datetime,
        users: Sequence[str] | None = None,
        clusters: Sequence[str] = (),
    ) -> Mapping[tuple[str, ...], Total]:
        """The rows of :meth:`report`."""
        return (await self.report(Question(by, begin, end, users, clusters))).rows
