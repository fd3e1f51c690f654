"""How soon the backend acts on what happens in a cluster, and what it asks of the API server when nothing does.

One simulated node is cordoned, a job is submitted that can run nowhere else, and the node is opened again: from then
until the job has its pod. The pod fails at once: from then until the job's event stream says so. Both count from when a
plain watch of the API server sees what happened, so that the cluster's own time is not ours.
"""

from __future__ import annotations

import asyncio
import tempfile
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import aiohttp
from prometheus_client.parser import text_string_to_metric_families

from bench.figures import Figure, percentile
from bench.kubernetes.clusters import NAMESPACE, simulated, simulated_pods
from bench.kubernetes.configuration import write_config
from bench.kubernetes.plain import Plain, Watch, connected
from bench.kubernetes.sides import OURS
from bench.processes import Running, running
from bench.scene import document
from jupyter_pai.client import AsyncClient
from jupyter_pai.endpoint import Endpoint

ROUNDS = 10
NODE = "sim-0000"
LIMIT_S = 120.0
IDLE_S = 60.0


async def measure() -> list[Figure]:
    """The figures of reacting."""
    async with _scene() as scene:
        rounds = [await scene.round(f"round-{number}") for number in range(ROUNDS)]
        asked = await scene.idle()
    placed, told = zip(*rounds, strict=True)
    return [
        Figure("node_to_pod_p90", percentile(placed, 0.9), f"median {percentile(placed, 0.5):.0f} ms"),
        Figure("failure_to_event_p90", percentile(told, 0.9), f"median {percentile(told, 0.5):.0f} ms"),
        Figure("backend_idle_requests", asked, f"beside watches, in {IDLE_S:.0f} s"),
    ]


@dataclass(frozen=True)
class _Scene:
    """A backend on a cluster of one simulated node, and both watched."""

    plain: Plain
    backend: Running
    client: AsyncClient
    pods: Watch
    nodes: Watch

    async def round(self, name: str) -> tuple[float, float]:
        """Milliseconds from the node's opening to the job's pod, and from its failure to the job's event."""
        await self.plain.patch("Node", NODE, {"spec": {"unschedulable": True}})
        await self.nodes.until(lambda: _cordoned(self.nodes), LIMIT_S)
        before = set(self.pods.added)
        await self.client.submit(document(name, gpus=1))
        heard = asyncio.create_task(self._until_failed(name))
        try:
            await self._until_waiting(name)
            await self.plain.patch("Node", NODE, {"spec": {"unschedulable": None}})
            opened = await self.nodes.until(lambda: not _cordoned(self.nodes), LIMIT_S)
            await self.pods.until(lambda: len(self.pods.added) > len(before), LIMIT_S)
            (pod,) = self.pods.added.keys() - before
            failed = await self.pods.until(lambda: self.pods.latest[pod]["status"].get("phase") == "Failed", LIMIT_S)
            told = await heard
            await self.pods.until(lambda: pod in self.pods.gone, LIMIT_S)
        finally:
            heard.cancel()
        return 1000 * (self.pods.added[pod] - opened), 1000 * (told - failed)

    async def _until_waiting(self, name: str) -> None:
        """Until the job says why it waits: it has been decided on while its node was closed."""
        async with asyncio.timeout(LIMIT_S):
            while not (await self.client.job(name))["why"]:  # noqa: ASYNC110 - no event tells of a reason
                await asyncio.sleep(0.05)

    async def _until_failed(self, name: str) -> float:
        """When the event of the task's end came."""
        async with asyncio.timeout(LIMIT_S):
            async for event in self.client.follow_events(name):
                if event["type"] == "job.exit":
                    return time.perf_counter()
        raise RuntimeError(f"the events of {name} end without its exit")

    async def idle(self) -> float:
        """Requests to the API server that are no watches, while nothing happens."""
        async with asyncio.timeout(LIMIT_S):
            while await self.plain.has("Pod"):  # noqa: ASYNC110 - what is left of the last round
                await asyncio.sleep(0.1)
        before = await self._requests()
        await asyncio.sleep(IDLE_S)  # the time that is measured
        return await self._requests() - before

    async def _requests(self) -> float:
        url, headers = f"{self.backend.told['url']}/metrics", {"Authorization": f"Bearer {self.backend.token}"}
        async with aiohttp.ClientSession(headers=headers) as session, session.get(url) as answer:
            answer.raise_for_status()
            text = await answer.text()
        asked = [
            sample
            for family in text_string_to_metric_families(text)
            for sample in family.samples
            if sample.name == "pai_kubernetes_requests_total"
        ]
        assert any(sample.labels["verb"] == "watch" for sample in asked)
        return sum(sample.value for sample in asked if sample.labels["verb"] != "watch")


def _cordoned(nodes: Watch) -> bool:
    return bool(nodes.latest.get(NODE, {}).get("spec", {}).get("unschedulable"))


@asynccontextmanager
async def _scene() -> AsyncIterator[_Scene]:
    with tempfile.TemporaryDirectory(prefix="pai-bench-") as scratch:
        home = Path(scratch)
        async with simulated(1) as simulation, connected(simulation.cluster, NAMESPACE) as plain:
            config = write_config(home / "backend.yaml", simulation.cluster.kubeconfig, simulated_pods("1", "0s"))
            async with (
                running(config, home / "data", "api,controller") as backend,
                plain.watching("Pod", OURS, whole=True) as pods,
                plain.watching("Node", whole=True) as nodes,
            ):
                client = AsyncClient(Endpoint(str(backend.told["url"]), backend.token))
                try:
                    yield _Scene(plain, backend, client, pods, nodes)
                finally:
                    client.close()
