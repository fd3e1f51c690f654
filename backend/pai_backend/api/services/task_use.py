"""What tasks use: from the series that the controller writes beside the logs."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from datetime import UTC, datetime
from itertools import islice

from pai_backend.api.context import ApiContext
from pai_backend.api.queries import UseOverTimeQuery
from pai_backend.api.services.jobs import JobService
from pai_backend.api.task_use_wire import JobMetrics, TaskMetrics, TaskUseRow, TaskUseRows, UsePoint
from pai_backend.auth.policy import may_see
from pai_backend.auth.users import User
from pai_backend.engine.use_series import UseSample, UseSeries, thinned
from pai_backend.model.errors import NoSuchTask, Unavailable
from pai_backend.model.ids import slot_of
from pai_backend.model.job import Job, Phase, Task
from pai_backend.model.text import Text

MOST_TASKS = 100
MOST_ROWS = 1000
TREND_S = 3600


class TaskUseService:
    """Reads series. Every method waits for the disk in a thread."""

    def __init__(self, ctx: ApiContext) -> None:
        self._ctx = ctx

    async def of_job(self, user: User, name: str, query: UseOverTimeQuery) -> JobMetrics:
        """What the tasks of a job used. Raises NoSuchJob, NoSuchTask, Unavailable."""
        job = await JobService(self._ctx).find(user, name)
        tasks = [task for task in job.tasks if query.role in (None, task.role) and query.index in (None, task.index)]
        if not tasks:
            known = ", ".join(f"{role.name} (0 to {role.instances - 1})" for role in job.spec.task_roles)
            raise NoSuchTask(
                Text("The job {id} has no such task.", id=job.id), hint=Text("Its task roles: {known}.", known=known)
            )
        series, since = await self._series(), self._now() - query.seconds

        def read() -> tuple[TaskMetrics, ...]:
            return tuple(_metrics(series, job, task, since, query.points) for task in tasks[:MOST_TASKS])

        return JobMetrics(sample_s=self._ctx.sample_s, tasks=await asyncio.to_thread(read))

    async def running(self, user: User, points: int) -> TaskUseRows:
        """The running tasks that the user may see, and what they use. Raises Unavailable."""
        jobs = await self._ctx.store.jobs.unfinished()
        seen = list(islice(_running([job for job in jobs if may_see(user, job)]), MOST_ROWS))
        series, since = await self._series(), self._now() - TREND_S

        def read() -> tuple[TaskUseRow, ...]:
            return tuple(_row(job, task, series.read(task.uid, since), points) for job, task in seen)

        return TaskUseRows(data=await asyncio.to_thread(read), sample_s=self._ctx.sample_s)

    def _now(self) -> int:
        return int(self._ctx.clock().timestamp())

    async def _series(self) -> UseSeries:
        """The series of this backend. Raises Unavailable where another process writes them to another directory."""
        place = self._ctx.log_place
        if place is None or await place.is_elsewhere(self._ctx.store.recovery.log_places):
            raise Unavailable(
                Text("What tasks use is written to a log directory that the api process does not have."),
                hint=Text(
                    "Ask an administrator to let all api and controller processes share one log directory "
                    "(docs/operations.md, Logs and files of several replicas)."
                ),
            )
        return UseSeries(place.path)


def _running(jobs: list[Job]) -> Iterator[tuple[Job, Task]]:
    return ((job, task) for job in jobs for task in job.tasks if task.phase is Phase.RUNNING)


def _metrics(series: UseSeries, job: Job, task: Task, since: int, points: int) -> TaskMetrics:
    limits = job.spec.role(task.role).resources
    slot = slot_of(task.uid)
    samples = [sample for uid in series.runs(slot) for sample in series.read(uid, since)]
    return TaskMetrics(
        role=task.role,
        index=task.index,
        gpus=limits.gpus,
        cpus=limits.cpus,
        memory_mb=limits.memory_mb,
        samples=_points(thinned(sorted(samples, key=lambda sample: sample.at), points)),
    )


def _row(job: Job, task: Task, samples: list[UseSample], points: int) -> TaskUseRow:
    limits = job.spec.role(task.role).resources
    return TaskUseRow(
        job=job.id,
        name=job.name,
        username=job.user,
        virtual_cluster=job.spec.virtual_cluster,
        role=task.role,
        index=task.index,
        node=task.placement.node if task.placement is not None else "",
        gpus=limits.gpus,
        cpus=limits.cpus,
        memory_mb=limits.memory_mb,
        now=next(iter(_points(samples[-1:])), None),
        trend=_points(thinned(samples, points) if points else []),
    )


def _points(samples: list[UseSample]) -> tuple[UsePoint, ...]:
    return tuple(
        UsePoint(
            at=datetime.fromtimestamp(each.at, UTC),
            cpus=each.cpus,
            memory_mb=each.memory_mb,
            gpu_percent=each.gpu_percent,
            gpu_memory_mb=each.gpu_memory_mb,
            idle_gpus=each.idle_gpus,
        )
        for each in samples
    )
