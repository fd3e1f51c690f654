"""The backend as a whole: what it is, its nodes, its virtual clusters, whether it is ready."""

from __future__ import annotations

from collections.abc import Sequence

from pai_backend.api import present
from pai_backend.api.context import ApiContext
from pai_backend.api.openpai.wire import SkuType, SkuTypes
from pai_backend.api.wire import (
    ClusterResources,
    Info,
    NodeGpus,
    NodeList,
    ProxyAddress,
    Readiness,
    SshAddress,
    VirtualCluster,
    VirtualClusters,
)
from pai_backend.model.errors import InvalidParameters, NoVirtualCluster
from pai_backend.model.job import Job
from pai_backend.model.node import Node
from pai_backend.model.text import Text
from pai_backend.scheduling.config.model import ClusterConfig
from pai_backend.scheduling.jobs.demand import mebibytes
from pai_backend.scheduling.jobs.quota import named_kinds, owned_resources


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
        jobs = await self._ctx.store.jobs.unfinished()
        nodes = sorted(self._ctx.nodes(), key=lambda node: node.name)
        return NodeList(data=tuple(present.node(node, jobs) for node in nodes))

    async def virtual_clusters(self) -> VirtualClusters:
        """Every configured virtual cluster and the load on it."""
        jobs, nodes = await self._ctx.store.jobs.unfinished(), self._ctx.nodes()
        names, config = self._ctx.virtual_clusters, self._ctx.rules.config
        return VirtualClusters({name: _load(name, jobs, nodes, config) for name in names})

    async def node_gpus(self) -> VirtualClusters:
        """Every node's GPUs: in use, free, all."""
        shown = {}
        for node in (await self.nodes()).data:
            used = len(node.used.gpus)
            shown[node.name] = NodeGpus(gpu_used=used, gpu_available=len(node.gpus) - used, gpu_total=len(node.gpus))
        return VirtualClusters(shown)

    async def virtual_cluster(self, name: str) -> VirtualCluster:
        """One of them. Raises NoVirtualCluster."""
        self._require(name)
        return _load(name, await self._ctx.store.jobs.unfinished(), self._ctx.nodes(), self._ctx.rules.config)

    def sku_types(self, virtual_cluster: str | None) -> SkuTypes:
        """Kinds of hardware that documents may name, and what one unit of each has; one virtual cluster's, or all.

        Raises NoVirtualCluster.
        """
        if virtual_cluster:
            self._require(virtual_cluster)
        kinds = named_kinds(self._ctx.rules.config, self._ctx.nodes(), virtual_cluster or "")
        return SkuTypes(
            {name: SkuType(gpu=sku.gpu, cpu=sku.cpu, memory=mebibytes(sku.memory)) for name, sku in kinds.items()}
        )

    def _require(self, name: str) -> None:
        known = self._ctx.virtual_clusters
        if name not in known:
            raise NoVirtualCluster(
                Text("There is no virtual cluster {name}.", name=repr(name[:100])),
                hint=Text("There are: {known}.", known=", ".join(known)),
            )

    async def readiness(self, name: str | None = None) -> Readiness:
        """Every check with its outcome, or that of this name. Raises InvalidParameters when there is none such."""
        every = await self._ctx.checks()
        checks = tuple(check for check in every if name in (None, check.name))
        if not checks:
            names = ", ".join(check.name for check in every)
            raise InvalidParameters(
                Text("There is no check of that name."), hint=Text("The checks here: {names}.", names=names)
            )
        return Readiness(ready=all(check.ok for check in checks), checks=checks)

    async def metrics(self) -> bytes:
        """What Prometheus scrapes."""
        lease = await self._ctx.store.leadership.latest()
        left = max(0.0, (lease.expires_at - self._ctx.clock()).total_seconds()) if lease is not None else 0.0
        orphans = len(await self._ctx.store.recovery.orphans())
        return self._ctx.metrics.text(await self._ctx.store.jobs.counts(), left, orphans)


def _load(name: str, jobs: Sequence[Job], nodes: Sequence[Node], config: ClusterConfig | None) -> VirtualCluster:
    """One virtual cluster. Without a configuration of cells it has no quota, and may use everything.

    With one, its capacity is its share of all GPUs, and what it uses may exceed that: opportunistic jobs count.
    """
    mine = [job for job in jobs if job.spec.virtual_cluster == name and not job.state.final]
    running = [(job, task) for job in mine for task in job.tasks if task.holds_place]
    held = [job.spec.role(task.role).resources for job, task in running]
    gpus, total = sum(each.gpus for each in held), sum(len(node.gpus) for node in nodes)
    used = _amounts(sum(each.cpus for each in held), sum(each.memory_mb for each in held), gpus)
    everything = _amounts(sum(node.cpus for node in nodes), sum(node.memory_mb for node in nodes), total)
    capacity = 100
    if config is not None:
        owned, cpus, memory_mb = owned_resources(config, name)
        capacity = round(100 * owned / total) if total else 0
        everything = _amounts(cpus, memory_mb, owned)
    return VirtualCluster(
        capacity=capacity,
        max_capacity=100,
        used_capacity=round(100 * gpus / total) if total else 0,
        num_jobs=len(mine),
        dedicated=config is not None,
        resources_used=used,
        resources_guaranteed=everything,
        resources_total=everything,
        state="running",
        status="RUNNING",
    )


def _amounts(cpus: int, memory_mb: int, gpus: int) -> ClusterResources:
    return ClusterResources.model_validate(
        {"cpu": cpus, "memory": memory_mb, "gpu": gpus, "vCores": cpus, "GPUs": gpus}
    )
