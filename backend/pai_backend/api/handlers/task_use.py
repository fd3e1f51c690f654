"""What tasks use, now and over time."""

from __future__ import annotations

from pai_backend.api.base import ApiHandler
from pai_backend.api.operation import Operation, operation
from pai_backend.api.queries import UseNowQuery, UseOverTimeQuery
from pai_backend.api.services.task_use import TaskUseService
from pai_backend.api.task_use_wire import JobMetrics, TaskUseRows
from pai_backend.model.errors import NoSuchJob, NoSuchTask


class JobMetricsHandler(ApiHandler):
    """``/api/v2/jobs/{job}/metrics``."""

    @operation(
        Operation(
            "GPUs, CPUs and memory that the tasks of a job used over time.",
            query=UseOverTimeQuery,
            answer=JobMetrics,
            raises=(NoSuchJob, NoSuchTask),
        )
    )
    async def get(self, job: str, query: UseOverTimeQuery) -> JobMetrics:
        """The samples, task by task."""
        return await TaskUseService(self.ctx).of_job(self.user, job, query)


class TaskUsesHandler(ApiHandler):
    """``/api/v2/cluster/tasks``."""

    @operation(Operation("Running tasks and what they use now.", query=UseNowQuery, answer=TaskUseRows))
    async def get(self, query: UseNowQuery) -> TaskUseRows:
        """The tasks of the caller's jobs; of all for an administrator."""
        return await TaskUseService(self.ctx).running(self.user, query.points)
