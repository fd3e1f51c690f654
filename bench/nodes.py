"""Which nodes suit a task: what the question costs when thousands of waiting tasks ask it again and again.

Workload: 1,000 nodes of 8 GPUs in 20 pools, half of them tainted, each with labels of its own; 20 SKUs with a selector
and a toleration each, every one asked for in two sizes. Times are CPU time of this thread.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable

from bench.figures import Figure, percentile
from pai_backend.model.ids import TaskUid
from pai_backend.model.labels import Effect, NodeRule, Taint, Toleration
from pai_backend.model.node import Gpu, Node
from pai_backend.scheduling.core.room import Room
from pai_backend.scheduling.request import Need
from pai_backend.scheduling.terms import NodeRules, TermsOf

SEED = 42
NODES = 1000
POOLS = 20
ASKED = 4000
RUNS = 3


async def measure() -> list[Figure]:
    """All figures of the benchmark of nodes."""
    first = min(_first() for _ in range(RUNS))
    still = min((_times(lambda room, number: None) for _ in range(RUNS)), key=sum)
    look = min(_look() for _ in range(RUNS))
    moving = min((_times(_one_task_more) for _ in range(RUNS)), key=sum)
    return [
        Figure("first_ask", 1e3 * first, f"{NODES} nodes looked at once"),
        Figure("ask", 1e6 * percentile(still, 0.5), f"nothing has changed; a look at all nodes takes {1e6 * look:.0f}"),
        Figure("ask_after_p99", 1e6 * percentile(moving, 0.99), "a task was placed before each question"),
    ]


def _node(number: int) -> Node:
    pool = f"pool-{number % POOLS}"
    return Node(
        name=f"n{number:05}",
        address="10.0.0.1",
        machine=f"n{number:05}",
        cpus=64,
        memory_mb=524_288,
        gpus=tuple(Gpu(index=index, type="V100") for index in range(8)),
        labels={"pool": pool, "kubernetes.io/hostname": f"n{number:05}"},
        taints=(Taint(key="pool", value=pool, effect=Effect.NO_SCHEDULE),) if number % 2 else (),
    )


def _needs() -> list[Need]:
    pools = [f"pool-{number}" for number in range(POOLS)]
    rules = {
        pool: NodeRule(node_selector={"pool": pool}, tolerations=(Toleration(key="pool", value=pool),))
        for pool in pools
    }
    terms = TermsOf(NodeRules(rules), {})
    return [Need(TaskUid(""), cpus, 4096, terms=terms.on_cells({}, pool)) for cpus in (4, 32) for pool in pools]


def _room() -> Room:
    room = Room()
    for number in range(NODES):
        room.set_node(_node(number))
    return room


def _first() -> float:
    """Seconds of a question that nobody has asked before, the mean of all."""
    room, asks = _room(), _needs()
    started = time.thread_time()
    for ask in asks:
        assert len(room.having(ask)) == NODES // POOLS
    return (time.thread_time() - started) / len(asks)


def _look() -> float:
    """Seconds of a look at the room on every node, without memory."""
    room, ask = _room(), _needs()[0]
    started = time.thread_time()
    assert sum(room.is_free_for(ask, name) for name in room.nodes) == NODES
    return time.thread_time() - started


def _times(between: Callable[[Room, int], None]) -> list[float]:
    """Seconds of questions that have all been asked before."""
    room, asks, times = _room(), _needs(), []
    for ask in asks:
        room.having(ask)
    for number in range(ASKED):
        between(room, number)
        ask = asks[number % len(asks)]
        started = time.thread_time()
        found = room.having(ask)
        times.append(time.thread_time() - started)
        assert 0 < len(found) <= NODES // POOLS
    return times


def _one_task_more(room: Room, number: int) -> None:
    place = random.Random(SEED + number).randrange(NODES)
    room.hold(Need(TaskUid(f"task-{number % 500}"), 8, 4096), f"n{place:05}")
