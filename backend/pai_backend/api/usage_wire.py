"""GPU and CPU hours, by whom and when."""

from __future__ import annotations

from datetime import datetime

from pydantic import Field

from pai_backend.api.wire import Camel


class UsageRow(Camel):
    """Hours that belong together; what they are not told apart by is ``null``."""

    user: str | None
    virtual_cluster: str | None
    gpu_type: str | None = Field(description="Empty for tasks without GPUs.")
    day: str | None = Field(description="A day of UTC, such as 2026-11-25.")
    job: str | None = Field(description="The job's uid.")
    quota: str | None = Field(description="`guaranteed`, or `opportunistic` for what was beyond the quota.")
    gpu_hours: float = Field(description="Hours for which GPUs were held, each GPU by itself.")
    cpu_hours: float = Field(description="The same of CPUs.")
    runs: int = Field(description="Runs of tasks, on each day that they touch.")


class Usage(Camel):
    """What was held between two moments."""

    since: datetime
    until: datetime
    data: tuple[UsageRow, ...] = Field(description="The most GPU hours first; by day, the days in order.")
