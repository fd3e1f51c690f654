"""The backend as a whole, and the probes of those who watch over it."""

from __future__ import annotations

from prometheus_client import CONTENT_TYPE_LATEST

from pai_backend.api.base import ApiHandler
from pai_backend.api.operation import Operation, operation
from pai_backend.api.services.cluster import ClusterService
from pai_backend.api.wire import Alive, Info, NodeList, Readiness, VirtualClusters


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


class Nodes(_ClusterHandler):
    """``/api/v2/cluster/nodes``."""

    @operation(Operation("Nodes and what is in use of them.", answer=NodeList))
    async def get(self) -> NodeList:
        """The nodes."""
        return await self.cluster.nodes()


class VirtualClusterMap(_ClusterHandler):
    """``/api/v2/virtual-clusters``."""

    @operation(Operation("Virtual clusters and the load on them.", answer=VirtualClusters))
    async def get(self) -> VirtualClusters:
        """Name to virtual cluster."""
        return await self.cluster.virtual_clusters()


class Healthz(_ClusterHandler):
    """``/healthz``."""

    public = True

    @operation(Operation("Whether the process is alive.", answer=Alive))
    async def get(self) -> Alive:
        """It is, when this answers."""
        return Alive()


class Readyz(_ClusterHandler):
    """``/readyz``."""

    public = True

    @operation(Operation("Whether jobs can be taken and run; 503 when not.", answer=Readiness))
    async def get(self) -> Readiness:
        """Every check."""
        readiness = await self.cluster.readiness()
        self.set_status(200 if readiness.ready else 503)
        return readiness


class MetricsHandler(_ClusterHandler):
    """``/metrics``."""

    public = True

    @operation(Operation("Figures for Prometheus.", media_type="text/plain"))
    async def get(self) -> None:
        """The text exposition."""
        self.set_header("Content-Type", CONTENT_TYPE_LATEST)
        self.write(await self.cluster.metrics())
