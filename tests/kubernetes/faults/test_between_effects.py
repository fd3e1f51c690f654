"""A controller that ends between every two of its requests, one after the other: a start, an end and a stop go on.

Controllers and engines live in this process, one after the other, so that dozens of ends take seconds; the processes
themselves are killed in ``test_controllers``. What they share is what a crash leaves: the store and the cluster.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path

import pytest
from aiohttp import web

from pai_backend.controller import Controller, ControllerOptions
from pai_backend.engine.kubernetes.access import Access
from pai_backend.engine.kubernetes.engine import EngineOptions, KubernetesEngine
from pai_backend.model.job import Job, NewEvent, Phase
from pai_backend.model.pod_settings import PodSettings
from pai_backend.protocol import read_document
from pai_backend.store.keyring import KeyFile
from pai_backend.store.sql import Store
from pai_backend.testing.builders import make_job, make_uid
from tests.kubernetes.cluster.commands import until
from tests.kubernetes.faults.audit import broken, forgotten
from tests.kubernetes.faults.jobs import Wanted, good, stopped
from tests.kubernetes.faults.product import LIMIT_S, Site
from tests.support.fault_proxy import LoseAnswer

pytestmark = pytest.mark.asyncio(loop_scope="session")

A_LIFE = {
    "POST secrets": 1,
    "POST networkpolicies": 1,
    "POST pods": 1,
    "PATCH secrets": 1,  # forgotten
    "DELETE pods": 1,
    "PATCH pods": 1,  # our finalizer
}
A_STOP = {"PATCH secrets": 1, "PATCH pods": 1, "DELETE pods": 1}


class Lives:
    """Controllers, of which each ends when the API server has carried out a request that is picked."""

    def __init__(self, store: Store, site: Site, logs: Path) -> None:
        self._store, self._site, self._logs = store, site, logs
        self._left: Counter[str] = Counter()
        self._now: asyncio.Task[None] | None = None
        self.ended = 0

    def strike(self, steps: Mapping[str, int]) -> None:
        """End a controller after each of these requests, which are named by method and resource."""
        self._left = Counter(steps)
        self._site.proxy.misbehave(LoseAnswer(then=self._end), self._picks)

    @property
    def left(self) -> dict[str, int]:
        """Requests that did not come."""
        return dict(+self._left)

    async def run(self) -> None:
        """One after the other, until cancelled."""
        while True:
            engine = KubernetesEngine(
                Access(self._site.kubeconfig, namespace=self._site.kubectl.namespace),
                EngineOptions("between", PodSettings.model_validate(self._site.pods), self._logs),
            )
            options = ControllerOptions(holder="between", grace_s=1.0, lease_ttl_s=1.0)
            self._now = asyncio.create_task(Controller(self._store, engine, options).run(asyncio.Event()))
            try:
                await asyncio.wait({self._now})
            finally:
                self._now.cancel()
                (outcome,) = await asyncio.gather(self._now, return_exceptions=True)
                await engine.aclose()
            if isinstance(outcome, Exception):
                raise outcome
            self.ended += 1

    def _end(self) -> None:
        assert self._now is not None
        self._now.cancel()

    def _picks(self, request: web.Request) -> bool:
        parts = request.path.split("/")
        if request.method == "GET" or "namespaces" not in parts:
            return False
        step = f"{request.method} {parts[parts.index('namespaces') + 2]}"
        picked = self._left[step] > 0
        self._left[step] -= picked
        return picked


@asynccontextmanager
async def living(store: Store, site: Site, logs: Path) -> AsyncIterator[Lives]:
    """Controllers until the block ends; an error of one of them is raised at its end."""
    lives = Lives(store, site, logs)
    running = asyncio.create_task(lives.run())
    try:
        yield lives
    finally:
        running.cancel()
        (outcome,) = await asyncio.gather(running, return_exceptions=True)
        if isinstance(outcome, Exception):
            raise outcome


async def hand_in(store: Store, number: int, wanted: Wanted) -> Job:
    """Write a job as the API does."""
    document = wanted.document()
    job = make_job(wanted.name, uid=make_uid(number), spec=read_document(document).spec, submitted_at=datetime.now(UTC))
    return await store.jobs.submit(job, document, "job.json", "application/json", [NewEvent("job.submitted")])


async def until_running(store: Store, job: Job) -> None:
    """Wait until its only task runs."""

    async def there() -> bool:
        return (await store.jobs.get(job.uid)).tasks[0].phase is Phase.RUNNING

    await until(there, f"{job.name} to run", LIMIT_S)


async def test_a_start_an_end_and_a_stop_go_on_after_each_of_their_requests(site: Site, tmp_path: Path) -> None:
    short, long = good("struck"), stopped("struck-and-stopped")
    store = Store(f"sqlite:///{tmp_path / 'pai.sqlite'}", KeyFile(tmp_path / "secret.key"))
    await store.open()
    try:
        async with living(store, site, tmp_path / "logs") as lives:
            lives.strike(A_LIFE)
            await hand_in(store, 1, short)
            await forgotten(store)
            assert lives.left == {}, "requests after which no controller ended"
            stopping = await hand_in(store, 2, long)
            await until_running(store, stopping)
            lives.strike(A_STOP)
            await store.jobs.request_stop(stopping.uid, "alice", datetime.now(UTC))
            await forgotten(store)
            assert lives.left == {}, "requests after which no controller ended"
            # What is asked for side by side has one end in common.
            assert lives.ended >= len(A_LIFE)
        assert await broken(store, site, [short, long]) == []
    finally:
        await store.aclose()
