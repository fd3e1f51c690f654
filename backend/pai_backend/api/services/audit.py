"""The audit, as far as a user may read it."""

from __future__ import annotations

import re

from pai_backend.api.audit_wire import AuditChain, AuditEventWire, AuditPage, AuditPlace, AuditQuery
from pai_backend.api.context import ApiContext
from pai_backend.api.queries import words
from pai_backend.api.services.rights import require_administrator
from pai_backend.auth.users import User
from pai_backend.model.errors import NoSuchJob
from pai_backend.store.auditing import AuditFilter

_UID = re.compile(r"j[0-9a-f]{16}")


class AuditService:
    """Reads the audit."""

    def __init__(self, ctx: ApiContext) -> None:
        self._ctx = ctx

    async def page(self, user: User, query: AuditQuery) -> AuditPage:
        """What concerns the user or was done by them; everything for administrators."""
        given = query.model_dump(exclude={"types", "job"})
        if query.job:
            given |= await self._of_job(user, query.job)
        seen_by = None if user.admin else user.name
        which = AuditFilter(seen_by=seen_by, types=tuple(words(query.types)), **given)
        return AuditPage(data=tuple(AuditEventWire.of(each) for each in await self._ctx.store.audit.page(which)))

    async def _of_job(self, user: User, named: str) -> dict[str, str]:
        """By what events of a job are found: of one that is deleted by its uid, or by its name with its user's."""
        try:
            return {"job": (await self._ctx.store.jobs.find(named, user.name)).uid}
        except NoSuchJob:
            if _UID.fullmatch(named):
                return {"job": named}
            return {"subject": named if "~" in named else f"{user.name}~{named}"}

    async def chain(self, user: User) -> AuditChain:
        """Where the chain begins and ends. Raises Forbidden, and Unavailable when no key opens the seal."""
        require_administrator(user)
        root, head, sealed = await self._ctx.store.audit.ends()
        return AuditChain(
            root=AuditPlace.of(root), head=AuditPlace.of(head), sealed=None if sealed is None else AuditPlace.of(sealed)
        )
