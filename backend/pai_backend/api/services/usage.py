"""GPU and CPU hours, as far as a user may know them."""

from __future__ import annotations

from datetime import timedelta

from pai_backend.api.context import ApiContext
from pai_backend.api.queries import UsageQuery, words
from pai_backend.api.usage_wire import Usage, UsageRow
from pai_backend.auth.users import User
from pai_backend.model.accounting import HOUR_US, By, Total
from pai_backend.model.errors import InvalidParameters
from pai_backend.model.text import Text

DEFAULT = timedelta(days=30)
LONGEST = timedelta(days=400)


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
        users = None if user.admin else [user.name]
        found = await self._ctx.store.accounting.totals(by, since, until, users, sorted(user.manages))
        rows = [_row(by, key, total) for key, total in found.items()]
        rows.sort(key=lambda row: (row.day or "", -row.gpu_hours, -row.cpu_hours, row.user or "", row.job or ""))
        return Usage(since=since, until=until, data=tuple(rows))


def _row(by: list[By], key: tuple[str, ...], total: Total) -> UsageRow:
    parts = dict(zip(by, key, strict=True))
    return UsageRow(
        user=parts.get(By.USER),
        virtual_cluster=parts.get(By.VIRTUAL_CLUSTER),
        gpu_type=parts.get(By.GPU_TYPE),
        day=parts.get(By.DAY),
        job=parts.get(By.JOB),
        quota=parts.get(By.QUOTA),
        gpu_hours=total.gpu_us / HOUR_US,
        cpu_hours=total.cpu_us / HOUR_US,
        runs=total.stays,
    )
