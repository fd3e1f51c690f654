"""Five thousand jobs submitted at once to a thousand simulated nodes of eight GPUs: how fast they are placed, and what
that takes of the controller; with an empty database, and with 100,000 finished jobs in it.

Jobs are submitted while no controller runs, so that all wait when it starts. The peer is a plain client that creates
the same objects, with bodies copied from ours, just before on the same cluster: a Secret and a pod for each job. It
keeps nothing, decides nothing and looks after nothing. What it creates of pods alone is told beside. Rates are of pods,
from when the first is there until the last runs, as watches of the API server see it: who only creates leaves most of
what scheduler and kubelets have to do for later. The rate of creating is told beside, too.

The control plane has half of the processors, ours and the peer the other half (see ``processors``): what a controller
thinks takes nothing from the API server, as where each has a machine of its own.
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

from bench.figures import Figure
from bench.kubernetes.clusters import NAMESPACE, simulated, simulated_pods
from bench.kubernetes.configuration import write_config
from bench.kubernetes.plain import Object, Plain, Watch, at_once, connected, copy_of
from bench.kubernetes.processors import quiet
from bench.many_jobs import fill
from bench.processes import Running, running
from bench.scene import document
from pai_backend.api.wire import MEDIA_TYPE
from pai_backend.engine.kubernetes import naming
from tests.kubernetes.cluster.simulation import RUNS_FOR, Simulation

NODES = 1_000
JOBS = 5_000
FINISHED = 100_000
CLIENTS = 16
OURS = naming.selector({**naming.ours("local"), naming.COMPONENT: naming.Component.TASK})
LOGS_FOLLOWED = 1  # kwok lets none be followed, so each would be read again and again; at its end each is copied
THEIRS = "app.kubernetes.io/instance=plain"
RUN_S, RUN_TIMES = 60.0, 3  # of a task, or so often the peer's creating: ends do not come into placing
FIRST_RUN_S = 20.0  # of the task whose objects are copied meanwhile
PLACED_S, ENDED_S = 900.0, 1800.0
KINDS = ("Secret", "Pod")


async def measure(jobs: int = JOBS, nodes: int = NODES, finished: int = FINISHED) -> list[Figure]:
    """The figures of scale."""
    with tempfile.TemporaryDirectory(prefix="pai-bench-") as scratch:
        async with simulated(nodes) as simulation, connected(simulation.cluster, NAMESPACE) as plain:
            side = _Side(simulation, plain, Path(scratch))
            bodies = await side.bodies()
            peer = await side.plain_rate(bodies, jobs)
            fresh = await side.ours(jobs, 0, max(RUN_S, RUN_TIMES * jobs / peer.running))
            peer_again = await side.plain_rate(bodies, jobs)
            full = await side.ours(jobs, finished, max(RUN_S, RUN_TIMES * jobs / peer_again.running))
            alone = await side.plain_rate({"Pod": bodies["Pod"]}, jobs)
    return [
        Figure("placed_share", 100 * fresh.rate.running / peer.running, f"{fresh.rate}; plain client {peer}"),
        Figure(
            "placed_share_full",
            100 * full.rate.running / peer_again.running,
            f"{full.rate} with {finished} finished jobs; plain client {peer_again}, {alone} of pods alone",
        ),
        Figure("created_share", 100 * fresh.rate.created / peer.created, "until they are there; what follows waits"),
        Figure("controller_memory", max(fresh.mib, full.mib), f"{fresh.mib:.0f} with an empty database"),
        Figure(
            "controller_cores",
            max(fresh.cores, full.cores),
            f"{fresh.cpu_ms:.1f} ms for each job; all ended after {fresh.ended_s:.0f} s",
        ),
    ]


@dataclass(frozen=True)
class Rate:
    """Pods a second: until they run, and until they are created."""

    running: float
    created: float

    def __str__(self) -> str:
        """Both, for the reader."""
        return f"{self.running:.1f} 1/s ({self.created:.1f} 1/s created)"


@dataclass(frozen=True)
class Pass:
    """What came of submitting all jobs at once."""

    rate: Rate
    cores: float
    cpu_ms: float
    mib: float
    ended_s: float


@dataclass(frozen=True)
class _Placing:
    """Jobs that wait, a controller that has just been started, and a watch of their pods."""

    client: aiohttp.ClientSession
    controller: Running
    watch: Watch
    runs: Watch

    async def ended(self, jobs: int) -> None:
        """Wait until so many jobs have succeeded and nothing is left of their pods: their ends are recorded then."""
        await self.watch.until(lambda: len(self.watch.gone) >= jobs, ENDED_S)
        query = {"state": "SUCCEEDED", "keyword": "job-", "limit": "1", "withTotalCount": "true"}
        async with self.client.get("/api/v2/jobs", params=query) as answer:
            answer.raise_for_status()
            succeeded = (await answer.json())["totalCount"]
        assert succeeded == jobs, f"{succeeded} of {jobs} jobs have succeeded"


class _Side:
    """Ours and the peer's, on one cluster. Each begins with an empty namespace and leaves it so."""

    def __init__(self, simulation: Simulation, plain: Plain, home: Path) -> None:
        self._simulation, self._plain, self._home = simulation, plain, home
        self._passes = 0

    async def bodies(self) -> dict[str, Object]:
        """An object of ours of each kind, as the API server has it."""
        async with self._placing(1, 0, FIRST_RUN_S) as placing:
            await placing.watch.until(lambda: len(placing.watch.added) == 1, PLACED_S)
            (pod,) = placing.watch.added
            found = {kind: await self._plain.get(kind, pod) for kind in KINDS}
            await placing.ended(1)
        await self._plain.delete_all(*KINDS)
        return found

    async def ours(self, jobs: int, finished: int, run_s: float) -> Pass:
        """Place and run to the end that many jobs, with so many finished ones in the database."""
        async with self._placing(jobs, finished, run_s) as placing:
            began, before_s = time.perf_counter(), placing.controller.cpu_s()
            await placing.watch.until(lambda: len(placing.watch.added) >= jobs, PLACED_S)
            await placing.ended(jobs)
            took_s, used_s = time.perf_counter() - began, placing.controller.cpu_s() - before_s
            rate, most_mib = _rate(placing.watch, placing.runs), placing.controller.most_mib
        await self._plain.delete_all(*KINDS)
        return Pass(rate, used_s / took_s, 1000 * used_s / jobs, most_mib, took_s)

    async def plain_rate(self, bodies: dict[str, Object], count: int) -> Rate:
        """That of the peer, which creates each pod after the other objects that there are bodies of."""

        async def one(number: int) -> None:
            name, owner = f"plain-{number}", None
            for kind in (each for each in KINDS if each in bodies):
                body = copy_of(bodies[kind], name, owner)
                if kind == "Pod":
                    body["metadata"]["annotations"][RUNS_FOR] = f"{PLACED_S}s"  # until it is deleted
                    _put_on(body, self._simulation.nodes[number % len(self._simulation.nodes)])
                made = await self._plain.create(body)
                owner = made if kind == "Secret" else owner

        await quiet()
        async with self._watching(THEIRS) as (watch, runs):
            await at_once(one, count)
            await runs.until(lambda: len(runs.added) == count, PLACED_S)
        await self._plain.delete_all(*KINDS)
        return _rate(watch, runs)

    @asynccontextmanager
    async def _watching(self, selector: str) -> AsyncIterator[tuple[Watch, Watch]]:
        """Pods that there are, and those that run."""
        async with (
            self._plain.watching("Pod", selector) as watch,
            self._plain.watching("Pod", selector, fields="status.phase=Running") as runs,
        ):
            yield watch, runs

    @asynccontextmanager
    async def _placing(self, jobs: int, finished: int, run_s: float) -> AsyncIterator[_Placing]:
        self._passes += 1
        data = self._home / str(self._passes) / "data"
        await asyncio.to_thread(data.mkdir, parents=True)
        pods = simulated_pods("0", f"{run_s:.1f}s")
        config = write_config(
            data.parent / "backend.yaml", self._simulation.cluster.kubeconfig, pods, logs_followed=LOGS_FOLLOWED
        )
        async with running(config, data, "api") as api, _client(api) as client:
            await fill(f"sqlite:///{data / 'pai.sqlite'}", finished)
            await at_once(lambda number: _submit(client, f"job-{number}"), jobs, CLIENTS)
            await quiet()
            async with self._watching(OURS) as (watch, runs), running(config, data, "controller") as controller:
                yield _Placing(client, controller, watch, runs)


def _rate(watch: Watch, runs: Watch) -> Rate:
    made, begun = sorted(watch.added.values()), sorted(runs.added.values())
    return Rate((len(begun) - 1) / (begun[-1] - made[0]), (len(made) - 1) / (made[-1] - made[0]))


def _put_on(pod: Object, node: str) -> None:
    """Let a copied pod be for another node."""
    pod["spec"].pop("nodeName", None)
    required = pod["spec"]["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
    required["nodeSelectorTerms"][0]["matchFields"][0]["values"] = [node]


@asynccontextmanager
async def _client(api: Running) -> AsyncIterator[aiohttp.ClientSession]:
    headers = {"Authorization": f"Bearer {api.token}", "Accept": MEDIA_TYPE}
    connector = aiohttp.TCPConnector(limit=CLIENTS)
    async with aiohttp.ClientSession(str(api.told["url"]), headers=headers, connector=connector) as client:
        yield client


async def _submit(client: aiohttp.ClientSession, name: str) -> None:
    async with client.post("/api/v2/jobs", data=document(name, gpus=1)) as answer:
        answer.raise_for_status()
        await answer.read()
