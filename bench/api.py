"""Submitting and listing: what a busy front sees. Jobs ask for more GPUs than there are, so all stay queued."""

from __future__ import annotations

import asyncio
import sqlite3
import tempfile
import time
from pathlib import Path

import aiohttp

from bench.figures import Figure, percentile
from bench.scene import backend, document

CLIENTS = 16
SUBMISSIONS = 1000
PACED_PER_S = 200
PACED_S = 5
LISTS = 100


async def measure() -> list[Figure]:
    """All figures of the api benchmark."""
    async with backend() as scene:
        async with aiohttp.ClientSession(
            base_url=scene.endpoint.url,
            headers={"Authorization": f"Bearer {scene.endpoint.token}"},
            connector=aiohttp.TCPConnector(limit=CLIENTS),
        ) as client:
            await _submit(client, "warm-up")
            rate = await _as_fast_as_it_goes(client)
            paced = await _at_a_pace(client)
            listed = await _list(client)
            await _check(client)
        peer = f"a bare SQLite commit with the same durability: {_sqlite_commits_per_s():.0f} 1/s"
    return [
        Figure("submissions", rate, peer),
        Figure("submit_p95", percentile(paced, 0.95), f"p50 {percentile(paced, 0.5):.1f} ms"),
        Figure("list_p95", percentile(listed, 0.95), f"p50 {percentile(listed, 0.5):.1f} ms"),
    ]


async def _submit(client: aiohttp.ClientSession, name: str) -> float:
    """Milliseconds one submission took; raises when it was not accepted."""
    started = time.perf_counter()
    async with client.post("/api/v2/jobs", data=document(name, gpus=64)) as answer:
        answer.raise_for_status()
        await answer.read()
    return (time.perf_counter() - started) * 1000


async def _as_fast_as_it_goes(client: aiohttp.ClientSession) -> float:
    """Submissions a second with every client submitting one after the other."""
    names = iter(range(SUBMISSIONS))

    async def one_client() -> None:
        for number in names:
            await _submit(client, f"flood-{number}")

    started = time.perf_counter()
    await asyncio.gather(*(one_client() for _ in range(CLIENTS)))
    return SUBMISSIONS / (time.perf_counter() - started)


async def _at_a_pace(client: aiohttp.ClientSession) -> list[float]:
    """Latencies in ms of submissions that arrive evenly at the promised rate."""
    started = time.perf_counter()
    running: list[asyncio.Task[float]] = []
    for number in range(PACED_PER_S * PACED_S):
        await asyncio.sleep(max(0.0, started + number / PACED_PER_S - time.perf_counter()))
        running.append(asyncio.create_task(_submit(client, f"paced-{number}")))
    return list(await asyncio.gather(*running))


async def _list(client: aiohttp.ClientSession) -> list[float]:
    """Latencies in ms of a page of the list."""
    taken = []
    for number in range(LISTS):
        started = time.perf_counter()
        async with client.get("/api/v2/jobs", params={"limit": 100, "offset": 100 * (number % 5)}) as answer:
            page = await answer.json()
        taken.append((time.perf_counter() - started) * 1000)
        assert len(page) == 100
    return taken


async def _check(client: aiohttp.ClientSession) -> None:
    """The work was done: every job is there and waits."""
    async with client.get("/api/v2/jobs", params={"limit": 1, "state": "WAITING", "withTotalCount": "true"}) as answer:
        total = (await answer.json())["totalCount"]
    assert total == 1 + SUBMISSIONS + PACED_PER_S * PACED_S, total


def _sqlite_commits_per_s(commits: int = 300) -> float:
    with tempfile.TemporaryDirectory(prefix="pai-bench-") as scratch:
        connection = sqlite3.connect(Path(scratch) / "peer.sqlite", isolation_level=None)
        connection.executescript("PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL; CREATE TABLE t (x)")
        started = time.perf_counter()
        for _ in range(commits):
            connection.execute("INSERT INTO t VALUES (randomblob(2000))")
        taken = time.perf_counter() - started
        connection.close()
    return commits / taken
