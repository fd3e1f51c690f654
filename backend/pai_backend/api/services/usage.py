"""GPU and CPU hours and what they cost, as far as a user may know them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from pai_backend.api.context import ApiContext
from pai_backend.api.queries import UsageQuery, words
from pai_backend.api.usage_wire import DailyUsage, Usage, UsageAmounts, UsageRow
from pai_backend.auth.users import User
from pai_backend.model.accounting import HOUR_US, By, Total
from pai_backend.model.errors import InvalidParameters
from pai_backend.model.price import exact, of_cost
from pai_backend.model.text import Text
from pai_backend.store.accounting import Question, UsageReport

DEFAULT = timedelta(days=30)
LONGEST = timedelta(days=400)
MOST_DAILY = 100_000
"""Rows times days of an answer; some megabytes."""


class UsageService:
    """Adds up what tasks held."""

    def __init__(self, ctx: ApiContext) -> None:
        self._ctx = ctx

    async def usage(self, user: User, query: UsageQuery) -> Usage:
        """All of it for administrators; what is the user's, or in virtual clusters that they manage, for others.

        Raises InvalidParameters.
        """
        unknown = [each for each in words(query.by) if each not in list(By)]
        if unknown:
            raise InvalidParameters(
                Text("{unknown} tells no hours apart.", unknown=repr(unknown[0][:40])),
                hint=Text("By what: {by}.", by=", ".join(By)),
            )
        by = [By(each) for each in dict.fromkeys(words(query.by))]
        now = self._ctx.clock()
        until = min(query.until or now, now)
        since = query.since or until - DEFAULT
        if since > until or until - since > LONGEST:
            raise InvalidParameters(
                Text("The time must begin before it ends, and be at most 400 days."), hint=Text("Set since and until.")
            )
        if query.daily and By.DAY in by:
            raise InvalidParameters(Text("By day, each row is one day."), hint=Text("Leave out `daily`, or `day`."))
        users = None if user.admin else [user.name]
        question = Question(by, since, until, users, sorted(user.manages), query.daily)
        found = await self._ctx.store.accounting.report(question)
        days = _days(since, until) if query.daily else ()
        if len(days) * len(found.rows) > MOST_DAILY:
            raise InvalidParameters(
                Text("{rows} rows of {days} days are too many.", rows=len(found.rows), days=len(days)),
                hint=Text("Ask for a shorter time."),
            )
        rows = [_row(by, key, found, days) for key in found.rows]
        rows.sort(key=lambda row: (row.day or "", -row.gpu_hours, -row.cpu_hours, row.user or "", row.job or ""))
        whole = UsageAmounts(**_amounts(found.whole, found))
        return Usage(since=since, until=until, currency=found.currency, total=whole, days=days, data=tuple(rows))


def _days(since: datetime, until: datetime) -> tuple[str, ...]:
    """The days of UTC that a time touches."""
    first, last = (at.astimezone(UTC).date() for at in (since, until - timedelta(microseconds=1)))
    return tuple((first + timedelta(days=n)).isoformat() for n in range((last - first).days + 1))


def _amounts(total: Total, report: UsageReport) -> dict[str, Any]:
    cost = None if report.currency is None else exact(of_cost(total.cost))
    return {"gpu_hours": total.gpu_us / HOUR_US, "cpu_hours": total.cpu_us / HOUR_US, "cost": cost}


def _daily(key: tuple[str, ...], report: UsageReport, days: tuple[str, ...]) -> DailyUsage:
    totals = [report.daily.get((*key, day), Total()) for day in days]
    costs = None if report.currency is None else tuple(exact(of_cost(each.cost)) for each in totals)
    gpus = tuple(round(each.gpu_us / HOUR_US, 6) for each in totals)
    return DailyUsage(gpu_hours=gpus, cpu_hours=tuple(round(each.cpu_us / HOUR_US, 6) for each in totals), cost=costs)


def _row(by: list[By], key: tuple[str, ...], report: UsageReport, days: tuple[str, ...]) -> UsageRow:
    parts = dict(zip(by, key, strict=True))
    total = report.rows[key]
    return UsageRow(
        user=parts.get(By.USER),
        group=parts.get(By.GROUP),
        virtual_cluster=parts.get(By.VIRTUAL_CLUSTER),
        gpu_type=parts.get(By.GPU_TYPE),
        day=parts.get(By.DAY),
        job=parts.get(By.JOB),
        quota=parts.get(By.QUOTA),
        runs=total.stays,
        daily=_daily(key, report, days) if days else None,
        **_amounts(total, report),
    )
