"""The queue and the use of the cluster: who runs, who waits, and who changes places."""

from __future__ import annotations

from pai_backend.api.base import ApiHandler
from pai_backend.api.operation import Operation, operation
from pai_backend.api.queries import MoveBody
from pai_backend.api.services.cluster_use import ClusterUseService
from pai_backend.api.services.move import MoveService
from pai_backend.api.use_wire import ClusterUseWire, MovedJobs
from pai_backend.model.errors import NoSuchJob, NotWaiting, OtherQueue


class ClusterUseHandler(ApiHandler):
    """``/api/v2/cluster/use``."""

    @operation(Operation("Who uses each virtual cluster and node, and who waits.", answer=ClusterUseWire))
    async def get(self) -> None:
        """All virtual clusters and nodes."""
        self.write_made(await ClusterUseService(self.ctx).use(self.user))


class JobMoveHandler(ApiHandler):
    """``/api/v2/jobs/{job}/move``."""

    @operation(
        Operation(
            "Change the place of a waiting job in its queue.",
            audit="job.moved",
            body=MoveBody,
            answer=MovedJobs,
            status=202,
            raises=(NoSuchJob, NotWaiting, OtherQueue),
        )
    )
    async def post(self, job: str, to: MoveBody) -> MovedJobs:
        """Before or after another job, or to an end."""
        place = next((name, value) for name, value in vars(to).items() if value is not None)
        self.say(" ".join(place))
        return await MoveService(self.ctx).move(self.user, job, to)
