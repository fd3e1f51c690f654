"""Paths of OpenPAI about a site as a whole: storages, nodes and pods."""

from __future__ import annotations

from pai_backend.api.base import ApiHandler
from pai_backend.api.openpai.site_wire import (
    NodeObjects,
    PodObjects,
    StorageDetail,
    StorageSummary,
)
from pai_backend.api.operation import Operation, operation
from pai_backend.api.queries import PodsQuery, StoragesQuery
from pai_backend.api.services.openpai_site import OpenpaiSiteService
from pai_backend.model.errors import Forbidden, NoSuchStorage


class _SiteHandler(ApiHandler):
    """A handler with the service."""

    @property
    def site(self) -> OpenpaiSiteService:
        """The service."""
        return OpenpaiSiteService(self.ctx)


class StoragesHandler(_SiteHandler):
    """``/api/v2/storages``."""

    @operation(Operation("Team storages that the caller may use.", query=StoragesQuery, answer=StorageSummary))
    async def get(self, query: StoragesQuery) -> StorageSummary:
        """The storages by name."""
        return self.site.storages(self.user, default=query.default not in (None, "false"))


class OneStorageHandler(_SiteHandler):
    """``/api/v2/storages/{storage}``."""

    @operation(Operation("A team storage.", answer=StorageDetail, raises=(NoSuchStorage,)))
    async def get(self, storage: str) -> StorageDetail:
        """The storage, without where it is."""
        return self.site.storage(self.user, storage)


class KubernetesNodesHandler(_SiteHandler):
    """``/api/v2/kubernetes/nodes``."""

    @operation(
        Operation("All nodes in Kubernetes' format; for administrators.", answer=NodeObjects, raises=(Forbidden,))
    )
    async def get(self) -> NodeObjects:
        """The nodes, on whatever engine."""
        return self.site.nodes(self.user)


class KubernetesPodsHandler(_SiteHandler):
    """``/api/v2/kubernetes/pods``."""

    @operation(
        Operation(
            "All tasks with a place, as pods; for administrators.",
            query=PodsQuery,
            answer=PodObjects,
            raises=(Forbidden,),
        )
    )
    async def get(self, _query: PodsQuery) -> PodObjects:
        """The tasks, on whatever engine."""
        return await self.site.pods(self.user)
