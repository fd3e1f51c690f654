"""A controller over a real store and a local engine with real processes, for tests that need all three."""

from __future__ import annotations

import asyncio
import random
import secrets
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path

from pai_backend.access.ports import PortRange
from pai_backend.controller import Controller, ControllerOptions
from pai_backend.engine.base import LogStream
from pai_backend.engine.local.engine import LocalEngine
from pai_backend.engine.local.nodes import simulated_node
from pai_backend.lifecycle.derive import KEEP
from pai_backend.model.ids import JobUid
from pai_backend.model.job import Job, NewEvent
from pai_backend.model.spec import JobSpec
from pai_backend.store.sql import Store
from pai_backend.testing.builders import make_job

PATIENCE_S = 60.0


async def submit(store: Store, number: int, spec: JobSpec) -> Job:
    """Submit a job under the name of that number. Its uid is no other test's: processes are found and ended by it."""
    spec = spec.model_copy(update={"name": f"job{number}"})
    uid = JobUid(f"j{secrets.token_hex(8)}")
    job = make_job(spec.name, uid=uid, spec=spec, submitted_at=datetime.now(UTC))
    return await store.jobs.submit(job, b"{}", "job.json", "application/json", [NewEvent("job.submitted")])


async def until(store: Store, uid: JobUid, wanted: Callable[[Job], bool]) -> Job:
    """The job once it is as wanted."""
    mark = -1
    async with asyncio.timeout(PATIENCE_S):
        while not wanted(job := await store.jobs.get(uid)):
            mark = await store.changes.wait(mark, 1.0)
    return job


async def final(store: Store, job: Job) -> Job:
    """The job once it has ended."""
    return await until(store, job.uid, lambda now: now.state.final)


async def log_of(engine: LocalEngine, job: Job, number: int = 0) -> str:
    """All that a task has written."""
    chunks = [chunk async for chunk in engine.logs(job.tasks[number].uid, LogStream.ALL, 0, False)]
    return b"".join(chunks).decode()


@asynccontextmanager
async def at_work(store: Store, root: Path, keep: timedelta = KEEP) -> AsyncIterator[LocalEngine]:
    """A controller and a local engine with two nodes, until the block ends or is left by an exception."""
    nodes = [simulated_node(name, "TITANX", 1, cpus=16, memory_mb=65536) for name in ("carol", "dan")]
    engine = LocalEngine(root, nodes)
    stop = asyncio.Event()
    # A range of its own keeps tests that run side by side from probing the same ports.
    first = random.SystemRandom().randrange(20000, 32000)
    options = ControllerOptions(
        holder="test", ports=PortRange(first, first + 200), grace_s=2.0, lease_ttl_s=1.0, keep=keep
    )
    work = asyncio.create_task(Controller(store, engine, options).run(stop))
    try:
        yield engine
    finally:
        stop.set()
        async with asyncio.timeout(PATIENCE_S):
            await work
        await engine.aclose()
