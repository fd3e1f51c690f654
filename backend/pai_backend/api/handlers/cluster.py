"""The backend as a whole, and the probes of those who watch over it."""

from __future__ import annotations

from prometheus_client import CONTENT_TYPE_LATEST

from pai_backend.api.base import ApiHandler
from pai_backend.api.openpai.wire import SkuTypes
from pai_backend.api.operation import Operation, operation
from pai_backend.api.queries import ClusterQuery, ReadyQuery, SkuQuery
from pai_backend.api.services.cluster import ClusterService
from pai_backend.api.wire import Alive, Info, NodeList, Readiness, VirtualCluster, VirtualClusters
from pai_backend.model.errors import NoVirtualCluster


class _ClusterHandler(ApiHandler):
    """A handler with the cluster service."""

    @property
    def cluster(self) -> ClusterService:
        """The service."""
        return ClusterService(self.ctx)


class InfoHandler(_ClusterHandler):
    """``/api/v2/info``."""

    public = True

    @operation(Operation("Which backend this is.", answer=Info))
    async def get(self) -> Info:
        """Name, version and addresses."""
        return self.cluster.info()


class NodesHandler(_ClusterHandler):
    """``/api/v2/cluster/nodes``."""

    @operation(Operation("Nodes and what is in use of them.", answer=NodeList))
    async def get(self) -> NodeList:
        """The nodes."""
        return await self.cluster.nodes()


class VirtualClusterMapHandler(_ClusterHandler):
    """``/api/v2/virtual-clusters``."""

    @operation(Operation("Virtual clusters and the load on them.", query=ClusterQuery, answer=VirtualClusters))
    async def get(self, query: ClusterQuery) -> VirtualClusters:
        """Name to virtual cluster; with ``?nodes`` name of node to its GPUs."""
        if query.nodes is not None:
            return await self.cluster.node_gpus()
        return await self.cluster.virtual_clusters()


class OneVirtualClusterHandler(_ClusterHandler):
    """``/api/v2/virtual-clusters/{vc}``."""

    @operation(Operation("A virtual cluster and the load on it.", answer=VirtualCluster, raises=(NoVirtualCluster,)))
    async def get(self, vc: str) -> VirtualCluster:
        """The virtual cluster."""
        return await self.cluster.virtual_cluster(vc)


class SkusOfOneHandler(_ClusterHandler):
    """``/api/v2/virtual-clusters/{vc}/sku-types``."""

    @operation(
        Operation("Kinds of hardware that its jobs may ask for.", answer=SkuTypes, raises=(NoVirtualCluster,)),
    )
    async def get(self, vc: str) -> SkuTypes:
        """Name of the kind to a unit of it."""
        return self.cluster.sku_types(vc)


class SkusHandler(_ClusterHandler):
    """``/api/v2/cluster/sku-types``."""

    @operation(
        Operation(
            "Kinds of hardware that jobs may ask for.", query=SkuQuery, answer=SkuTypes, raises=(NoVirtualCluster,)
        )
    )
    async def get(self, query: SkuQuery) -> SkuTypes:
        """Name of the kind to a unit of it."""
        return self.cluster.sku_types(query.vc)


class HealthzHandler(_ClusterHandler):
    """``/healthz``."""

    public = True

    @operation(Operation("Whether the process is alive.", answer=Alive))
    async def get(self) -> Alive:
        """It is, when this answers."""
        return Alive()


class ReadyzHandler(_ClusterHandler):
    """``/readyz``."""

    public = True

    @operation(Operation("Whether jobs are accepted and run; 503 when not.", query=ReadyQuery, answer=Readiness))
    async def get(self, query: ReadyQuery) -> Readiness:
        """Every check, or the one that is asked for."""
        readiness = await self.cluster.readiness(query.check)
        self.set_status(200 if readiness.ready else 503)
        return readiness


class MetricsHandler(_ClusterHandler):
    """``/metrics``."""

    public = True

    @operation(Operation("Metrics for Prometheus.", media_type="text/plain"))
    async def get(self) -> None:
        """The text exposition."""
        self.set_header("Content-Type", CONTENT_TYPE_LATEST)
        self.write(await self.cluster.metrics())
