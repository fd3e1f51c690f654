"""The audit."""

from __future__ import annotations

from pai_backend.api.audit_wire import AuditChain, AuditPage, AuditQuery
from pai_backend.api.base import ALL_VERBS, ApiHandler
from pai_backend.api.operation import Operation, operation
from pai_backend.api.services.audit import AuditService
from pai_backend.model.errors import Forbidden, Unavailable


class AuditHandler(ApiHandler):
    """``/api/v2/audit``."""

    users_own = ALL_VERBS

    @operation(Operation("Changes and entries, the newest first.", query=AuditQuery, answer=AuditPage))
    async def get(self, query: AuditQuery) -> AuditPage:
        """What concerns the caller or was done by them; everything for an administrator."""
        return await AuditService(self.ctx).page(self.user, query)


class AuditChainHandler(ApiHandler):
    """``/api/v2/audit/chain``."""

    users_own = ALL_VERBS

    @operation(
        Operation("Where the chain of the audit begins and ends.", answer=AuditChain, raises=(Forbidden, Unavailable))
    )
    async def get(self) -> AuditChain:
        """For administrators."""
        return await AuditService(self.ctx).chain(self.user)
