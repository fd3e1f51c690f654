"""The placer with 50,000 waiting jobs on 1,000 nodes: what the controller decides after one job has ended.

What is timed is the decision part of its loop: what the job held is given back, the queue makes its passes, and it is
found out what those are to be told whose answer may have changed. In the second workload a tenth of the jobs needs no
GPU, until no CPU is left: then each release frees CPU that all kinds of needs are asked about. Times are CPU time of
this thread, of the first workload the best of some runs.
"""

from __future__ import annotations

import random
import time
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import cache

from bench.figures import Figure, percentile
from bench.scheduling import config
from pai_backend.model.ids import JobUid
from pai_backend.model.job import Job
from pai_backend.model.node import Gpu, Node
from pai_backend.model.spec import JobSpec, PriorityClass
from pai_backend.scheduling.jobs.placer import Placer
from pai_backend.scheduling.jobs.why import why
from pai_backend.scheduling.queue import Cap, Policy, VcCaps
from pai_backend.testing.builders import make_job, make_role, make_spec, make_uid
from tests.support.cell_laws import audit

WAITING = 50_000
NODES = 1000
PASSES = 200
RUNS = 2
SEED = 7
NOW = datetime(2026, 1, 1, tzinfo=UTC)
POLICY = Policy(vc=VcCaps(user=Cap(gpus=256)))
SHARES = {PriorityClass.OPPO: 20, PriorityClass.TEST: 80}
"""How many of a hundred jobs have which priority. What preemption costs is measured on the queue alone."""


def measure() -> list[Figure]:
    """All figures of waiting jobs."""
    runs, short = [_run(loose=0) for _ in range(RUNS)], _run(loose=0.1)
    best = min(runs, key=lambda run: percentile(run.passes, 0.99))
    whys = f"slowest {max(best.whys):.1f} ms"
    return [
        Figure("release_p99", percentile(best.passes, 0.99), _course(best)),
        Figure("release_cpu_short_p99", percentile(short.passes, 0.99), _course(short)),
        Figure("told_p99", percentile(best.told, 0.99), f"of {WAITING} waiting jobs; most {max(best.told):.0f}"),
        Figure("job_why_p95", percentile(best.whys, 0.95), whys),
        Figure("line_up", min(run.line_up for run in runs), f"{WAITING} jobs after a restart, until all are asked"),
    ]


def _course(run: Run) -> str:
    slowest = f"slowest {max(run.passes):.1f} ms, most told {max(run.told):.0f}"
    return f"p50 {percentile(run.passes, 0.5):.2f}, {slowest}; {run.started} jobs started"


@dataclass
class Run:
    """What one run took: milliseconds a release, jobs told of it, seconds until all had been asked."""

    passes: list[float] = field(default_factory=list)
    told: list[float] = field(default_factory=list)
    whys: list[float] = field(default_factory=list)
    started: int = 0
    line_up: float = 0.0


@cache
def _spec(vc: str, priority: PriorityClass, tasks: int, gpus: int, cpus: int) -> JobSpec:
    role = make_role(instances=tasks, gpus=gpus, cpus=cpus, memory_mb=cpus * 1024)
    return make_spec(roles=[role], virtual_cluster=vc, priority=priority)


class _Lab:
    """A placer, and who comes to it."""

    def __init__(self, loose: float) -> None:
        self.loose = loose
        """Share of jobs that need no GPU."""
        self.random = random.Random(SEED)
        self.placer = Placer(config(NODES), policy=POLICY)
        for number in range(NODES):
            gpus = tuple(Gpu(index=index, type="GPU") for index in range(8))
            node = Node(name=f"n{number:05}", address="", machine="", cpus=64, memory_mb=262_144, gpus=gpus)
            self.placer.set_node(node)
        self.placer.catch_up()
        self.running: dict[JobUid, Job] = {}
        self.waiting = 0
        self.lining_up = 0.0
        """Seconds spent on letting jobs wait."""
        self.count = 0

    def submit(self, *, small: bool = False) -> None:
        """One more job of somebody."""
        self.count += 1
        loose = not small and self.random.random() < self.loose
        gpus = 0 if loose else self.random.choice((1, 1, 2, 4, 8))
        tasks = 1 if small else self.random.choice((1, 1, 1, 1, 2, 4, 8))
        cpus = self.random.choice((1, 4, 16)) if loose else max(1, gpus * self.random.choice((2, 4, 6)))
        priority = PriorityClass.TEST if small else self.random.choices([*SHARES], [*SHARES.values()])[0]
        spec = _spec(f"vc{self.random.randrange(4)}", priority, tasks, gpus, cpus)
        job = make_job(
            f"job{self.count}",
            uid=make_uid(self.count),
            user=f"u{self.random.randrange(300)}",
            spec=spec,
            submitted_at=NOW + timedelta(milliseconds=self.count),
        )
        begun = time.thread_time()
        self.placer.wait(job, job.tasks)
        self.lining_up += time.thread_time() - begun
        self.waiting += 1

    def settle(self) -> int:
        """Passes until nobody is left to ask; whoever has to make way does so at once. How many started."""
        found, more = 0, True
        while more:
            answer = self.placer.advance(NOW)
            for unit in answer.started:
                self.placer.written(unit)
                self.running[unit.job] = self.placer.units.jobs[unit.job]
            for unit in answer.kept:
                self.placer.written(unit)
            found += len(answer.started)
            self.waiting -= len(answer.started)
            leaving = dict.fromkeys(each.job for each in self.placer.preemptions())
            for uid in leaving:
                self.placer.keep_only(self.running.pop(uid).uid, ())
            more = answer.more or bool(leaving)
        return found

    def tell(self) -> int:
        """Find out what is told to whom; to how many."""
        jobs = self.placer.changed_reasons.take()
        for uid in jobs:
            for unit in self.placer.waiting(uid):
                assert self.placer.wait_reason(unit).message
        return len(jobs)


def _run(loose: float) -> Run:
    run, lab = Run(), _Lab(loose)
    for _ in range(NODES * 8):
        lab.submit(small=True)
    lab.settle()
    lab.lining_up = 0.0
    while lab.waiting < WAITING:
        lab.submit()
    started = time.thread_time()
    lab.settle()
    run.line_up = lab.lining_up + time.thread_time() - started
    lab.tell()
    before = len(lab.running)
    for _ in range(PASSES):
        uid = lab.random.choice(list(lab.running))
        job = lab.running.pop(uid)
        begun = time.thread_time()
        lab.placer.keep_only(job.uid, ())
        run.started += lab.settle()
        told = lab.tell()
        run.passes.append(1000 * (time.thread_time() - begun))
        run.told.append(told)
        while lab.waiting < WAITING:
            lab.submit()
        lab.settle()
        lab.tell()
    assert len(lab.running) > 0.5 * before, "jobs were to start in place of those that ended"
    assert run.started > 0.5 * PASSES, "jobs were to start in place of those that ended"
    audit(lab.placer.ledger)
    names = sorted(lab.placer.queue.waiting)
    for name in lab.random.sample(names, 40):
        begun = time.thread_time()
        why(lab.placer, lab.placer.units.by_name[name].job, NOW)
        run.whys.append(1000 * (time.thread_time() - begun))
    return run
