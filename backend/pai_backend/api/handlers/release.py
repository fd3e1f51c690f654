"""Releasing tasks that are kept for debugging."""

from __future__ import annotations

from pai_backend.api.base import ApiHandler
from pai_backend.api.operation import Operation, operation
from pai_backend.api.queries import ReleaseQuery
from pai_backend.api.services.release import ReleaseService
from pai_backend.api.wire import Released
from pai_backend.model.errors import NoSuchJob, NoSuchTask


class JobReleaseHandler(ApiHandler):
    """``/api/v2/jobs/{job}/release``."""

    @operation(
        Operation(
            "Release tasks that are kept for debugging.",
            audit="job.released",
            query=ReleaseQuery,
            answer=Released,
            status=202,
            raises=(NoSuchJob, NoSuchTask),
        )
    )
    async def post(self, job: str, query: ReleaseQuery) -> Released:
        """All of the job's kept tasks, or those that are named."""
        self.say(query.task or "all")
        return await ReleaseService(self.ctx).release(self.user, job, query.names)
