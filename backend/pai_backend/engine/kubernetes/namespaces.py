"""Which namespace a task is in: one for all, or one for each virtual cluster or user.

A task's uid names its job, and whose job that is says where it is: so the store is enough to find a task, also one of
which nothing is there yet. What runs is followed in all namespaces by one watch; ``has`` leaves out what another
backend of the same name has elsewhere in the cluster.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Final

from pai_backend.engine.kubernetes import naming
from pai_backend.engine.kubernetes.calls import Calls
from pai_backend.engine.kubernetes.failures import ApiForbidden, ApiNotFound
from pai_backend.engine.kubernetes.objects import name_of
from pai_backend.engine.kubernetes.places import EVERYWHERE, NAMESPACES, ApiPaths, namespace
from pai_backend.engine.providers import JobOwner, OwnerOf
from pai_backend.model.cluster_settings import NamespacePer
from pai_backend.model.ids import JobUid, TaskUid
from pai_backend.model.plan import TaskPlan

REMEMBERED: Final = 10_000  # jobs whose owner is not asked for again, about 100 bytes each

Find = Callable[[TaskUid], Awaitable[ApiPaths]]
"""Where the objects of a task are, or would be."""


async def unknown(_: JobUid) -> None:
    """An :data:`OwnerOf` that knows no job, for one namespace."""


class Namespaces:
    """The namespaces of a backend's tasks."""

    def __init__(self, base: str, per: NamespacePer, owner_of: OwnerOf) -> None:
        self._base = base
        self._per = per
        self._owner_of = owner_of
        self._known: dict[JobUid, str] = {}

    @property
    def watched(self) -> ApiPaths:
        """Where all that is to be followed is."""
        return ApiPaths(self._base) if self._per is NamespacePer.CLUSTER else EVERYWHERE

    def has(self, namespace: str) -> bool:
        """Whether tasks of ours may be there; also true of what is in no namespace."""
        return self._per is NamespacePer.CLUSTER or not namespace or namespace.startswith(f"{self._base}-")

    def of_plan(self, plan: TaskPlan) -> ApiPaths:
        """Where a task is to be made."""
        return self._of(JobOwner(plan.user, plan.virtual_cluster))

    async def of_job(self, job: JobUid) -> ApiPaths:
        """Where the tasks of a job are, or would be. Of an unknown job nothing is found."""
        if self._per is NamespacePer.CLUSTER:
            return ApiPaths(self._base)
        if job not in self._known:
            owner = await self._owner_of(job)
            if owner is None:
                return ApiPaths(self._base)
            if len(self._known) >= REMEMBERED:
                self._known.clear()
            self._known[job] = self._of(owner).namespace
        return ApiPaths(self._known[job])

    async def all(self, calls: Calls) -> list[ApiPaths]:
        """All namespaces that exist now. Raises ClusterErrors."""
        if self._per is NamespacePer.CLUSTER:
            return [ApiPaths(self._base)]
        names = [name_of(each) async for each in calls.list(NAMESPACES)]
        return [ApiPaths(name) for name in names if self.has(name)]

    def _of(self, owner: JobOwner) -> ApiPaths:
        name = naming.namespace_of(self._base, self._per, virtual_cluster=owner.virtual_cluster, user=owner.user)
        return ApiPaths(name)


async def is_missing(calls: Calls, name: str) -> bool:
    """Whether there is no namespace of this name; False where that may not be asked. Raises other ClusterErrors."""
    try:
        await calls.get(namespace(name))
    except ApiNotFound:
        return True
    except ApiForbidden:
        return False
    return False
