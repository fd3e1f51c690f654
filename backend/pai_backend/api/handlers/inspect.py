"""Cells and groups, under our own path and under those of HiveD's inspect API."""

from __future__ import annotations

from pai_backend.api.base import ApiHandler
from pai_backend.api.cells_wire import AffinityGroup, AffinityGroups, CellList, CellsOfClusters, ClusterCells
from pai_backend.api.operation import Operation, operation
from pai_backend.api.services.inspect import InspectService
from pai_backend.model.errors import NoSuchJob, NoVirtualCluster


class _InspectHandler(ApiHandler):
    """A handler with the inspect service."""

    @property
    def inspect(self) -> InspectService:
        """The service."""
        return InspectService(self.ctx)


class CellsHandler(_InspectHandler):
    """``/api/v2/cluster/cells`` and ``/v1/inspect/clusterstatus``."""

    @operation(Operation("All cells: of machines, and of virtual clusters.", answer=ClusterCells))
    async def get(self) -> None:
        """The trees."""
        self.write_made(await self.inspect.cells())


class PhysicalCellsHandler(_InspectHandler):
    """``/v1/inspect/clusterstatus/physicalcluster``."""

    @operation(Operation("The cells of machines.", answer=CellList))
    async def get(self) -> None:
        """The trees."""
        self.write_made(await self.inspect.machines())


class VirtualCellsHandler(_InspectHandler):
    """``/v1/inspect/clusterstatus/virtualclusters/``."""

    @operation(Operation("The cells of each virtual cluster.", answer=CellsOfClusters))
    async def get(self) -> None:
        """Virtual cluster to trees."""
        self.write_made(await self.inspect.virtual_clusters())


class CellsOfOneHandler(_InspectHandler):
    """``/v1/inspect/clusterstatus/virtualclusters/{vc}``."""

    @operation(Operation("The cells of a virtual cluster.", answer=CellList, raises=(NoVirtualCluster,)))
    async def get(self, vc: str) -> None:
        """The trees."""
        self.write_made(await self.inspect.virtual_cluster(vc))


class AffinityGroupsHandler(_InspectHandler):
    """``/v1/inspect/affinitygroups/``."""

    @operation(Operation("Affinity groups of the caller's jobs that have cells.", answer=AffinityGroups))
    async def get(self) -> None:
        """The groups."""
        self.write_made(await self.inspect.groups(self.user))


class OneAffinityGroupHandler(_InspectHandler):
    """``/v1/inspect/affinitygroups/{path}``."""

    @operation(Operation("An affinity group that has cells.", answer=AffinityGroup, raises=(NoSuchJob,)))
    async def get(self, name: str) -> None:
        """The group."""
        self.write_made(await self.inspect.group(self.user, name))
