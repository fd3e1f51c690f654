"""The two sides of placing at scale, on one cluster of simulated nodes: a controller of ours, and a plain client."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

import aiohttp

from bench.kubernetes.clusters import simulated_pods
from bench.kubernetes.configuration import write_config
from bench.kubernetes.plain import Object, Plain, Watch, at_once, copy_of
from bench.kubernetes.processors import quiet
from bench.many_jobs import fill
from bench.processes import Running, running
from bench.scene import document
from pai_backend.api.wire import MEDIA_TYPE
from pai_backend.engine.kubernetes import naming
from tests.kubernetes.cluster.simulation import RUNS_FOR, Simulation

CLIENTS = 16
OURS = naming.selector({**naming.ours("local"), naming.COMPONENT: naming.Component.TASK})
LOGS_FOLLOWED = 1  # kwok lets none be followed, so each would be read again and again; at its end each is copied
THEIRS = "app.kubernetes.io/instance=plain"
RUN_S = 60.0  # of a task, at least: ends do not come into placing
FIRST_RUN_S = 20.0  # of the task whose objects are copied meanwhile
PLACED_S, ENDED_S = 900.0, 1800.0
KINDS = ("Secret", "Pod")
NOBODY = "nobody"
"""A scheduler that there is not: nothing happens to its pods once they are created."""


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
class Placing:
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


class Sides:
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

    async def ours_creating(self, jobs: int) -> float:
        """Pods a second that are created of so many jobs, while nobody else asks for anything: none gets a node."""
        async with self._placing(jobs, 0, RUN_S, {"scheduler_name": NOBODY}) as placing:
            await placing.watch.until(lambda: len(placing.watch.added) >= jobs, PLACED_S)
        names = list(placing.watch.added)
        # Nobody records their ends any more.
        await at_once(lambda number: self._plain.patch("Pod", names[number], {"metadata": {"finalizers": None}}), jobs)
        await self._plain.delete_all(*KINDS)
        return created(placing.watch)

    async def plain_creating(self, bodies: dict[str, Object], count: int) -> float:
        """The same of the peer."""
        await quiet()
        async with self._watching(THEIRS) as (watch, _):
            await self._create(bodies, count, NOBODY)
            await watch.until(lambda: len(watch.added) == count, PLACED_S)
        await self._plain.delete_all(*KINDS)
        return created(watch)

    async def plain_rate(self, bodies: dict[str, Object], count: int) -> Rate:
        """That of the peer, until its pods run."""
        await quiet()
        async with self._watching(THEIRS) as (watch, runs):
            await self._create(bodies, count)
            await runs.until(lambda: len(runs.added) == count, PLACED_S)
        await self._plain.delete_all(*KINDS)
        return _rate(watch, runs)

    async def _create(self, bodies: dict[str, Object], count: int, scheduler: str | None = None) -> None:
        """Create pods as a plain client does, each after the other objects that there are bodies of."""

        async def one(number: int) -> None:
            name, owner = f"plain-{number}", None
            for kind in (each for each in KINDS if each in bodies):
                body = copy_of(bodies[kind], name, owner)
                if kind == "Pod":
                    body["metadata"]["annotations"][RUNS_FOR] = f"{PLACED_S}s"  # until it is deleted
                    _put_on(body, self._simulation.nodes[number % len(self._simulation.nodes)], scheduler)
                made = await self._plain.create(body)
                owner = made if kind == "Secret" else owner

        await at_once(one, count)

    @asynccontextmanager
    async def _watching(self, selector: str) -> AsyncIterator[tuple[Watch, Watch]]:
        """Pods that there are, and those that run."""
        async with (
            self._plain.watching("Pod", selector) as watch,
            self._plain.watching("Pod", selector, fields="status.phase=Running") as runs,
        ):
            yield watch, runs

    @asynccontextmanager
    async def _placing(
        self, jobs: int, finished: int, run_s: float, settings: Mapping[str, str] = MappingProxyType({})
    ) -> AsyncIterator[Placing]:
        self._passes += 1
        data = self._home / str(self._passes) / "data"
        await asyncio.to_thread(data.mkdir, parents=True)
        pods = {**simulated_pods("0", f"{run_s:.1f}s"), **settings}
        config = write_config(
            data.parent / "backend.yaml", self._simulation.cluster.kubeconfig, pods, logs_followed=LOGS_FOLLOWED
        )
        async with running(config, data, "api") as api, _client(api) as client:
            await fill(f"sqlite:///{data / 'pai.sqlite'}", finished)
            await at_once(lambda number: _submit(client, f"job-{number}"), jobs, CLIENTS)
            await quiet()
            async with self._watching(OURS) as (watch, runs), running(config, data, "controller") as controller:
                yield Placing(client, controller, watch, runs)


def created(watch: Watch) -> float:
    """Pods a second that a watch has seen to be created, from the first to the last."""
    made = sorted(watch.added.values())
    return (len(made) - 1) / (made[-1] - made[0])


def _rate(watch: Watch, runs: Watch) -> Rate:
    return Rate((len(runs.added) - 1) / (max(runs.added.values()) - min(watch.added.values())), created(watch))


def _put_on(pod: Object, node: str, scheduler: str | None) -> None:
    """Let a copied pod be for another node, and perhaps another scheduler."""
    pod["spec"].pop("nodeName", None)
    required = pod["spec"]["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
    required["nodeSelectorTerms"][0]["matchFields"][0]["values"] = [node]
    if scheduler is not None:
        pod["spec"]["schedulerName"] = scheduler


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
