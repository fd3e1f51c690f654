"""The crash campaign: kill -9 at random instants under a stream of short jobs, then audit what is left.

The backend runs each role in its own process. A kill hits one of them, or all at once with their
supervisor, which is then started again as a user's next command would. Jobs write one line each time
their command runs, so a second run shows. Some are incremental and have tasks that are to run again, some keep
failed tasks for debugging; of these a part is let go by hand, the others by the clock. Some want one of two GPUs, and
preempt each other. Beside them jobs take a workspace name over from each other (``takeovers``).
"""

from __future__ import annotations

import asyncio
import random
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

import httpx

from tests.crash.audit import Expected, audit
from tests.crash.backend import Backend
from tests.crash.takeovers import Takeovers
from tests.support.podman_site import PodmanSite

SUBMITTERS = 4
TARGETS = ("api", "controller", "gateway", "agent", "all")
PATIENCE_S = 300.0


@dataclass
class Campaign:
    """One campaign; ``run`` gives the promises that were broken, in words."""

    home: Path
    kills: int
    jobs: int
    seed: int
    takeovers: int = 0
    """So many jobs take a workspace name over from each other meanwhile."""
    podman: PodmanSite | None = None
    """What tasks run in containers of; None: they are processes."""
    killed: Counter[str] = field(default_factory=Counter)
    took_s: float = 0.0
    _progress: asyncio.Condition = field(default_factory=asyncio.Condition)

    async def run(self) -> list[str]:
        """Submit, kill, wait for all jobs to end, audit. Always stops what it started."""
        started = time.monotonic()
        rng = random.Random(self.seed)
        expected = [self._job(number, rng) for number in range(self.jobs)]
        backend = Backend(self.home, self.podman)
        await backend.start()
        try:
            async with asyncio.timeout(PATIENCE_S + 3 * self.kills):
                queue: asyncio.Queue[Expected] = asyncio.Queue()
                for job in expected:
                    queue.put_nowait(job)
                killer = asyncio.create_task(self._kill(backend, rng))
                releaser = asyncio.create_task(self._release(backend, expected))
                taken = Takeovers(self.takeovers)
                try:
                    submitting = (self._submit(backend, queue) for _ in range(SUBMITTERS))
                    await asyncio.gather(*submitting, taken.run(backend))
                    await killer
                    findings = await self._settled(backend, expected)
                finally:
                    releaser.cancel()
                    (outcome,) = await asyncio.gather(releaser, return_exceptions=True)
                if isinstance(outcome, Exception):
                    raise outcome
            findings += await audit(backend, expected, taken)
        finally:
            await backend.stop()
        self.took_s = time.monotonic() - started
        return findings

    def figures(self) -> dict[str, object]:
        """What was done, for the reader."""
        return {
            "seed": self.seed,
            "jobs": self.jobs,
            "kills": dict(sorted(self.killed.items())),
            "seconds": round(self.took_s, 1),
        }

    def _job(self, number: int, rng: random.Random) -> Expected:
        failures = rng.choice([0, 0, 0, 1, 2])
        debug = not failures and rng.random() < 0.3
        on_gpu = rng.choice(["", "test", "prod"]) if not failures and not debug else ""
        seconds = rng.uniform(2.0, 4.0) if on_gpu == "test" else rng.uniform(0.0, 1.5)  # long enough to be preempted
        return Expected(
            name=f"short-{number:04d}",
            code=rng.choice([0, 0, 1, 7, 42, 137]),
            instances=rng.choice([1, 1, 1, 2]),
            seconds=round(seconds, 2),
            stop=rng.random() < 0.15,
            failures=failures,
            debug=debug,
            release=rng.random() < 0.5,
            on_gpu=on_gpu,
        )

    async def _submit(self, backend: Backend, queue: asyncio.Queue[Expected]) -> None:
        """Submit each job until the backend has acknowledged it; a repeat of an acknowledged one is a conflict."""
        async with httpx.AsyncClient(timeout=10.0) as client:
            while not queue.empty():
                job = queue.get_nowait()
                while not await backend.submitted(client, job.name, job.document(backend.runs, backend.image)):
                    await backend.answering()
                while job.stop and not await backend.asked_to_stop(client, job.name):
                    await backend.answering()
                await self._in_step(queue)

    async def _in_step(self, queue: asyncio.Queue[Expected]) -> None:
        """Hold the stream back while the kills lag behind it, so that they are spread over all of it."""
        async with self._progress:
            sent = self.jobs - queue.qsize()
            await self._progress.wait_for(lambda: sum(self.killed.values()) >= self.kills * (sent / self.jobs) - 1)

    async def _kill(self, backend: Backend, rng: random.Random) -> None:
        while sum(self.killed.values()) < self.kills:
            await _moment(rng)
            target = rng.choice(TARGETS)
            if await backend.kill(target):
                async with self._progress:
                    self.killed[target] += 1
                    self._progress.notify_all()

    async def _release(self, backend: Backend, expected: list[Expected]) -> None:
        """Let go of kept tasks of the jobs that are to be released by hand, for ever."""
        by_hand = {job.name for job in expected if job.release}
        async with httpx.AsyncClient(timeout=10.0) as client:
            while True:
                try:
                    waiting = await backend.unfinished(client)
                except (httpx.HTTPError, OSError, KeyError, ValueError):
                    waiting = []  # it is being killed; the next look finds the same jobs
                for name, state in waiting:
                    if name in by_hand and "kept for debugging" in state:
                        await backend.let_go(client, name)
                await backend.something_happened()

    async def _settled(self, backend: Backend, expected: list[Expected]) -> list[str]:
        """Wait until no job is unfinished; what is still open after the patience is a finding."""
        await backend.answering()
        deadline = time.monotonic() + PATIENCE_S
        async with httpx.AsyncClient(timeout=30.0) as client:
            while time.monotonic() < deadline:
                open_jobs = await backend.asked_unfinished(client)
                if not open_jobs:
                    return []
                await backend.something_happened()
        return [f"job {name} has not ended: {state}" for name, state in open_jobs]


async def _moment(rng: random.Random) -> None:
    """A random instant within the time a few submissions take; the randomness is the point of the campaign."""
    await asyncio.sleep(rng.uniform(0.0, 0.4))
