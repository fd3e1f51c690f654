"""How much slower others are served while strangers attack: three benches, each of a backend of its own.

Every figure is the 95th percentile beside the attack in percent of the one without it, measured in turn on one
backend. The attackers are a process of their own (``bench.attackers``), so that what they use is not the API's loop.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from urllib.parse import urlsplit

import aiohttp

from bench.figures import Figure, percentile
from bench.processes import ended
from bench.scene import Scene, backend, document
from pai_backend.auth.accounts import hash_password

GUESSES, IDLE, SENDERS = 40, 5_000, 8
"""Threads that guess passwords; connections that say nothing; threads that send texts."""
ROUNDS, LOGINS, LISTS, JOBS = 3, 7, 60, 100
USERS, PASSWORD = ("alice", "bob"), "correct horse battery"
SETTLED_S = 60.0

Timed = Callable[[], Awaitable[None]]


async def guesses() -> list[Figure]:
    """Sign-ins of users whose passwords are guessed, and of others at the address of those who guess."""
    users = [{"name": user, "password_hash": hash_password(PASSWORD)} for user in USERS]
    async with backend(more=f"  trust_all_users: true\napi: {json.dumps({'users': users})}\n") as scene:
        found = [
            await _beside(scene, "guess", GUESSES, _login(scene, user, source), LOGINS)
            for user, source in (("alice", "127.0.0.1"), ("bob", "127.0.0.2"))
        ]
    (quiet, beside), (quiet_there, beside_there) = found
    told = f"beside {GUESSES} threads that guess"
    return [
        Figure("login_of_the_guessed", 100 * beside / quiet, f"{beside:.0f} ms {told}, {quiet:.0f} ms without"),
        Figure(
            "login_beside_guessers",
            100 * beside_there / quiet_there,
            f"{beside_there:.0f} ms {told}, {quiet_there:.0f} ms without",
        ),
    ]


async def idle() -> list[Figure]:
    """Pages of the list while strangers hold connections."""
    async with backend() as scene:
        await _fill(scene)
        quiet, beside = await _beside(scene, "idle", IDLE, _list(scene), LISTS)
    told = f"{beside:.1f} ms beside {IDLE} idle connections, {quiet:.1f} ms without"
    return [Figure("list_beside_idle", 100 * beside / quiet, told)]


async def texts() -> list[Figure]:
    """Pages of the list while a user sends the dearest texts there are, in some threads."""
    async with backend() as scene:
        await _fill(scene)
        quiet, beside = await _beside(scene, "texts", SENDERS, _list(scene), LISTS)
    told = f"{beside:.1f} ms beside texts of 1 MB, {quiet:.1f} ms without"
    return [Figure("list_beside_texts", 100 * beside / quiet, told)]


async def _beside(scene: Scene, attack: str, count: int, ask: Timed, asks: int) -> tuple[float, float]:
    """The 95th percentiles of milliseconds without and beside the attack, in turn."""
    found: dict[bool, list[float]] = {False: [], True: []}
    await ask()  # the first has more to do
    for _ in range(ROUNDS):
        for attacked, taken in found.items():
            async with AsyncExitStack() as stack:
                if attacked:
                    await stack.enter_async_context(_attackers(scene, attack, count))
                    await ask()  # answered after all connections that came before it were accepted
                for _ in range(asks):
                    started = time.perf_counter()
                    await ask()
                    taken.append(1000 * (time.perf_counter() - started))
    return percentile(found[False], 0.95), percentile(found[True], 0.95)


def _login(scene: Scene, user: str, source: str) -> Timed:
    url = f"{scene.endpoint.url}/api/v2/authn/basic/login"

    async def ask() -> None:
        connector = aiohttp.TCPConnector(local_addr=(source, 0))
        async with (
            aiohttp.ClientSession(connector=connector) as client,
            client.post(url, json={"username": user, "password": PASSWORD}) as answer,
        ):
            answer.raise_for_status()

    return ask


def _list(scene: Scene) -> Timed:
    headers = {"Authorization": f"Bearer {scene.endpoint.token}"}

    async def ask() -> None:
        async with (
            aiohttp.ClientSession(headers=headers) as client,
            client.get(f"{scene.endpoint.url}/api/v2/jobs?limit={JOBS}") as answer,
        ):
            assert len(await answer.json()) == JOBS

    return ask


async def _fill(scene: Scene) -> None:
    headers = {"Authorization": f"Bearer {scene.endpoint.token}"}
    async with aiohttp.ClientSession(scene.endpoint.url, headers=headers) as client:
        for number in range(JOBS):
            async with client.post("/api/v2/jobs", data=document(f"job-{number}", gpus=64)) as answer:
                answer.raise_for_status()


@asynccontextmanager
async def _attackers(scene: Scene, attack: str, count: int) -> AsyncIterator[None]:
    """A process that attacks until the end of the block; it has begun when the block begins."""
    url = urlsplit(scene.endpoint.url)
    words = [attack, str(url.port), str(count)]
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "bench.attackers", *words),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        env={**os.environ, "PAI_BENCH_TOKEN": scene.endpoint.token},
    )
    assert process.stdout is not None
    try:
        async with asyncio.timeout(SETTLED_S):
            assert await process.stdout.readline() == b"there\n"
        yield
    finally:
        await ended(process)
