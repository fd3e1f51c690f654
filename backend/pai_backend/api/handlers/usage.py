"""GPU and CPU hours."""

from __future__ import annotations

from pai_backend.api.base import ALL_VERBS, ApiHandler
from pai_backend.api.operation import Operation, operation
from pai_backend.api.queries import UsageQuery
from pai_backend.api.services.usage import UsageService
from pai_backend.api.usage_wire import Usage


class UsageHandler(ApiHandler):
    """``/api/v2/usage``."""

    users_own = ALL_VERBS

    @operation(Operation("GPU and CPU hours, told apart as asked.", query=UsageQuery, answer=Usage))
    async def get(self, query: UsageQuery) -> Usage:
        """The caller's; all for an administrator."""
        return await UsageService(self.ctx).usage(self.user, query)
