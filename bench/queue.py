"""The queue with 50,000 waiting groups: what one pass costs after a group has ended, and what "why" costs.

The figures of ``waiting_jobs``, the same on the controller's own path, are reported with these.

A full cluster of 1,000 nodes with 8 GPUs each, four virtual clusters, 300 users, four priorities (with preemption), 25
kinds of needs besides GPUs. In the second workload no two waiting groups are alike, and all have the same priority: it
shows what finding costs, since nearly nothing is asked for twice. Times are CPU time of this thread, the best of some
runs, so that what else the machine does is not measured.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

from bench import waiting_jobs
from bench.figures import Figure, percentile
from bench.scheduling import config
from pai_backend.scheduling import Group, Ledger, Member, Preempt
from pai_backend.scheduling.explain import explain
from pai_backend.scheduling.queue import Cap, Entry, Patience, Policy, Queue, VcCaps
from tests.support.cell_laws import audit

WAITING = 50_000
NODES = 1000
PASSES = 300
RUNS = 3
SEED = 42
NOW = datetime(2026, 1, 1, tzinfo=UTC)
VCS = ("vc0", "vc1", "vc2", "vc3")
PRIORITIES = (-1, 10, 10, 10, 100, 120)
NORMAL = 10
POLICY = Policy(vc=VcCaps(user=Cap(gpus=256)), patience=Patience(8, timedelta(minutes=10)))


async def measure() -> list[Figure]:
    """All figures of the queue benchmark."""
    alike = [_run(_alike) for _ in range(RUNS)]
    unlike = [_run(_unlike) for _ in range(RUNS)]
    best, other = (min(runs, key=lambda run: percentile(run.passes, 0.99)) for runs in (alike, unlike))
    peer = f"p50 {percentile(best.passes, 0.5):.2f}, slowest {max(best.passes):.1f} ms; {best.kinds} kinds of groups"
    peer_unlike = f"p50 {percentile(other.passes, 0.5):.2f}, slowest {max(other.passes):.1f} ms; {other.kinds} kinds"
    return [
        Figure("pass_p99", percentile(best.passes, 0.99), peer),
        Figure("pass_unlike_p99", percentile(other.passes, 0.99), peer_unlike),
        Figure("asked_p99", percentile(best.asked, 0.99), f"of {WAITING} waiting; mean {_mean(best.asked):.1f}"),
        Figure("asked_unlike_p99", percentile(other.asked, 0.99), f"mean {_mean(other.asked):.1f}"),
        Figure("enter", min(run.enter for run in alike), f"{WAITING} groups after a restart, until all are asked"),
        Figure("why_p95", min(percentile(run.whys, 0.95) for run in alike), "with changes that would start it"),
        *waiting_jobs.measure(),
    ]


@dataclass
class Run:
    """What one run took: milliseconds, and groups asked about."""

    enter: float = 0.0
    passes: list[float] = field(default_factory=list)
    asked: list[float] = field(default_factory=list)
    whys: list[float] = field(default_factory=list)
    kinds: int = 0


Made = tuple[tuple[Member, ...], int, int]
"""Members, needs, priority."""
Make = Callable[[random.Random, int], Made]


def _alike(rng: random.Random, number: int) -> Made:
    """Some hundred shapes, as people submit them."""
    pods = rng.choice((1, 1, 1, 1, 2, 4, 8, 16))
    return (Member(pods, rng.choice((1, 1, 2, 4, 8))),), rng.randrange(25), rng.choice(PRIORITIES)


def _unlike(rng: random.Random, number: int) -> Made:
    """No two alike."""
    first = Member(rng.randint(1, 20), rng.randint(1, 8))
    return (first, Member(rng.randint(1, 20), rng.randint(1, 8))), number, NORMAL


class _Load:
    """A queue in front of a full cluster, and who comes to it."""

    def __init__(self, make: Make) -> None:
        self.random = random.Random(SEED)
        self.make = make
        self.count = 0
        self.queue = Queue(Ledger(config(NODES)), POLICY)
        for _ in range(NODES * 8):
            self.submit((Member(1, self.random.choice((1, 2, 4, 8))),), 0, NORMAL)
        self.settle()

    def submit(self, members: tuple[Member, ...], needs: int, priority: int) -> None:
        """One more group of somebody."""
        self.count += 1
        group = Group(f"g{self.count}", self.random.choice(VCS), members, priority)
        self.queue.add(Entry(group, f"u{self.random.randrange(300)}", self.count, needs))

    def settle(self) -> None:
        """Passes until nobody is left to ask; whoever has to make way does so at once."""
        more = True
        while more:
            answer = self.queue.advance(NOW)
            victims = [name for each in answer.decided if isinstance(each, Preempt) for name in each.victims]
            for name in victims:
                self.queue.release(name)
            more = answer.more or bool(victims)

    def fill(self) -> float:
        """Seconds until so many wait and each has been asked."""
        started = time.thread_time()
        while len(self.queue.waiting) < WAITING:
            self.submit(*self.make(self.random, self.count))
        self.settle()
        return time.thread_time() - started


def _run(make: Make) -> Run:
    run = Run()
    load = _Load(make)
    run.enter = load.fill()
    queue = load.queue
    running = len(queue.running)
    run.kinds = len(queue.index.kinds)
    for _ in range(PASSES):
        name = load.random.choice(list(queue.running))
        started = time.thread_time()
        queue.release(name)
        answer = queue.advance(NOW)
        run.passes.append(1000 * (time.thread_time() - started))
        run.asked.append(answer.asked)
        for decision in answer.decided:
            load.submit(*make(load.random, load.count))
            for victim in decision.victims if isinstance(decision, Preempt) else ():
                queue.release(victim)
        load.settle()
    assert len(queue.waiting) > 0.9 * WAITING, "groups were to wait"
    assert len(queue.running) > 0.5 * running, "groups were to start in place of those that ended"
    audit(queue.ledger)
    for name in load.random.sample(sorted(queue.waiting), 40):
        started = time.thread_time()
        told = explain(queue, name, NOW, vcs=VCS)
        run.whys.append(1000 * (time.thread_time() - started))
        assert told.texts["en"].sentence
    return run


def _mean(values: list[float]) -> float:
    return sum(values) / len(values)
