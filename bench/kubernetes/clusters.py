"""The clusters that benches start for themselves, by the programs of the tests, with a namespace for tasks."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

from bench.figures import CannotRun
from bench.kubernetes.processors import apart
from tests.kubernetes.cluster import programs
from tests.kubernetes.cluster.cluster import Cluster, started
from tests.kubernetes.cluster.kubectl import Kubectl
from tests.kubernetes.cluster.simulation import EXIT_CODE, RARE, RUNS_FOR, Simulation, toleration

NAMESPACE = "bench"
GPUS = 8  # of a simulated node
NODES_AT_ONCE = 100  # are added within kubectl's time also on a busy machine


@asynccontextmanager
async def real(*nodes: str) -> AsyncIterator[Cluster]:
    """A cluster of nodes that run pods, on processors of their own. Raises CannotRun."""
    await asyncio.to_thread(_need_machine)
    await asyncio.to_thread(programs.build, *programs.CONTROL_PLANE, *programs.NODE)
    with apart() as others:
        async with started() as cluster:
            with others():
                await cluster.add_nodes(nodes)
            await _make_namespace(cluster.kubectl)
            yield cluster


@asynccontextmanager
async def simulated(nodes: int) -> AsyncIterator[Simulation]:
    """A cluster of nodes that exist in the API alone, on processors of its own. Raises CannotRun."""
    await asyncio.to_thread(_need_machine)
    place = await asyncio.to_thread(programs.build, *programs.CONTROL_PLANE, "kwok")
    async with AsyncExitStack() as stack:
        others = stack.enter_context(apart())
        with others():
            cluster = await stack.enter_async_context(started(timing=RARE))
            simulation = Simulation(cluster)
            simulation.start(place)
        for first in range(0, nodes, NODES_AT_ONCE):
            await simulation.add_nodes(min(NODES_AT_ONCE, nodes - first), GPUS)
        await _make_namespace(cluster.kubectl)
        yield simulation


def simulated_pods(code: str, after: str) -> dict[str, Any]:
    """Settings of pods on simulated nodes, which end with this exit code after that time."""
    return {
        "runtime_image": "simulated/runtime:1",
        "annotations": {EXIT_CODE: code, RUNS_FOR: after},
        "tolerations": [toleration()],
    }


def _need_machine() -> None:
    lacks = programs.lacking()
    if lacks:
        raise CannotRun(f"no Kubernetes cluster can run here; missing: {', '.join(lacks)}")


async def _make_namespace(kubectl: Kubectl) -> None:
    await kubectl("create", "namespace", NAMESPACE)
    await kubectl.within(NAMESPACE)("wait", "--for=create", "--timeout=60s", "serviceaccount/default")
