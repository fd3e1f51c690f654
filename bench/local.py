"""The local engine and the embedded backend: how quickly a task runs, and what it costs to do nothing."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from bench.figures import Figure, percentile
from bench.scene import Scene, backend, document
from jupyter_pai.client import AsyncClient
from pai_backend.engine.local.processes import limit_mark
from pai_backend.engine.local.task_use import TaskMeter
from pai_backend.engine.use_series import UseSeries, sampled
from pai_backend.model.ids import JobUid, TaskUid, task_uid

STARTS = 40
HELD = 500
SAMPLED = 100
HELD_S = 20.0
SETTLE_S = 10.0
RUNS = 7


async def measure() -> list[Figure]:
    """All figures of the local benchmark."""
    async with backend() as scene:
        idle = await _idle(scene)
        commands = _command_line(scene)
        client = AsyncClient(scene.endpoint)
        try:
            starts = await _starts(client)
            held = await _held(scene, client)
        finally:
            client.close()
    sampling, rounds = _sampling()
    spawn = f"bash -c true takes {_spawn_ms():.1f} ms"
    return [
        Figure("start_p50", percentile(starts, 0.5), spawn),
        Figure("start_p95", percentile(starts, 0.95), spawn),
        Figure("held_cpu", held, f"{HELD} tasks for {HELD_S:.0f} s"),
        Figure("sampling_cpu", sampling, f"{SAMPLED} tasks of 3 processes, a look a minute; {rounds}"),
        Figure("idle_pss", sum(idle.values()), ", ".join(f"{name} {size:.0f}" for name, size in idle.items())),
        Figure("pai_list", percentile(commands, 0.5), f"python -c pass takes {_python_ms('pass'):.0f} ms"),
        Figure("import_front", _import_ms(), "over the bare interpreter, median"),
    ]


async def _idle(scene: Scene) -> dict[str, float]:
    """MiB of each process once start-up's garbage has settled."""
    await asyncio.sleep(SETTLE_S)
    return scene.pss_mib()


async def _starts(client: AsyncClient) -> list[float]:
    """Milliseconds from the submission until the event that says RUNNING has arrived."""
    taken = []
    for number in range(STARTS):
        started = time.perf_counter()
        job = await client.submit(document(f"start-{number}", command="sleep 0.3"))
        async for event in client.follow_events(str(job["uid"])):
            if event["type"] == "job.state" and event["payload"]["state"] == "RUNNING":
                taken.append((time.perf_counter() - started) * 1000)
                break
    assert len(taken) == STARTS
    return taken


async def _held(scene: Scene, client: AsyncClient) -> float:
    """CPU in percent of a core that the backend's own processes use while many tasks just run."""
    job = await client.submit(document("held", command="sleep 600", instances=HELD))
    name = str(job["uid"])
    async with asyncio.timeout(300):
        while await _running(client, name) < HELD:  # noqa: ASYNC110 - how many run is a count of 500 events
            await asyncio.sleep(1.0)
    await asyncio.sleep(SETTLE_S)
    before, started = scene.cpu_s(), time.perf_counter()
    await asyncio.sleep(HELD_S)
    used = (scene.cpu_s() - before) / (time.perf_counter() - started)
    assert await _running(client, name) == HELD
    await client.stop(name)
    async for event in client.follow_events(name):
        if event["type"] == "job.exit":
            break
    return 100 * used


def _sampling() -> tuple[float, str]:
    """CPU in percent of a core that looking at tasks once a minute, and keeping it, takes; and each look in ms."""
    job = JobUid("j0123456789abcdef")
    tasks = [task_uid(job, 0, index, 0) for index in range(SAMPLED)]
    made = [_marked_processes(uid) for uid in tasks]
    try:
        with tempfile.TemporaryDirectory() as place:
            meter, series, taken = TaskMeter(), UseSeries(Path(place)), []
            for number in range(RUNS):
                before = time.process_time()
                for uid, use in meter.look({uid: [] for uid in tasks}).items():
                    series.append(uid, sampled(1 + number, use))
                taken.append((time.process_time() - before) * 1000)
            assert all(len(series.read(uid)) == RUNS for uid in tasks)
    finally:
        for each in made:
            os.killpg(each.pid, signal.SIGKILL)
            each.wait()
    return percentile(taken, 0.5) / 60_000 * 100, f"{percentile(taken, 0.5):.1f} ms a look"


def _marked_processes(uid: TaskUid) -> subprocess.Popen[bytes]:
    """Processes that carry the mark of a task, in a group of their own."""
    code = f"ulimit -x {limit_mark(uid)}; sleep 600 & sleep 600 & echo; wait"
    made = subprocess.Popen(["bash", "-c", code], start_new_session=True, stdout=subprocess.PIPE)
    assert made.stdout is not None
    assert made.stdout.readline() == b"\n"
    return made


async def _running(client: AsyncClient, name: str) -> int:
    detail = await client.job(name)
    return sum(task["state"] == "RUNNING" for role in detail["taskRoles"] for task in role["taskStatuses"])


def _command_line(scene: Scene) -> list[float]:
    """Wall milliseconds of whole ``pai list`` processes."""
    environment = {**os.environ, "PAI_URL": scene.endpoint.url, "PAI_TOKEN": scene.endpoint.token}
    command = [sys.executable, "-m", "jupyter_pai.cli", "list"]
    return [_wall_ms(command, environment) for _ in range(RUNS)]


def _wall_ms(command: list[str], environment: dict[str, str] | None = None) -> float:
    started = time.perf_counter()
    subprocess.run(command, env=environment, check=True, stdout=subprocess.DEVNULL)
    return (time.perf_counter() - started) * 1000


def _python_ms(code: str) -> float:
    return percentile([_wall_ms([sys.executable, "-c", code]) for _ in range(RUNS)], 0.5)


def _import_ms() -> float:
    return max(0.0, _python_ms("import jupyter_pai") - _python_ms("pass"))


def _spawn_ms() -> float:
    return percentile([_wall_ms(["bash", "-c", "true"]) for _ in range(RUNS)], 0.5)
