"""GPU and CPU hours, by whom and when."""

from __future__ import annotations

from datetime import datetime

from pydantic import Field

from pai_backend.api.wire import Camel


class UsageAmounts(Camel):
    """Hours, and what they cost at the prices of their time."""

    gpu_hours: float = Field(description="Hours for which GPUs were held, each GPU by itself.")
    cpu_hours: float = Field(description="The same of CPUs.")
    cost: str | None = Field(description="A decimal number, rounded to millionths; null without any prices.")


class DailyUsage(Camel):
    """Of each day of `days` the hours and what they cost."""

    gpu_hours: tuple[float, ...]
    cpu_hours: tuple[float, ...]
    cost: tuple[str, ...] | None


class UsageRow(UsageAmounts):
    """Hours that belong together; what they are not told apart by is ``null``."""

    user: str | None
    group: str | None = Field(description="One that administrators have added the user to; empty for users in none.")
    virtual_cluster: str | None
    gpu_type: str | None = Field(description="Empty for tasks without GPUs.")
    day: str | None = Field(description="A day of UTC, such as 2026-11-25.")
    job: str | None = Field(description="The job's uid.")
    quota: str | None = Field(description="`guaranteed`, or `opportunistic` for what was beyond the quota.")
    runs: int = Field(description="Runs of tasks, on each day that they touch.")
    daily: DailyUsage | None = Field(description="The same by day, where that was asked for.")


class Usage(Camel):
    """What was held between two moments."""

    since: datetime
    until: datetime
    currency: str | None = Field(description="Of all costs; null without any prices.")
    total: UsageAmounts = Field(description="All of it, each hour once; the hours of users in several groups, too.")
    days: tuple[str, ...] = Field(
        description="The days of UTC that `daily` is about; empty where it was not asked for."
    )
    data: tuple[UsageRow, ...] = Field(description="The most GPU hours first; by day, the days in order.")
