"""Tasks that run and that the database does not know: seen and ended by administrators."""

from __future__ import annotations

from pai_backend.api.context import ApiContext
from pai_backend.api.orphan_wire import OrphanShown
from pai_backend.auth.users import User
from pai_backend.model.errors import Forbidden
from pai_backend.model.ids import TaskUid
from pai_backend.model.text import Text


class OrphanService:
    """What the controller wrote of them, and the wish that one ends."""

    def __init__(self, ctx: ApiContext, user: User) -> None:
        """Raises Forbidden for anybody but administrators: whose tasks these are is not known."""
        if not user.admin:
            raise Forbidden(
                Text("Only administrators see and end tasks that the database does not know."),
                hint=Text("Ask an administrator for `pai cluster orphans`."),
            )
        self._recovery = ctx.store.recovery
        self._user = user

    async def list(self) -> list[OrphanShown]:
        """All of them, the longest known first."""
        return [
            OrphanShown(
                task=each.task,
                database=each.database,
                state=each.state,
                since=each.since,
                seen_at=each.seen_at,
                why=each.why,
                ended_by=each.ended_by,
            )
            for each in await self._recovery.orphans()
        ]

    async def end(self, task: str) -> None:
        """Have the controller end it. Raises NoSuchTask."""
        await self._recovery.end(TaskUid(task), self._user.name)
