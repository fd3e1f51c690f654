"""The audit, as far as a user may read it."""

from __future__ import annotations

from pai_backend.api.audit_wire import AuditChain, AuditEventWire, AuditPage, AuditPlace, AuditQuery
from pai_backend.api.context import ApiContext
from pai_backend.api.queries import words
from pai_backend.api.services.rights import require_administrator
from pai_backend.auth.users import User
from pai_backend.model.errors import NoSuchJob
from pai_backend.model.ids import JobUid
from pai_backend.store.auditing import AuditFilter


class AuditService:
    """Reads the audit."""

    def __init__(self, ctx: ApiContext) -> None:
        self._ctx = ctx

    async def page(self, user: User, query: AuditQuery) -> AuditPage:
        """What concerns the user or was done by them; everything for administrators."""
        given = query.model_dump(exclude={"types", "job"})
        job = await self._job(user, query.job) if query.job else None
        seen_by = None if user.admin else user.name
        which = AuditFilter(seen_by=seen_by, types=tuple(words(query.types)), job=job, **given)
        return AuditPage(data=tuple(AuditEventWire.of(each) for each in await self._ctx.store.audit.page(which)))

    async def _job(self, user: User, named: str) -> JobUid:
        """The uid of a job; one that is not there may be named by its uid, for it was deleted."""
        try:
            return (await self._ctx.store.jobs.find(named, user.name)).uid
        except NoSuchJob:
            return JobUid(named)

    async def chain(self, user: User) -> AuditChain:
        """Where the chain begins and ends. Raises Forbidden, and Unavailable when no key opens the seal."""
        require_administrator(user)
        root, head, sealed = await self._ctx.store.audit.ends()
        return AuditChain(
            root=AuditPlace.of(root), head=AuditPlace.of(head), sealed=None if sealed is None else AuditPlace.of(sealed)
        )
