"""Faults around a task: the backend killed at any instant, the shim killed, the disk full, the directory gone."""

from __future__ import annotations

import asyncio
import os
import random
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from pai_backend.engine.base import EngineError, LogStream, TaskPlan, TaskState
from pai_backend.engine.local.engine import LocalEngine
from pai_backend.model.job import Causer
from pai_backend.testing.engine_contract import read_log, watching
from tests.integration.engine.conftest import MakePlan
from tests.support.local_engine import NODE, LocalBehind

SEED = 2026
KILLS = 8
TASKS = 10

STARTER = """
import asyncio, sys
from pathlib import Path
from pai_backend.engine.base import TaskPlan
from pai_backend.engine.local.engine import LocalEngine
from tests.support.local_engine import NODE

async def main():
    engine = LocalEngine(Path(sys.argv[1]), [NODE])
    plans = [TaskPlan.model_validate_json(line) for line in sys.stdin]
    watch = engine.watch()
    await anext(watch)
    print("ready", flush=True)
    await asyncio.gather(*(engine.start(plan) for plan in plans))
    async for event in watch:
        pass

asyncio.run(main())
"""


def start_and_kill(root: Path, plans: list[TaskPlan], after_s: float) -> None:
    """Start the tasks in another process and kill that one, ``after_s`` after it began."""
    lines = "".join(plan.model_dump_json() + "\n" for plan in plans)
    starter = subprocess.Popen(
        [sys.executable, "-c", STARTER, str(root)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert starter.stdin
    assert starter.stdout
    starter.stdin.write(lines)
    starter.stdin.close()
    assert starter.stdout.readline() == "ready\n"
    try:
        starter.wait(after_s)
    except subprocess.TimeoutExpired:
        starter.send_signal(signal.SIGKILL)
    starter.wait()
    starter.stdout.close()


@pytest.mark.asyncio
async def test_a_killed_backend_loses_no_exit_and_runs_nothing_twice(
    root: Path, behind: LocalBehind, make_plan: MakePlan, tmp_path: Path
) -> None:
    """Each task appends a line to a file of its own; whatever the instant of the kill, there is one at the end."""
    chance = random.Random(SEED)
    for kill in range(KILLS):
        ran = tmp_path / f"ran-{kill}"
        ran.mkdir()
        plans = [
            make_plan(f"echo x >> {ran}/{number}; sleep 0.1; exit {number + 1}", kill * TASKS + number)
            for number in range(TASKS)
        ]
        await asyncio.to_thread(start_and_kill, root, plans, chance.uniform(0.0, 0.15))
        engine = LocalEngine(root, [NODE])
        async with watching(engine) as watch:
            await asyncio.gather(*(engine.start(plan) for plan in plans))
            ended = [(await watch.state(plan.uid, TaskState.EXITED)).exit for plan in plans]
        story = f"kill {kill}"
        assert [e.code for e in ended if e] == [number + 1 for number in range(TASKS)], story
        assert [(ran / str(number)).read_text() for number in range(TASKS)] == ["x\n"] * TASKS, story


@pytest.mark.asyncio
async def test_an_exit_while_nobody_watches_is_kept(root: Path, behind: LocalBehind, make_plan: MakePlan) -> None:
    plan = make_plan("echo done; exit 9")
    await LocalEngine(root, [NODE]).start(plan)
    later = LocalEngine(root, [NODE])
    assert await read_log(later, plan.uid, LogStream.ALL, follow=True) == b"done\n"
    async with watching(later) as watch:
        ended = (await watch.state(plan.uid, TaskState.EXITED)).exit
    assert ended is not None
    assert ended.code == 9


@pytest.mark.asyncio
async def test_a_start_cut_short_before_its_shim_goes_on_with_the_next_watch(
    root: Path, behind: LocalBehind, make_plan: MakePlan, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The machine has no process to give; the plan is durable by then."""

    def refuse(*args: object, **kwargs: object) -> int:
        raise BlockingIOError(11, "Resource temporarily unavailable")

    plan = make_plan("exit 2")
    engine = LocalEngine(root, [NODE])
    with monkeypatch.context() as patch:
        patch.setattr(os, "posix_spawn", refuse)
        with pytest.raises(EngineError, match="limit of processes"):
            await engine.start(plan)
    async with watching(LocalEngine(root, [NODE])) as watch:
        ended = (await watch.state(plan.uid, TaskState.EXITED)).exit
    assert ended is not None
    assert ended.code == 2


@pytest.mark.asyncio
async def test_a_stop_between_the_start_and_the_shim_is_obeyed(
    root: Path, behind: LocalBehind, make_plan: MakePlan, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan = make_plan("echo ran")
    engine = LocalEngine(root, [NODE])
    with monkeypatch.context() as patch:
        patch.setattr(os, "posix_spawn", lambda *args, **kwargs: 0)
        await engine.start(plan)
    await engine.stop(plan.uid, 1.0)
    await engine.start(plan)
    async with watching(engine) as watch:
        ended = (await watch.state(plan.uid, TaskState.EXITED)).exit
    assert ended is not None
    assert ended.reason == "stopped"
    assert await read_log(engine, plan.uid, LogStream.ALL) == b""


@pytest.mark.asyncio
async def test_a_shim_that_fails_before_the_command_is_a_failed_start(
    root: Path, behind: LocalBehind, make_plan: MakePlan, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    broken = tmp_path / "boot.py"
    broken.write_text("raise SystemExit('no module named anything')\n")
    monkeypatch.setattr("pai_backend.engine.local.shims.boot_file", lambda: str(broken))
    plan = make_plan("true")
    engine = LocalEngine(root, [NODE])
    async with watching(engine) as watch:
        await engine.start(plan)
        ended = (await watch.state(plan.uid, TaskState.EXITED)).exit
    assert ended is not None
    assert (ended.reason, ended.causer) == ("start-failed", Causer.PLATFORM)
    assert "no module named anything" in ended.message


@pytest.mark.asyncio
async def test_a_removed_directory_ends_the_task_as_vanished(
    root: Path, engine: LocalEngine, behind: LocalBehind, make_plan: MakePlan
) -> None:
    """Its processes end, and its uid cannot start again."""
    plan = make_plan("sleep 1000")
    async with watching(engine) as watch:
        await engine.start(plan)
        await watch.state(plan.uid, TaskState.RUNNING)
        await asyncio.to_thread(shutil.rmtree, root / "tasks" / plan.uid)
        ended = (await watch.state(plan.uid, TaskState.EXITED)).exit
        assert ended is not None
        assert (ended.reason, ended.causer) == ("vanished", Causer.PLATFORM)
        assert not behind.processes(plan.uid)
        await engine.start(plan)
    async with watching(engine) as watch:
        assert [seen.state for seen in watch.of(plan.uid)] == [TaskState.EXITED]
        other = make_plan("true", 1)
        await engine.start(other)
        await watch.state(other.uid, TaskState.EXITED)


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 1 MiB."""
    if sys.platform != "linux" or os.geteuid() != 0:
        pytest.skip("mounting a small file system takes root on Linux")
    disk = tmp_path / "disk"
    disk.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", disk], capture_output=True, check=False)
    if mounted.returncode:
        pytest.skip(f"mount is not allowed here: {mounted.stderr.decode()}")
    yield disk
    subprocess.run(["umount", "-l", disk], check=True)


@pytest.mark.asyncio
async def test_a_task_that_fills_the_disk_fails_and_the_engine_goes_on(small_disk: Path, make_plan: MakePlan) -> None:
    """Its exit is recorded although not a byte is free; a start then is an error that says what to do."""
    engine = LocalEngine(small_disk / "engine", [NODE])
    behind = LocalBehind(small_disk / "engine")
    plan = make_plan("while :; do echo 0123456789012345678901234567890123456789; done")
    try:
        async with watching(engine) as watch:
            await engine.start(plan)
            ended = (await watch.state(plan.uid, TaskState.EXITED)).exit
            assert ended is not None
            assert (ended.reason, ended.causer) == ("disk-full", Causer.RESOURCE)
            assert not behind.processes(plan.uid)
            with pytest.raises(EngineError, match="free some disk space"):
                await engine.start(make_plan("true", 1))
            for log in (small_disk / "engine" / "tasks" / plan.uid).glob("*.log"):
                os.truncate(log, 0)
            await engine.start(make_plan("exit 3", 1))
            ended = (await watch.state(make_plan("", 1).uid, TaskState.EXITED)).exit
            assert ended is not None
            assert ended.code == 3
    finally:
        behind.clear()
