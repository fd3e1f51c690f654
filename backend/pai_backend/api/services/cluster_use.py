"""Who uses the cluster, and who waits for it, told to each user as far as it concerns them."""

from __future__ import annotations

from collections.abc import Iterable

from pai_backend.api.context import ApiContext
from pai_backend.api.snapshot import Snapshot
from pai_backend.api.use_wire import (
    CellsUseWire,
    ClusterUseWire,
    NodeUseWire,
    RunningJob,
    VirtualClusterUse,
    WaitingJob,
)
from pai_backend.auth.policy import may_see
from pai_backend.auth.users import User
from pai_backend.model.job import Job
from pai_backend.scheduling.jobs.usage import (
    CellsUse,
    ClusterUse,
    InLine,
    NodeUse,
    Running,
    use_of_clusters,
    use_of_nodes,
)
from pai_backend.scheduling.queue.policy import most_gpus

MOST_ROWS = 100
"""Jobs listed of one virtual cluster, each of those that run and those that wait."""


class ClusterUseService:
    """Tells who uses what. Names of others are for administrators; numbers are for all."""

    def __init__(self, ctx: ApiContext) -> None:
        self._ctx = ctx

    async def use(self, user: User) -> bytes:
        """ClusterUseWire as JSON, made once for each user and state of the cluster."""
        now = await self._ctx.snapshots.now()
        rights = user.name, user.admin, user.manages, user.virtual_clusters, user.within
        return await now.answer(("use", *rights), lambda: self._use(now, user))

    def _use(self, now: Snapshot, user: User) -> ClusterUseWire:
        cluster, sizing = now.placer.ledger, now.placer.sizing
        found = use_of_clusters(cluster, sizing, self._names(now), now.jobs)
        return ClusterUseWire(
            user=user.name,
            admin=user.admin,
            shared=sizing.shared,
            images=self._ctx.site.images,
            virtual_clusters=tuple(_cluster(each, user, now) for each in found),
            nodes=tuple(_node(each) for each in use_of_nodes(cluster, sizing, now.nodes, now.jobs)),
        )

    def _names(self, now: Snapshot) -> list[str]:
        """The virtual clusters there are; behind them those that are gone, while jobs of them go on."""
        config = now.rules.config
        known = list(config.virtual_clusters) if config is not None else list(self._ctx.site.virtual_clusters)
        gone = sorted({job.spec.virtual_cluster for job in now.jobs if not job.state.final} - set(known))
        return known + gone


def _cluster(use: ClusterUse, user: User, now: Snapshot) -> VirtualClusterUse:
    own_first = sorted(use.running, key=lambda each: each.job.user != user.name)
    listed = [each for each in own_first if may_see(user, each.job)][:MOST_ROWS]
    in_line = [each for each in use.waiting if may_see(user, each.job)][:MOST_ROWS]
    return VirtualClusterUse(
        name=use.name,
        granted=now.rules.granted(user, use.name),
        most_gpus=most_gpus(now.rules.policy, use.name, user.name),
        cells=tuple(_cells(each) for each in use.cells),
        running=tuple(_running(each) for each in listed),
        unlisted_jobs=len(use.running) - len(listed),
        unlisted_gpus=sum(each.gpus for each in use.running) - sum(each.gpus for each in listed),
        waiting=len(use.waiting),
        queue=tuple(_waiting(each) for each in in_line),
    )


def _cells(use: CellsUse) -> CellsUseWire:
    return CellsUseWire(
        leaf_type=use.leaf_type,
        pinned_cell=use.pinned_id,
        shapes=dict(use.shapes),
        owned=use.owned,
        guaranteed=use.guaranteed,
        opportunistic=use.opportunistic,
        reserved=use.reserved,
        bad=use.bad,
        free=use.free,
    )


def _running(runs: Running) -> RunningJob:
    job = runs.job
    return RunningJob(
        uid=job.uid,
        id=job.id,
        name=job.name,
        username=job.user,
        tasks=runs.tasks,
        gpus=runs.gpus,
        opportunistic=runs.opportunistic,
    )


def _waiting(waits: InLine) -> WaitingJob:
    job, queue = waits.job, waits.standing.queue
    return WaitingJob(
        uid=job.uid,
        id=job.id,
        name=job.name,
        username=job.user,
        gpus=_gpus(job),
        queue=f"{queue.vc}:{queue.priority}",
        position=waits.position,
        waiting=waits.waiting,
    )


def _gpus(job: Job) -> int:
    return sum(role.instances * role.resources.gpus for role in job.spec.task_roles)


def _types(use: NodeUse) -> Iterable[str]:
    return dict.fromkeys(gpu.type for gpu in use.node.gpus)


def _node(use: NodeUse) -> NodeUseWire:
    node = use.node
    return NodeUseWire(
        name=node.name,
        ready=node.ready,
        schedulable=node.schedulable,
        reason=node.reason,
        gpu_types=tuple(_types(use)),
        gpus=len(node.gpus),
        used_gpus=use.gpus,
        bad_gpus=use.bad,
        cpus=node.cpus,
        used_cpus=use.cpus,
        memory_mb=node.memory_mb,
        used_memory_mb=use.memory_mb,
        other_gpus=node.others.gpus,
        other_cpus=node.others.cpus,
        other_memory_mb=node.others.memory_mb,
    )
