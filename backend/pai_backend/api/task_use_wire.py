"""What tasks use, now and over time. ``null`` is what is not known."""

from __future__ import annotations

from datetime import datetime

from pydantic import Field

from pai_backend.api.wire import Camel


class UsePoint(Camel):
    """A sample, or the mean of those that it stands for."""

    at: datetime
    cpus: float | None = Field(description="CPUs that it kept busy.")
    memory_mb: int | None = Field(description="Memory in MiB.")
    gpu_percent: float | None = Field(description="Share of the time in which its GPUs worked, their mean, in percent.")
    gpu_memory_mb: int | None = Field(description="Memory of its GPUs that is in use, all together, in MiB.")
    idle_gpus: int | None = Field(description="GPUs that did nothing.")


class TaskMetrics(Camel):
    """A task over time, all its runs one after the other, and what it may use."""

    role: str
    index: int
    gpus: int
    cpus: int
    memory_mb: int
    samples: tuple[UsePoint, ...] = Field(description="The oldest first. A task without any was not sampled.")


class JobMetrics(Camel):
    """What the tasks of a job used."""

    sample_s: float = Field(description="Seconds between two looks.")
    tasks: tuple[TaskMetrics, ...] = Field(description="The first 100 of those that were asked for.")


class TaskUseRow(Camel):
    """A running task and what it uses."""

    job: str = Field(description="`user~name` of its job.")
    name: str = Field(description="The job's name.")
    username: str
    virtual_cluster: str
    role: str
    index: int
    node: str
    gpus: int
    cpus: int
    memory_mb: int
    now: UsePoint | None = Field(description="The last sample; null before the first.")
    trend: tuple[UsePoint, ...] = Field(description="As many samples of the last hour as were asked for.")


class TaskUseRows(Camel):
    """Running tasks of the caller's jobs, or of all for an administrator: the first 1,000."""

    data: tuple[TaskUseRow, ...]
    sample_s: float
