"""Cells and groups as they are now: rebuilt from what is stored, as the controller would after a restart.

Everything is answered as JSON text, which is made once for a state of the cluster: the trees of 1,000 nodes are
megabytes.
"""

from __future__ import annotations

from pai_backend.api.cells_wire import AffinityGroup, AffinityGroups, CellList, CellsOfClusters, ClusterCells
from pai_backend.api.context import ApiContext
from pai_backend.auth.policy import administers, sight_of, within
from pai_backend.auth.users import User
from pai_backend.model.errors import NoSuchJob, NoVirtualCluster
from pai_backend.model.text import Text
from pai_backend.scheduling import Ledger
from pai_backend.scheduling.core.inspect import cluster_status, group_status, physical_status, virtual_status
from pai_backend.scheduling.request import Group


class InspectService:
    """What HiveD's inspect API tells."""

    def __init__(self, ctx: ApiContext) -> None:
        self._ctx = ctx

    async def cells(self) -> bytes:
        """All cells: ClusterCells."""
        now = await self._ctx.snapshots.now()
        return await now.answer("cells", lambda: ClusterCells.model_validate(cluster_status(now.placer.ledger)))

    async def machines(self) -> bytes:
        """The trees of machines: CellList."""
        now = await self._ctx.snapshots.now()
        return await now.answer("machines", lambda: CellList.model_validate(physical_status(now.placer.ledger)))

    async def virtual_clusters(self) -> bytes:
        """The trees of each virtual cluster: CellsOfClusters."""
        now = await self._ctx.snapshots.now()
        return await now.answer("virtual clusters", lambda: _virtual(now.placer.ledger))

    async def virtual_cluster(self, vc: str) -> bytes:
        """The trees of one virtual cluster: CellList. Raises NoVirtualCluster."""
        now = await self._ctx.snapshots.now()
        cluster = now.placer.ledger
        if vc not in cluster.config.virtual_clusters:
            known = ", ".join(cluster.config.virtual_clusters)
            raise NoVirtualCluster(
                Text("There is no virtual cluster {vc} with cells.", vc=repr(vc[:100])),
                hint=Text("There are: {known}.", known=known),
            )
        return await now.answer(("virtual cluster", vc), lambda: CellList.model_validate(virtual_status(cluster, vc)))

    async def groups(self, user: User) -> bytes:
        """Groups that have cells, of the user's jobs, or of all for an admin: AffinityGroups."""
        now = await self._ctx.snapshots.now()
        key = ("groups", sight_of(user))
        return await now.answer(key, lambda: _groups(now.placer.ledger, user))

    async def group(self, user: User, name: str) -> bytes:
        """One of them: AffinityGroup. Raises NoSuchJob, also when the user may not see it."""
        now = await self._ctx.snapshots.now()
        held = now.placer.ledger.groups.get(name)
        if held is None or not _may_see(user, held.group):
            hint = Text(
                "Groups that wait have no cells and are not listed; `/v1/inspect/affinitygroups/` lists the others."
            )
            raise NoSuchJob(Text("There is no affinity group {name} with cells.", name=repr(name[:300])), hint=hint)
        return await now.answer(("group", name), lambda: AffinityGroup.model_validate(group_status(held)))


def _virtual(cluster: Ledger) -> CellsOfClusters:
    found = {vc: virtual_status(cluster, vc) for vc in cluster.config.virtual_clusters}
    return CellsOfClusters.model_validate(found)


def _groups(cluster: Ledger, user: User) -> AffinityGroups:
    shown = (group_status(each) for each in cluster.groups.values() if _may_see(user, each.group))
    return AffinityGroups(items=tuple(AffinityGroup.model_validate(each) for each in shown))


def _may_see(user: User, group: Group) -> bool:
    is_own = group.name.partition("~")[0] == user.name and within(user, group.vc)
    return is_own or administers(user, group.vc)
