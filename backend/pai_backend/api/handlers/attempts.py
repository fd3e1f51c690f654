"""OpenPAI's views of a job's attempts, the runs of its tasks and where their logs are.

Numbers in these paths are digits by the routes' patterns.
"""

from __future__ import annotations

from pai_backend.api.base import ApiHandler
from pai_backend.api.log_queries import TailQuery
from pai_backend.api.log_wire import LogLocations
from pai_backend.api.openpai.wire import AttemptsHealth, JobAttempt, JobAttempts, OpenPaiDetail, TaskWithRuns
from pai_backend.api.operation import Operation, operation
from pai_backend.api.services.attempts import AttemptService
from pai_backend.api.services.logs import LogService
from pai_backend.api.wire import AttemptList
from pai_backend.model.errors import NoSuchJob, NoSuchTask


class _AttemptHandler(ApiHandler):
    """A handler with the attempt service."""

    @property
    def attempts(self) -> AttemptService:
        """The service."""
        return AttemptService(self.ctx)


class OneAttemptHandler(_AttemptHandler):
    """``/api/v2/jobs/{job}/attempts/{attempt}``."""

    @operation(
        Operation("Everything about one attempt of a job.", answer=OpenPaiDetail, raises=(NoSuchJob, NoSuchTask))
    )
    async def get(self, job: str, attempt: str) -> OpenPaiDetail:
        """The detail as of that attempt."""
        return await self.attempts.detail(self.user, job, number=int(attempt))


class TaskRunsHandler(_AttemptHandler):
    """``/api/v2/jobs/{job}/attempts/{attempt}/taskRoles/{role}/taskIndex/{index}/attempts``."""

    @operation(Operation("A task and all its runs in an attempt.", answer=TaskWithRuns, raises=(NoSuchJob, NoSuchTask)))
    async def get(self, job: str, attempt: str, role: str, index: str) -> TaskWithRuns:
        """The runs, the latest first."""
        return await self.attempts.task(self.user, job, int(attempt), role, int(index))


class LogLocationListHandler(ApiHandler):
    """``/api/v2/jobs/{job}/attempts/{attempt}/taskRoles/{role}/taskIndex/{index}/attempts/{run}/logs``."""

    @operation(
        Operation("Where a task's logs are.", query=TailQuery, answer=LogLocations, raises=(NoSuchJob, NoSuchTask))
    )
    async def get(self, job: str, attempt: str, role: str, index: str, run: str, query: TailQuery) -> LogLocations:
        """OpenPAI's list."""
        where = (int(attempt), role, int(index), int(run))
        return await LogService(self.ctx).locations(self.user, job, *where, tail=query.tail)


class AllAttemptsHandler(_AttemptHandler):
    """``/api/v2/jobs/{job}/job-attempts``."""

    @operation(Operation("A job's retry history.", answer=JobAttempts, ours=AttemptList, raises=(NoSuchJob,)))
    async def get(self, job: str) -> JobAttempts | AttemptList:
        """The attempts, the latest first."""
        if self.wants_ours():
            return await self.attempts.ours(self.user, job)
        return await self.attempts.all(self.user, job)


class AllAttemptsHealthHandler(ApiHandler):
    """``/api/v2/jobs/{job}/job-attempts/healthz``."""

    @operation(Operation("Whether retry histories are available.", answer=AttemptsHealth))
    async def get(self, _job: str) -> AttemptsHealth:
        """They are kept with the jobs, so they always can."""
        return AttemptsHealth()


class OneOfAllAttemptsHandler(_AttemptHandler):
    """``/api/v2/jobs/{job}/job-attempts/{attempt}``."""

    @operation(Operation("One attempt of a job's retry history.", answer=JobAttempt, raises=(NoSuchJob, NoSuchTask)))
    async def get(self, job: str, attempt: str) -> JobAttempt:
        """The attempt."""
        return await self.attempts.one(self.user, job, int(attempt))
