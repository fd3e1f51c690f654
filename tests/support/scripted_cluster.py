"""A store, a scripted engine and a controller at work on them, for tests of what the controller decides."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from pai_backend.access.ports import PortRange
from pai_backend.controller import Controller, ControllerOptions
from pai_backend.model.ids import JobUid
from pai_backend.model.job import Job, NewEvent, State
from pai_backend.model.node import Node
from pai_backend.model.spec import JobSpec, PortSpec
from pai_backend.scheduling.config.model import ClusterConfig
from pai_backend.scheduling.jobs.placer import Placer
from pai_backend.scheduling.queue import Policy
from pai_backend.scheduling.terms import NodeRules
from pai_backend.store.sql import Store
from pai_backend.testing.builders import make_job, make_role, make_spec, make_uid
from tests.support.scripted_engine import ScriptedEngine, lab_node
from tests.support.sealing import KEYS

PATIENCE_S = 60.0
SMALL = PortRange(15000, 15009)


@dataclass
class Cluster:
    """A store, an engine and a running controller."""

    store: Store
    engine: ScriptedEngine
    numbers: int = 0

    async def submit(self, spec: JobSpec | None = None, **secrets: str) -> Job:
        """Submit a job under a name of its own, with these secrets."""
        self.numbers += 1
        uid = make_uid(self.numbers)
        spec = (spec or make_spec()).model_copy(update={"name": f"job{self.numbers}"})
        job = make_job(spec.name, uid=uid, spec=spec, submitted_at=datetime.now(UTC))
        events = [NewEvent("job.submitted")]
        return await self.store.jobs.submit(job, b"{}", "job.json", "application/json", events, secrets=secrets)

    async def until(self, uid: JobUid, wanted: Callable[[Job], bool]) -> Job:
        """The job once it is as wanted."""
        mark = -1
        async with asyncio.timeout(PATIENCE_S):
            while not wanted(job := await self.store.jobs.get(uid)):
                mark = await self.store.changes.wait(mark, 1.0)
        return job

    async def until_decided(self) -> None:
        """Wait until some controller holds the lease."""
        async with asyncio.timeout(PATIENCE_S):
            while await self.store.leadership.latest() is None:  # noqa: ASYNC110 - taking the lease wakes nobody
                await asyncio.sleep(0.01)

    async def running(self, job: Job) -> Job:
        """The job once it runs."""
        return await self.until(job.uid, lambda now: now.state is State.RUNNING)

    async def final(self, job: Job) -> Job:
        """The job once it has ended."""
        return await self.until(job.uid, lambda now: now.state.final)


@asynccontextmanager
async def controlled(
    store: Store,
    engine: ScriptedEngine,
    *,
    config: ClusterConfig | None = None,
    policy: Policy | None = None,
    rules: NodeRules | None = None,
    clock: Callable[[], datetime] | None = None,
    **options: object,
) -> AsyncIterator[Controller]:
    """A controller at work on this store and engine, with this configuration of cells and rules of the queue."""
    stop = asyncio.Event()
    controller = Controller(
        store,
        engine,
        ControllerOptions(**{"holder": "test", "ports": SMALL, "lease_ttl_s": 1.0, **options}),  # type: ignore[arg-type]
        placer=lambda: Placer(config, rules=rules, policy=policy),
        rng=random.Random(1),
        **({} if clock is None else {"clock": clock}),
    )
    work = asyncio.create_task(controller.run(stop))
    try:
        yield controller
    finally:
        stop.set()
        async with asyncio.timeout(PATIENCE_S):
            await work


@asynccontextmanager
async def opened(path: Path) -> AsyncIterator[Store]:
    """The store below this directory, open."""
    store = Store(f"sqlite:///{path}/pai.sqlite", KEYS)
    await store.open()
    try:
        yield store
    finally:
        await store.aclose()


@asynccontextmanager
async def cluster(
    path: Path,
    *nodes: Node,
    config: ClusterConfig | None = None,
    policy: Policy | None = None,
    rules: NodeRules | None = None,
    clock: Callable[[], datetime] | None = None,
    **options: object,
) -> AsyncIterator[Cluster]:
    """A controller with these options over a fresh store, and an engine with these nodes."""
    async with opened(path) as store:
        engine = ScriptedEngine(*nodes)
        async with controlled(store, engine, config=config, policy=policy, rules=rules, clock=clock, **options):
            yield Cluster(store, engine)


@asynccontextmanager
async def roomy_cluster(path: Path) -> AsyncIterator[Cluster]:
    """Room and ports for thirty jobs at once."""
    async with opened(path) as store:
        engine = ScriptedEngine(lab_node("carol", gpus=30, cpus=64))
        async with controlled(store, engine, ports=PortRange(15000, 15999)):
            yield Cluster(store, engine)


def on_gpu(**changes: object) -> JobSpec:
    """A job of one task that wants a GPU and a port."""
    return make_spec(roles=[make_role(gpus=1, ports=[PortSpec(label="http")])], gpu_type="TITANX", **changes)  # type: ignore[arg-type]
