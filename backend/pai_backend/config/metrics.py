"""The keys of what tasks are seen to use."""

from __future__ import annotations

from pydantic import Field

from pai_backend.model.base import Model


class MetricSettings(Model):
    """What tasks are seen to use, and when GPUs count as idle."""

    sample_s: float = Field(
        default=60,
        ge=0.2,
        description="Seconds between two looks at what running tasks use. 10,080 looks are kept of a task: a week of "
        "them at one a minute.",
    )
    idle_gpus_s: float = Field(
        default=7200,
        ge=0,
        description="Seconds for which GPUs of a job must do nothing before an event tells its owner; 0: never.",
    )
