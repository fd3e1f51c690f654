"""The engine of containers beside ``podman run``: starts one by one, twenty at once, and 200 that run."""

from __future__ import annotations

import asyncio
import contextlib
import os
import tempfile
import time
from pathlib import Path

import psutil

from bench.figures import CannotRun, Figure, percentile
from bench.scene import Scene, backend, document
from jupyter_pai.client import AsyncClient
from tests.support.podman_site import PodmanSite, lacking, podman_site

STARTS = 15
AT_ONCE = 20
HELD = 200
HELD_S = 20.0
SETTLE_S = 10.0
COMMAND = "sleep 600"


async def measure() -> list[Figure]:
    """All figures. Raises CannotRun."""
    if lacks := lacking():
        raise CannotRun(f"no containers here without {', '.join(lacks)}")
    with contextlib.ExitStack() as uses:
        place = uses.enter_context(tempfile.TemporaryDirectory(prefix="pai-bench-", ignore_cleanup_errors=True))
        site = uses.enter_context(podman_site(Path(place) / "podman"))
        given = {"ENGINE__KIND": "containers", "CONTAINERS__RUNTIME_IMAGE": site.runtime_image}
        os.environ.update(site.environment, **{f"PAI_BACKEND_{name}": value for name, value in given.items()})
        async with backend() as scene:
            client = AsyncClient(scene.endpoint)
            uses.callback(client.close)
            return await _figures(scene, client, site)


async def _figures(scene: Scene, client: AsyncClient, site: PodmanSite) -> list[Figure]:
    await _started(client, site, "warm")  # the runtime bundle is copied at the first start
    ours, theirs = [], []
    for number in range(STARTS):  # by turns: the machine is not as quick at all times
        theirs.append(await _peers(site, 1))
        ours.append(await _started(client, site, f"start-{number}"))
    crowd, peers = [], []
    for number in range(3):
        peers.append(await _peers(site, AT_ONCE))
        crowd.append(await _started(client, site, f"crowd-{number}", AT_ONCE))
    held = await _held(scene, client, site)
    one, alone = percentile(ours, 0.5), percentile(theirs, 0.5)
    many, together = percentile(crowd, 0.5), percentile(peers, 0.5)
    return [
        Figure("start", 100 * one / alone, f"{one:.0f} ms; podman run takes {alone:.0f} ms"),
        Figure("crowd", 100 * many / together, f"{many:.0f} ms for {AT_ONCE}; as many podman run: {together:.0f} ms"),
        Figure("held_cpu", held, f"{HELD} tasks for {HELD_S:.0f} s, their shims and conmons included"),
    ]


async def _started(client: AsyncClient, site: PodmanSite, name: str, jobs: int = 1) -> float:
    """Milliseconds from the submission until so many jobs run, which are stopped then."""
    began = time.perf_counter()
    text = document("x", command=COMMAND).replace(b"example/image", site.image.encode())
    rows = await asyncio.gather(*(client.submit(text, name=f"{name}-{number}") for number in range(jobs)))
    uids = [str(row["uid"]) for row in rows]
    await asyncio.gather(*(_reached(client, uid, "RUNNING") for uid in uids))
    took = (time.perf_counter() - began) * 1000
    for uid in uids:
        await client.stop(uid)
    await asyncio.gather(*(_reached(client, uid, "STOPPED") for uid in uids))
    return took


async def _reached(client: AsyncClient, uid: str, state: str) -> None:
    async for event in client.follow_events(uid):
        if event["type"] == "job.state" and event["payload"]["state"] == state:
            return
    raise AssertionError(f"{uid} was never {state}")


async def _peers(site: PodmanSite, count: int) -> float:
    """Milliseconds that as many ``podman run`` of the same image and command take; they are removed then."""
    began = time.perf_counter()
    limits = ("--ulimit=nofile=1024:1024", "--ulimit=nproc=1024:1024", "--memory=100m", "--cpus=1")
    words = ("podman", "run", "--detach", "--log-driver=k8s-file", *limits, site.image, *COMMAND.split())
    runs = [
        await asyncio.create_subprocess_exec(
            *words, env={**os.environ, **site.environment}, stdout=asyncio.subprocess.PIPE
        )
        for _ in range(count)
    ]
    said = [(await run.communicate())[0].decode().strip() for run in runs]
    took = (time.perf_counter() - began) * 1000
    assert all(run.returncode == 0 for run in runs), "podman run failed"
    await asyncio.to_thread(site.podman, "rm", "--force", "--time=0", *said)
    return took


async def _held(scene: Scene, client: AsyncClient, site: PodmanSite) -> float:
    """CPU in percent of a core that backend, shims and conmons use while many containers just run."""
    text = document("held", command=COMMAND, instances=HELD).replace(b"example/image", site.image.encode())
    uid = str((await client.submit(text))["uid"])
    async with asyncio.timeout(600):
        while await _running(client, uid) < HELD:  # noqa: ASYNC110 - how many run is a count of as many events
            await asyncio.sleep(1.0)
    await asyncio.sleep(SETTLE_S)
    before, began = _cpu_s(scene), time.perf_counter()
    await asyncio.sleep(HELD_S)
    used = (_cpu_s(scene) - before) / (time.perf_counter() - began)
    assert await _running(client, uid) == HELD
    await client.stop(uid)
    await _reached(client, uid, "STOPPED")
    return 100 * used


def _cpu_s(scene: Scene) -> float:
    """CPU time used so far by the backend, and by what keeps the tasks of it."""
    keepers = 0.0
    for process in psutil.process_iter(["name", "cmdline"]):
        line = " ".join(process.info["cmdline"] or ())
        if process.info["name"] == "conmon" or (str(scene.home) in line and "boot.py" in line):
            times = process.cpu_times()
            keepers += times.user + times.system
    return scene.cpu_s() + keepers


async def _running(client: AsyncClient, uid: str) -> int:
    detail = await client.job(uid)
    return sum(task["state"] == "RUNNING" for role in detail["taskRoles"] for task in role["taskStatuses"])
