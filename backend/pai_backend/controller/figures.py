"""Figures of the cluster for Prometheus: what is used, who waits and how long, and how jobs end.

Counters count what this process has written since it began; gauges are read when they are scraped, while this process
is the controller. Names of virtual clusters and users are labels, so these figures have a port of their own, and are
not those that the API gives to everyone.
"""

from __future__ import annotations

import logging
from collections import Counter as Tally
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

from prometheus_client import CollectorRegistry, Counter, Histogram, ProcessCollector
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from pai_backend.model.ids import JobUid
from pai_backend.model.job import Job
from pai_backend.scheduling.jobs.placer import Placer
from pai_backend.scheduling.jobs.usage import use_of_clusters, use_of_nodes

log = logging.getLogger(__name__)

WAITED_S: Final = (1, 5, 15, 60, 300, 900, 3600, 4 * 3600, 12 * 3600, 86_400, 3 * 86_400)
"""Bounds of the histogram of waiting times."""


@dataclass(frozen=True)
class Seen:
    """What a controller knows at a moment. ``idle``: by job, GPUs that do nothing."""

    jobs: Mapping[JobUid, Job]
    placer: Placer
    idle: Mapping[JobUid, int]


class ClusterFigures(Collector):
    """The figures of one process. ``seen`` is None while another process is the controller."""

    def __init__(self, clock: Callable[[], datetime] = lambda: datetime.now(UTC)) -> None:
        self.registry = CollectorRegistry()
        self.seen: Callable[[], Seen] | None = None
        self._clock = clock
        ProcessCollector(registry=self.registry)
        self.registry.register(self)
        vc, where = "virtual_cluster", self.registry
        self._submitted_to_start = Histogram(
            "pai_job_wait_seconds",
            "Time from the submission of a job to its first start.",
            [vc],
            buckets=WAITED_S,
            registry=where,
        )
        self._ends = Counter("pai_job_ends", "Jobs that ended, by their final state.", [vc, "state"], registry=where)
        self._retries = Counter(
            "pai_job_retries", "Retries of jobs, by whom they are charged to.", [vc, "charged"], registry=where
        )
        self._exits = Counter(
            "pai_task_exits",
            "Tasks that ended, by reason (preempted and evicted are two) and by who caused it.",
            [vc, "reason", "causer"],
            registry=where,
        )

    def changed(self, before: Job, after: Job) -> None:
        """Count what a written decision has changed."""
        vc = after.spec.virtual_cluster
        if after.launched_at is not None and before.launched_at is None:
            waited = (after.launched_at - after.submitted_at).total_seconds()
            self._submitted_to_start.labels(vc).observe(max(0.0, waited))
        if after.state.final and not before.state.final:
            self._ends.labels(vc, after.state.value).inc()
        for name in ("user", "platform", "resource"):
            if (more := getattr(after.retries, name) - getattr(before.retries, name)) > 0:
                self._retries.labels(vc, name).inc(more)
        known = {task.uid for task in before.tasks if task.exit is not None}
        for task in after.tasks:
            if task.exit is not None and task.uid not in known:
                self._exits.labels(vc, task.exit.reason, task.exit.causer.value).inc()

    def collect(self) -> Iterator[Metric]:
        """Called by the registry, on the loop that changes what is read."""
        leads = GaugeMetricFamily("pai_controller_leader", "1 in the process that is the controller.")
        leads.add_metric([], self.seen is not None)
        yield leads
        if self.seen is not None:
            seen = self.seen()
            yield from _of_clusters(seen, self._clock())
            yield from _of_nodes(seen)
            yield from _of_users(seen)


def _of_clusters(seen: Seen, now: datetime) -> Iterator[Metric]:
    """Cells and queues by virtual cluster."""
    jobs = seen.jobs.values()
    ledger, sizing = seen.placer.ledger, seen.placer.sizing
    names = sorted({*ledger.config.virtual_clusters, *(job.spec.virtual_cluster for job in jobs)})
    cells = _gauge(
        "pai_gpus",
        "GPUs of a virtual cluster's quota by use (guaranteed, reserved, bad, free), and opportunistic ones of any; "
        "without configured cells free ones are free to all.",
        "virtual_cluster",
        "gpu_type",
        "state",
    )
    running = _gauge("pai_running_jobs", "Jobs that have a place.", "virtual_cluster")
    waiting = _gauge("pai_queue_jobs", "Jobs that wait as a whole.", "virtual_cluster")
    oldest = _gauge("pai_queue_oldest_seconds", "How long the oldest waiting job has waited.", "virtual_cluster")
    for use in use_of_clusters(ledger, sizing, names, jobs):
        sums: Tally[tuple[str, str]] = Tally()
        for each in use.cells:
            for state in ("guaranteed", "opportunistic", "reserved", "bad", "free"):
                sums[each.leaf_type, state] += getattr(each, state)
        for (type_, state), count in sums.items():
            cells.add_metric([use.name, type_, state], count)
        running.add_metric([use.name], len(use.running))
        waiting.add_metric([use.name], len(use.waiting))
        since = min((line.job.submitted_at for line in use.waiting), default=now)
        oldest.add_metric([use.name], max(0.0, (now - since).total_seconds()))
    yield from (cells, running, waiting, oldest)


def _of_nodes(seen: Seen) -> Iterator[Metric]:
    """Nodes by state, and what they have."""
    placer = seen.placer
    states: Tally[str] = Tally()
    gpus: Tally[tuple[str, str]] = Tally()
    for use in use_of_nodes(placer.ledger, placer.sizing, placer.room.nodes.values(), seen.jobs.values()):
        node = use.node
        state = "not_ready" if not node.ready else "ready" if node.schedulable else "cordoned"
        states[state] += 1
        type_ = node.gpus[0].type if node.gpus else ""
        if node.gpus:
            gpus[type_, "used"] += use.gpus
            gpus[type_, "bad"] += use.bad
            left = max(0, len(node.gpus) - use.gpus - use.bad)
            gpus[type_, "free" if state == "ready" else state] += left
    yield _filled(_gauge("pai_nodes_by_state", "Nodes.", "state"), ((state,) for state in states), states.values())
    yield _filled(_gauge("pai_node_gpus", "GPUs of nodes.", "gpu_type", "state"), gpus, gpus.values())


def _of_users(seen: Seen) -> Iterator[Metric]:
    """GPUs and ports that are held."""
    held: Tally[tuple[str, str]] = Tally()
    idle: Tally[tuple[str, str]] = Tally()
    ports = 0
    for job in seen.jobs.values():
        owner = job.spec.virtual_cluster, job.user
        idle[owner] += seen.idle.get(job.uid, 0)
        for task in job.tasks:
            if task.placement is not None and task.holds_place:
                held[owner] += len(task.placement.gpus)
                ports += sum(map(len, task.placement.ports.values()))
    yield _filled(_gauge("pai_user_gpus", "GPUs that users hold.", "virtual_cluster", "user"), held, held.values())
    about = "GPUs that users hold and that did nothing for metrics.idle_gpus_s."
    yield _filled(_gauge("pai_idle_gpus", about, "virtual_cluster", "user"), idle, idle.values())
    leased = GaugeMetricFamily("pai_ports_leased", "Ports that running tasks have.")
    leased.add_metric([], ports)
    yield leased


def _gauge(name: str, meaning: str, *labels: str) -> GaugeMetricFamily:
    return GaugeMetricFamily(name, meaning, labels=labels)


def _filled(family: GaugeMetricFamily, labels: Iterable[tuple[str, ...]], values: Iterable[float]) -> GaugeMetricFamily:
    for each, value in zip(labels, values, strict=True):
        family.add_metric(list(each), value)
    return family
