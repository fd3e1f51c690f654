"""Cells and groups as they are now: rebuilt from what is stored, as the controller would after a restart."""

from __future__ import annotations

import asyncio

from pai_backend.api.cells_wire import AffinityGroup, AffinityGroups, CellList, CellsOfClusters, ClusterCells
from pai_backend.api.context import ApiContext
from pai_backend.auth.users import User
from pai_backend.model.errors import NoSuchJob, NoVirtualCluster
from pai_backend.scheduling.core.inspect import cluster_status, group_status, physical_status, virtual_status
from pai_backend.scheduling.jobs.placer import Placer
from pai_backend.scheduling.jobs.rebuild import rebuilt


class InspectService:
    """What HiveD's inspect API tells."""

    def __init__(self, ctx: ApiContext) -> None:
        self._ctx = ctx

    async def _placer(self) -> Placer:
        jobs, nodes, rules = await self._ctx.store.unfinished(), list(self._ctx.nodes()), self._ctx.cells
        return await asyncio.to_thread(rebuilt, rules.config, nodes, jobs, cells_for_all=rules.cells_for_all)

    async def cells(self) -> ClusterCells:
        """All cells."""
        return ClusterCells.model_validate(cluster_status((await self._placer()).cluster))

    async def machines(self) -> CellList:
        """The trees of machines."""
        return CellList.model_validate(physical_status((await self._placer()).cluster))

    async def virtual_clusters(self) -> CellsOfClusters:
        """The trees of each virtual cluster."""
        cluster = (await self._placer()).cluster
        found = {vc: virtual_status(cluster, vc) for vc in cluster.config.virtual_clusters}
        return CellsOfClusters.model_validate(found)

    async def virtual_cluster(self, vc: str) -> CellList:
        """The trees of one virtual cluster. Raises NoVirtualCluster."""
        cluster = (await self._placer()).cluster
        if vc not in cluster.config.virtual_clusters:
            known = ", ".join(cluster.config.virtual_clusters)
            raise NoVirtualCluster(f"There is no virtual cluster {vc[:100]!r} with cells.", hint=f"There are: {known}.")
        return CellList.model_validate(virtual_status(cluster, vc))

    async def groups(self, user: User) -> AffinityGroups:
        """Groups that have cells, of the user's jobs; of all for an admin."""
        held = (await self._placer()).cluster.groups.values()
        shown = (group_status(each) for each in held if _may_see(user, each.group.name))
        return AffinityGroups(items=tuple(AffinityGroup.model_validate(each) for each in shown))

    async def group(self, user: User, name: str) -> AffinityGroup:
        """One of them. Raises NoSuchJob, also when the user may not see it."""
        held = (await self._placer()).cluster.groups.get(name)
        if held is None or not _may_see(user, name):
            hint = "Groups that wait have no cells and are not listed; `/v1/inspect/affinitygroups/` lists the others."
            raise NoSuchJob(f"There is no affinity group {name[:300]!r} with cells.", hint=hint)
        return AffinityGroup.model_validate(group_status(held))


def _may_see(user: User, group: str) -> bool:
    return user.admin or group.partition("~")[0] == user.name
