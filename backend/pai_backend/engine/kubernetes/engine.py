"""The Kubernetes engine: the ``Engine`` interface over the objects of one namespace and a watch of them."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import math
from collections.abc import AsyncGenerator, AsyncIterator, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final

from pai_backend.engine.base import (
    Connection,
    EngineError,
    EngineEvent,
    GpuUse,
    LogStream,
    LogTime,
    Records,
    TaskPlan,
    TaskSeen,
    TaskState,
    TaskUse,
)
from pai_backend.engine.bundle import layout
from pai_backend.engine.bundle.host_names import host_name
from pai_backend.engine.bundle.record import ExitRecord, record_of
from pai_backend.engine.holding import (
    ALIVE_S,
    ControllerClaim,
    EngineHolder,
    HeldByAnother,
    claimed,
    handed_over,
    is_contested,
)
from pai_backend.engine.kubernetes import naming
from pai_backend.engine.kubernetes.access import Access
from pai_backend.engine.kubernetes.calls import PARALLEL, Calls
from pai_backend.engine.kubernetes.channels import execute
from pai_backend.engine.kubernetes.client import ApiClient, connect
from pai_backend.engine.kubernetes.counts import ClusterCollector, ReflectorHealth, RequestCounts
from pai_backend.engine.kubernetes.dialing import PodDialer
from pai_backend.engine.kubernetes.ending import Ender, erase, find
from pai_backend.engine.kubernetes.failures import ApiForbidden, ApiNotFound
from pai_backend.engine.kubernetes.gpu_use import gpu_use
from pai_backend.engine.kubernetes.handover import Handover
from pai_backend.engine.kubernetes.holder_map import HolderMap
from pai_backend.engine.kubernetes.hosts import HostsKeeper
from pai_backend.engine.kubernetes.logs import FOLLOWED, LOG_BYTES, Collector, Sources, TaskLogs
from pai_backend.engine.kubernetes.marks import Marks, marks_of, never_started, recalled
from pai_backend.engine.kubernetes.mirrors import NODES_ALONE, Mirrors, of_tasks
from pai_backend.engine.kubernetes.namespaces import Namespaces, unknown
from pai_backend.engine.kubernetes.node_ports import answering, node_address
from pai_backend.engine.kubernetes.objects import Object, metadata, namespace_of
from pai_backend.engine.kubernetes.other_pods import OTHER_PODS
from pai_backend.engine.kubernetes.places import ApiPaths, ResourceKind, places_of
from pai_backend.engine.kubernetes.pod_events import EventReason, PodEvents, placed_text
from pai_backend.engine.kubernetes.policies import Policies
from pai_backend.engine.kubernetes.refreshing import refresh
from pai_backend.engine.kubernetes.reported_nodes import ReportedNodes
from pai_backend.engine.kubernetes.silence import Silences
from pai_backend.engine.kubernetes.starting import GateSupport, Starter
from pai_backend.engine.kubernetes.status.view import part
from pai_backend.engine.kubernetes.task_use import PodMeter, PodPlace
from pai_backend.engine.kubernetes.watching import PodWatcher
from pai_backend.engine.local.retention import erase_folders
from pai_backend.engine.providers import OwnerOf
from pai_backend.model.cluster_settings import NamespacePer, NodeReading, TroublePatience
from pai_backend.model.ids import JobUid, TaskUid, job_of
from pai_backend.model.node import Node, Placement
from pai_backend.model.pod_settings import Network, PodSettings
from pai_backend.model.task_note import TaskNote

_log = logging.getLogger(__name__)

_READ = f'[ -e {layout.EXIT_FILE} ] && {{ IFS= read -r record <{layout.EXIT_FILE}; printf %s "$record"; }}'
READ_RECORD: Final = (layout.BASH, "-c", _READ)
"""Prints a launcher's record by the bash of the bundle: the task's image may have no program at all."""
_HELPFUL: Final = ("events", *OTHER_PODS)
"""What is followed and no need."""
LOOK_INSIDE_S: Final = 10.0  # for that
CURRENT_S: Final = 180.0
"""Age of what is known beyond which it is not relied on: a bookmark comes every minute, a watch without any is given up
after 100 s, and a new list takes a while."""
SWEEP_EVERY: Final = timedelta(minutes=10)  # at most so often old marks are looked for, and only while tasks end


@dataclass(frozen=True)
class EngineOptions:
    """What an administrator chose."""

    instance: str
    """Name of the backend: what it makes is labelled so."""
    pods: PodSettings
    kept_logs: Path
    """Directory for the output of tasks."""
    log_bytes: int = LOG_BYTES
    """Size of a file of that, of which the newest two are kept for a task."""
    logs_followed: int = FOLLOWED
    """Logs that are followed at once while their tasks run; those of others are copied when they end."""
    patience: TroublePatience = field(default_factory=TroublePatience)
    nodes: NodeReading = field(default_factory=NodeReading)
    namespace_per: NamespacePer = NamespacePer.CLUSTER
    owner_of: OwnerOf = unknown
    """Whose a job is, where that decides which namespace it is in."""
    requests_at_once: int = PARALLEL
    pod_events: bool = True
    """Whether Events of pods say what was done with them."""


@dataclass(frozen=True)
class _Cluster:
    """What is there once the cluster was found."""

    client: ApiClient
    calls: Calls
    namespaces: Namespaces
    logs: TaskLogs
    collector: Collector
    dialer: PodDialer
    policies: Policies
    gates: GateSupport
    events: PodEvents


class KubernetesEngine:
    """Runs tasks as pods; see ``pai_backend.engine.base.Engine`` for the promises.

    Construction touches nothing: the cluster is connected to when it is first needed, so that any process may use it
    for ``dial`` and ``logs``. One process at a time may ``watch``, and only that one may start, stop and forget.
    """

    def __init__(self, access: Access, options: EngineOptions) -> None:
        self._access = access
        self._options = options
        self._connecting = asyncio.Lock()
        self._cluster: _Cluster | None = None
        self._watcher: PodWatcher | None = None
        self._mirrors: Mirrors | None = None
        self._counts = RequestCounts()
        self._silences = Silences()
        self._meter = PodMeter()
        self._swept_at = datetime.now(UTC)
        self._identities: frozenset[str] = frozenset()
        self._unheld = ""
        """Whose tasks this process acts on; empty before :meth:`hold`."""

    async def holder(self) -> EngineHolder | None:
        """The record in the namespace of tasks. Raises EngineError."""
        with self._asking():
            return await (await self._holder_map()).read()

    @contextlib.contextmanager
    def _asking(self) -> Iterator[None]:
        """Keep why the cluster does not say whose tasks it runs: it is not watched before."""
        try:
            yield
        except EngineError as error:
            self._unheld = str(error)
            raise
        self._unheld = ""

    async def hold(self, claim: ControllerClaim, *, renewing: bool = False) -> EngineHolder:
        """Claim the name of this backend in its namespace. Raises HeldByAnother, EngineError."""
        with self._asking():
            record = await self._holder_map()

        def change(found: EngineHolder | None) -> EngineHolder:
            now = datetime.now(UTC)
            if not renewing and is_contested(found, claim, now):
                raise HeldByAnother(
                    f"{record.place} was held by another controller with the same database identity "
                    f"{found.age_s(now) if found else 0:.0f} s ago; this one goes on once that has been silent for "
                    f"{ALIVE_S:.0f} s. Stop the other one if it works with a copy of this database"
                )
            return claimed(found, claim, now, record.place, renewing=renewing)

        try:
            with self._asking():
                held = await record.change(change)
        except (ApiForbidden, ApiNotFound) as error:
            if self._options.namespace_per is NamespacePer.CLUSTER:
                raise
            # Namespaces of users need not include the one that their names begin with. Labels still tell tasks apart.
            _log.warning("%s cannot be held, so another backend of this name is not refused: %s", record.place, error)
            held = claimed(None, claim, datetime.now(UTC), record.place)
        self._identities = held.identities
        return held

    async def hand_over(self, identity: str) -> None:
        """Let the name belong to another database. Raises EngineError."""

        def change(found: EngineHolder | None) -> EngineHolder:
            return handed_over(found, identity, datetime.now(UTC))

        await (await self._holder_map()).change(change, unreadable_is_none=True)

    async def _holder_map(self) -> HolderMap:
        cluster = await self._found()
        return HolderMap(cluster.calls, ApiPaths(cluster.client.namespace), self._options.instance)

    async def records(self, uid: TaskUid) -> Records:
        """What the task's Secret and the owner of its attempt carry. Raises EngineError."""
        cluster, places = await self._found(), await self._places(uid)
        secret = await find(cluster.calls, places.one(ResourceKind.SECRET, naming.task_name(uid)))
        marks = marks_of(secret) if secret is not None else None
        if secret is None or marks is None:
            return Records()
        about = part(metadata(secret), "annotations")
        job = about.get(naming.JOB_RECORD)
        if job is None and marks.owner is not None:
            owner = await find(cluster.calls, places.one(ResourceKind.CONFIG_MAP, marks.owner[0]))
            job = part(metadata(owner), "annotations").get(naming.JOB_RECORD) if owner is not None else None
        return Records(marks.database, str(job or ""), str(about.get(naming.TASK_RECORD) or ""))

    async def recall(self, uid: TaskUid) -> TaskSeen | None:
        """How a forgotten task ended: its Secret says so for an hour. Raises EngineError."""
        cluster, places = await self._found(), await self._places(uid)
        secret = await find(cluster.calls, places.one(ResourceKind.SECRET, naming.task_name(uid)))
        marks = marks_of(secret) if secret is not None else None
        return recalled(marks) if marks is not None else None

    def health(self) -> list[ReflectorHealth]:
        """How well pods and nodes are known now; empty while nothing is watched, unless the cluster could not be asked
        whose tasks it runs, which comes first.
        """
        known = self._mirrors.health() if self._mirrors is not None else []
        return known or ([ReflectorHealth("nodes", False, False, math.inf, 0, self._unheld)] if self._unheld else [])

    def troubles(self) -> list[str]:
        """Why what is known of the cluster cannot be relied on, in words; empty when it can, or nothing is watched."""
        needed = [each for each in self.health() if each.resource not in _HELPFUL]
        return [said for each in needed if (said := each.complaint(CURRENT_S))]

    async def silences(self, nodes: Iterable[str]) -> dict[str, float]:
        """Seconds since those of these nodes were heard of that are late."""
        return await self._silences.of((await self._found()).calls, nodes)

    def figures(self) -> ClusterCollector:
        """Figures of this process's requests and of what it knows, for metrics."""
        return ClusterCollector(self._counts, self.health)

    async def follow_nodes(self) -> AsyncIterator[EngineEvent]:
        """Nodes as they are, ``Listed``, then changes; for a process that does not watch. Raises AccessError."""
        cluster = await self._found()
        mirrors, nodes, handover = Mirrors(cluster.calls, NODES_ALONE), self._reported_nodes(), Handover()
        self._mirrors = mirrors
        try:
            async with mirrors.following(handover):
                while True:
                    changes = await mirrors.take(handover)
                    for event in nodes.of(changes, datetime.now(UTC)):
                        yield event
        finally:
            self._mirrors = None

    def _reported_nodes(self) -> ReportedNodes:
        return ReportedNodes(self._options.pods, self._options.nodes)

    def watch(self) -> AsyncIterator[EngineEvent]:
        """Nodes and tasks as they are, ``Listed``, then changes. Raises EngineError when already being watched."""
        if self._watcher is not None:
            raise EngineError("this engine is already being watched")
        return self._watch()

    async def _watch(self) -> AsyncIterator[EngineEvent]:
        cluster = await self._found()
        options = self._options
        namespaces = cluster.namespaces
        followed = of_tasks(namespaces.watched, options.instance, others=options.nodes.count_other_pods)
        mirrors = Mirrors(cluster.calls, followed, self._is_ours)
        nodes, hosts = self._reported_nodes(), HostsKeeper(cluster.calls)

        watcher = PodWatcher(
            cluster.calls,
            mirrors,
            nodes,
            options.patience,
            self._look_inside,
            cluster.collector.to_the_end,
            hosts,
            self._tell,
        )
        self._watcher, self._mirrors = watcher, mirrors
        try:
            async for event in watcher.events(self._marks):
                if isinstance(event, TaskSeen) and event.state is TaskState.RUNNING:
                    cluster.collector.begin(event.uid)
                yield event
        finally:
            await cluster.collector.aclose()
            self._watcher, self._mirrors = None, None

    async def start(self, plan: TaskPlan) -> None:
        """Make the task's pod, unless this uid was ever started or stopped before.

        Raises StartRefused for a node that is not there, or a plan that the cluster can never run; EngineError when a
        later try may succeed.
        """
        cluster = await self._found()
        places = cluster.namespaces.of_plan(plan)
        if self._watcher is not None:
            self._watcher.expect(plan.uid)
        options = self._options
        pods = options.pods.of_vc(plan.virtual_cluster)
        starter = Starter(
            cluster.calls, places, options.instance, pods, cluster.policies, self._has_node, cluster.gates, self._placed
        )
        ended = recalled(marks) if (marks := await starter.start(plan)) is not None else None
        if ended is not None and self._watcher is not None:
            self._watcher.tell_again(ended)

    def note(self, note: TaskNote) -> None:
        """Let an Event of the task's pod say it, if it has one; as :class:`~pai_backend.engine.base.TakesNotes`."""
        if (pod := self._pod(note.uid)) is not None:
            self._tell(pod, note.reason, note.text)

    def _placed(self, plan: TaskPlan, pod: Object) -> None:
        self._tell(pod, EventReason.PLACED, placed_text(plan))

    def _tell(self, pod: Object, reason: str, text: str) -> None:
        if self._cluster is not None and self._options.pod_events:
            self._cluster.events.tell(pod, reason, text)

    async def stop(self, uid: TaskUid, grace: float) -> None:
        """Ask the task to end, TERM now and KILL after ``grace`` seconds, rounded up; durable on return."""
        cluster = await self._found()
        marks = await Ender(cluster.calls, await self._places(uid), self._options.instance).stop(uid, grace)
        if marks is None or self._watcher is None:
            return
        if (ended := recalled(marks)) is not None:
            self._watcher.tell_again(ended)
        else:
            self._watcher.tell(never_started(marks, datetime.now(UTC)))

    async def refresh(self, uid: TaskUid, job_info: str) -> None:
        """Replace the task's job info; a task that is over or unknown is left alone."""
        cluster = await self._found()
        await refresh(cluster.calls, await self._places(uid), uid, job_info)

    async def logs(self, uid: TaskUid, stream: LogStream, offset: int, follow: bool) -> AsyncGenerator[bytes, None]:
        """Output from byte ``offset`` on; standard error is part of ``stdout``, see ``logs``."""
        cluster = await self._found()
        async for chunk in cluster.logs.read(uid, stream, offset, follow=follow):
            yield chunk

    async def log_extent(self, uid: TaskUid, stream: LogStream) -> tuple[int, int]:
        """(0, end) of a log now. Raises KeyError for an unknown uid."""
        cluster = await self._found()
        return await cluster.logs.extent(uid, stream)

    async def log_times(self, uid: TaskUid, stream: LogStream, start: int, end: int) -> list[LogTime]:
        """When the runtime of its node took the lines. Raises KeyError for an unknown uid."""
        cluster = await self._found()
        return await cluster.logs.times(uid, stream, start, end)

    async def forget(self, uid: TaskUid) -> None:
        """Remove pod and secrets of the task, and stop reporting it. Raises EngineError when it has not ended."""
        cluster = await self._found()
        ended = self._watcher.exit_of(uid) if self._watcher is not None else None
        ender = Ender(cluster.calls, await self._places(uid), self._options.instance)
        await ender.forget(uid, ended=ended, keep=cluster.collector.finish, pod=self._pod(uid))
        if self._watcher is not None:
            self._watcher.forget(uid)
        now = datetime.now(UTC)
        if now - self._swept_at > SWEEP_EVERY:
            self._swept_at = now
            marks = await self._marks()
            for places in {ApiPaths(each.namespace) for each in marks}:
                ender = Ender(cluster.calls, places, self._options.instance)
                await ender.sweep([each for each in marks if each.namespace == places.namespace], now)

    async def erase(self, job: JobUid) -> None:
        """Remove the job's collected logs, and the marks of its tasks, which would go by themselves after an hour."""
        cluster = await self._found()
        await erase(cluster.calls, [each for each in await self._marks() if job_of(each.uid) == job])
        try:
            await asyncio.to_thread(erase_folders, self._options.kept_logs, job)
        except OSError as error:
            raise EngineError(f"the logs of job {job} cannot be removed: {error}") from None

    async def dial(self, placement: Placement, uid: TaskUid, port: int) -> Connection:
        """A byte stream to the port. Outside the cluster a half-close is not passed on. Raises EngineError."""
        cluster = await self._found()
        return await cluster.dialer.dial(uid, port)

    async def gpu_use(self, placement: Placement, uid: TaskUid) -> GpuUse:
        """How much the GPUs of the task's container work. Raises EngineError when that cannot be known."""
        cluster = await self._found()
        return await gpu_use(cluster.client, (await self._places(uid)).one(ResourceKind.POD, naming.task_name(uid)))

    async def uses(self, tasks: Mapping[TaskUid, Placement]) -> Mapping[TaskUid, TaskUse]:
        """What the pods of these tasks use now. Raises EngineError."""
        cluster = await self._found()
        pods = {
            PodPlace(await self._places(uid), naming.task_name(uid), bool(placement.gpus)): uid
            for uid, placement in tasks.items()
        }
        found = await self._meter.uses(cluster.calls, cluster.client, pods)
        return {pods[pod]: use for pod, use in found.items()}

    def task_address(self, node: Node, role: str, index: int) -> str:
        """A name on the pod network (ADR 0014), else the address of the node."""
        return host_name(role, index) if self._options.pods.network is Network.POD else node.address

    async def busy_ports(self, machine: str, ports: Sequence[int]) -> set[int]:
        """None on the pod network, where every task has all ports to itself; else those of the node that answer."""
        if self._options.pods.network is Network.POD:
            return set()
        cluster = await self._found()
        return await answering(await node_address(cluster.calls, machine), ports)

    async def aclose(self) -> None:
        """End the watch and all connections; tasks go on."""
        if self._watcher is not None:
            self._watcher.close()
        cluster, self._cluster = self._cluster, None
        if cluster is not None:
            await cluster.events.aclose()
            await cluster.collector.aclose()
            await cluster.dialer.aclose()
            await cluster.client.aclose()

    def _has_node(self, name: str) -> bool:
        return self._watcher is not None and self._watcher.has_node(name)

    async def _found(self) -> _Cluster:
        """The cluster, connected to when this is first asked. Raises AccessError."""
        async with self._connecting:
            if self._cluster is None:
                client = await connect(self._access)
                calls = Calls(client, parallel=self._options.requests_at_once)
                client.counts = self._counts
                namespaces = Namespaces(client.namespace, self._options.namespace_per, self._options.owner_of)
                options = self._options
                sources = Sources(client, calls, self._places, options.kept_logs, options.log_bytes, self._pod)
                self._cluster = _Cluster(
                    client,
                    calls,
                    namespaces,
                    TaskLogs(sources),
                    Collector(sources, self._options.logs_followed),
                    PodDialer(client, calls, self._places),
                    Policies(calls),
                    GateSupport(),
                    PodEvents(calls, options.instance),
                )
            return self._cluster

    async def _marks(self) -> list[Marks]:
        """What the Secrets of all our tasks say."""
        cluster = await self._found()
        labels = {**naming.ours(self._options.instance), naming.COMPONENT: naming.Component.TASK}
        query = (("labelSelector", naming.selector(labels)),)
        found: list[Marks | None] = []
        for places in await cluster.namespaces.all(cluster.calls):
            try:
                found += [
                    marks_of(each) async for each in cluster.calls.list(places.all(ResourceKind.SECRET), query=query)
                ]
            except ApiForbidden as error:
                if self._options.namespace_per is NamespacePer.CLUSTER:
                    raise
                _log.warning("jobs of a namespace wait until the backend may work in it: %s", error)
        return [marks for marks in found if marks is not None and self._is_of_ours(marks.database)]

    def _is_ours(self, found: Object) -> bool:
        """Whether an object is in a namespace of ours and of no other database."""
        namespaces = self._cluster.namespaces if self._cluster is not None else None
        inside = namespaces is None or namespaces.has(namespace_of(found))
        return inside and self._is_of_ours(str(part(metadata(found), "labels").get(naming.DATABASE) or ""))

    def _is_of_ours(self, database: str) -> bool:
        """Whether tasks of this identity are the holder's. Those without one are of a version that had none."""
        return not database or not self._identities or database in self._identities

    async def _places(self, uid: TaskUid) -> ApiPaths:
        """Where the objects of a task are, or would be."""
        pod = self._pod(uid)
        return places_of(pod) if pod is not None else await (await self._found()).namespaces.of_job(job_of(uid))

    def _pod(self, uid: TaskUid) -> Object | None:
        """The pod of a task as this process knows it, if it watches."""
        return self._watcher.pod_of(uid) if self._watcher is not None else None

    async def _look_inside(self, path: str) -> ExitRecord | None:
        """What the launcher of the pod at a path has written down; None while there is nothing."""
        cluster = await self._found()
        ran = await execute(cluster.client, path, layout.TASK_CONTAINER, READ_RECORD, LOOK_INSIDE_S)
        return record_of(ran.output) if ran.code == 0 else None
