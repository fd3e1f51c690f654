"""What OpenPAI's clients ask about a site: storages, nodes and pods."""

from __future__ import annotations

from urllib.parse import urlsplit

from pai_backend.api.context import ApiContext
from pai_backend.api.openpai.site_wire import (
    Condition,
    ContainerObject,
    Metadata,
    NodeAddress,
    NodeObject,
    NodeObjects,
    NodeSpec,
    NodeStatus,
    PodObject,
    PodObjects,
    PodSpec,
    PodStatus,
    Requests,
    StorageDetail,
    StorageItem,
    StorageSummary,
    TaintObject,
)
from pai_backend.auth.users import User
from pai_backend.model.errors import Forbidden, NoSuchStorage
from pai_backend.model.job import Job, State, Task
from pai_backend.model.node import Node
from pai_backend.model.spec import Resources
from pai_backend.model.text import Text
from pai_backend.storage.reach import TeamMount

GPU_RESOURCE = "nvidia.com/gpu"


class OpenpaiSiteService:
    """Facts about the site in OpenPAI's shapes."""

    def __init__(self, ctx: ApiContext) -> None:
        self._ctx = ctx

    def storages(self, user: User, *, default: bool) -> StorageSummary:
        """The storages granted to the user; none of them is one that jobs get without asking."""
        granted = () if default else storages_of(self._ctx, user)
        return StorageSummary(storages=tuple(StorageItem(name=each.name, volume_name=each.name) for each in granted))

    def storage(self, user: User, name: str) -> StorageDetail:
        """One of them. Raises NoSuchStorage, also for one that is not granted."""
        found = next((each for each in storages_of(self._ctx, user) if each.name == name), None)
        if found is None:
            raise NoSuchStorage(
                Text("There is no storage {name} for {user}.", name=repr(name[:100]), user=user.name),
                hint=Text("`GET /api/v2/storages` lists yours."),
            )
        kind = "nfs" if urlsplit(found.uri).scheme == "nfs" else "other"
        return StorageDetail(name=found.name, volume_name=found.name, type=kind)

    def nodes(self, user: User) -> NodeObjects:
        """All nodes. Raises Forbidden for all but administrators."""
        _require_admin(user)
        return NodeObjects(items=tuple(_node(each) for each in sorted(self._ctx.nodes(), key=lambda one: one.name)))

    async def pods(self, user: User) -> PodObjects:
        """All tasks with a place. Raises Forbidden for all but administrators."""
        _require_admin(user)
        jobs = await self._ctx.store.jobs.unfinished()
        return PodObjects(items=tuple(pod for job in jobs for task in job.tasks for pod in _pods(job, task)))


def storages_of(ctx: ApiContext, user: User) -> list[TeamMount]:
    """The team storages granted to a user, by name."""
    mounts = ctx.files.mounts if ctx.files is not None else ()
    return sorted((each for each in mounts if each.granted_to(user.name)), key=lambda one: one.name)


def _require_admin(user: User) -> None:
    if not user.admin:
        raise Forbidden(
            Text("Only an administrator may see all nodes and tasks."), hint=Text("Ask for /api/v2/cluster/nodes.")
        )


def _node(node: Node) -> NodeObject:
    has = _amounts(Resources(cpus=node.cpus, memory_mb=node.memory_mb, gpus=len(node.gpus)))
    taints = tuple(TaintObject(key=each.key, value=each.value, effect=each.effect.value) for each in node.taints)
    return NodeObject(
        metadata=Metadata(name=node.name, labels=dict(node.labels)),
        spec=NodeSpec(unschedulable=not node.schedulable, taints=taints),
        status=NodeStatus(
            capacity=has,
            allocatable=has,
            conditions=(Condition(type="Ready", status=str(node.ready), message=node.reason),),
            addresses=(NodeAddress(type="InternalIP", address=node.address),),
        ),
    )


def _pods(job: Job, task: Task) -> list[PodObject]:
    """The task as a pod; none when it has no place."""
    place = task.placement
    if place is None or not task.holds_place:
        return []
    role = job.spec.role(task.role)
    labels = {"userName": job.user, "jobName": job.name, "virtualCluster": job.spec.virtual_cluster}
    asked = Requests(requests=_amounts(role.resources))
    return [
        PodObject(
            metadata=Metadata(name=task.uid, labels=labels),
            spec=PodSpec(
                node_name=place.node,
                containers=(ContainerObject(image=role.image or job.spec.image, resources=asked),),
            ),
            status=PodStatus(phase="Running" if task.state is State.RUNNING else "Pending", hostIP=place.address),
        )
    ]


def _amounts(resources: Resources) -> dict[str, str]:
    """Resources as Kubernetes writes them."""
    return {
        "cpu": str(resources.cpus),
        "memory": f"{resources.memory_mb}Mi",
        GPU_RESOURCE: str(resources.gpus),
    }
