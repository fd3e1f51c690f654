"""Running tasks that are not in the database."""

from __future__ import annotations

from pai_backend.api.base import ApiHandler
from pai_backend.api.operation import Operation, operation
from pai_backend.api.orphan_wire import OrphanList
from pai_backend.api.services.orphans import OrphanService
from pai_backend.model.errors import Forbidden, NoSuchTask
from pai_backend.model.scope import Scope


class OrphansHandler(ApiHandler):
    """``/api/v2/cluster/orphans``."""

    scope = Scope.ADMIN

    @operation(
        Operation(
            "Running tasks that are not in the database; for administrators.",
            answer=OrphanList,
            raises=(Forbidden,),
        )
    )
    async def get(self) -> OrphanList:
        """The longest known first."""
        return OrphanList(data=await OrphanService(self.ctx, self.user).list())


class OneOrphanHandler(ApiHandler):
    """``/api/v2/cluster/orphans/{task}``."""

    scope = Scope.ADMIN

    @operation(
        Operation(
            "End such a task; for administrators.", audit="orphan.ended", status=204, raises=(Forbidden, NoSuchTask)
        )
    )
    async def delete(self, task: str) -> None:
        """It is asked to end, and leaves the list when it has."""
        await OrphanService(self.ctx, self.user).end(task)
