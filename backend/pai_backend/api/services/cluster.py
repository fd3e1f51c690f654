"""The backend as a whole: what it is, its nodes, its virtual clusters, whether it is ready."""

from __future__ import annotations

from pai_backend.api import present
from pai_backend.api.context import ApiContext
from pai_backend.api.wire import Info, NodeList, ProxyAddress, Readiness, SshAddress, VirtualCluster, VirtualClusters
from pai_backend.model.job import Job


class ClusterService:
    """Facts that belong to no single job."""

    def __init__(self, ctx: ApiContext) -> None:
        self._ctx = ctx

    def info(self) -> Info:
        """Name, version, engine and addresses; nothing that needs a token to know."""
        site, gateway = self._ctx.site, self._ctx.gateway()
        return Info(
            name=site.name,
            version=site.version,
            engine=site.engine,
            ssh=SshAddress(host=gateway.host, port=gateway.port) if gateway is not None else None,
            proxy=ProxyAddress(domain=site.service_domain, base_url=site.base_url),
        )

    async def nodes(self) -> NodeList:
        """All nodes with what is in use of them, by name."""
        jobs = await self._ctx.store.unfinished()
        nodes = sorted(self._ctx.nodes(), key=lambda node: node.name)
        return NodeList(data=tuple(present.node(node, jobs) for node in nodes))

    async def virtual_clusters(self) -> VirtualClusters:
        """Every configured virtual cluster and the load on it."""
        jobs = await self._ctx.store.unfinished()
        gpus = sum(len(node.gpus) for node in self._ctx.nodes())
        names = self._ctx.site.virtual_clusters
        return VirtualClusters({name: _load(name, jobs, gpus) for name in names})

    async def readiness(self) -> Readiness:
        """Every check with its outcome."""
        checks = tuple(await self._ctx.checks())
        return Readiness(ready=all(check.ok for check in checks), checks=checks)

    async def metrics(self) -> bytes:
        """What Prometheus scrapes."""
        lease = await self._ctx.store.lease()
        left = max(0.0, (lease.expires_at - self._ctx.clock()).total_seconds()) if lease is not None else 0.0
        return self._ctx.metrics.text(await self._ctx.store.job_counts(), left)


def _load(name: str, jobs: list[Job], gpus: int) -> VirtualCluster:
    mine = [job for job in jobs if job.spec.virtual_cluster == name and not job.state.final]
    held = sum(
        len(task.placement.gpus) for job in mine for task in job.tasks if task.placement and not task.state.final
    )
    return VirtualCluster(
        capacity=100, used_capacity=round(100 * held / gpus) if gpus else 0, num_jobs=len(mine), state="running"
    )
