"""Why a job waits."""

from __future__ import annotations

from pai_backend.api.base import ApiHandler
from pai_backend.api.operation import Operation, operation
from pai_backend.api.services.why import WhyService
from pai_backend.api.wire import Why
from pai_backend.model.errors import NoSuchJob


class JobWhyHandler(ApiHandler):
    """``/api/v2/jobs/{job}/why``."""

    @operation(Operation("Why a job waits, and what would start it now.", answer=Why, raises=(NoSuchJob,)))
    async def get(self, job: str) -> Why:
        """The reason with its numbers."""
        return await WhyService(self.ctx).why(self.user, job)
