"""Fetching inputs across crashes: of the backend, of the shim, of the program that fetches."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from pai_backend.engine.base import LogStream, TaskPlan, TaskState
from pai_backend.engine.local.engine import LocalEngine
from pai_backend.model.job import Causer
from pai_backend.model.plan import StagedInput
from pai_backend.testing.engine_contract import PATIENCE_S, read_log, watching
from pai_backend.testing.free_ports import free_port
from tests.integration.engine.conftest import MakePlan
from tests.support.local_engine import NODE, LocalBehind


@pytest.fixture
def silent() -> Iterator[str]:
    """A storage that takes connections and never answers."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield f"webhdfs://user:hush@127.0.0.1:{server.getsockname()[1]}/code"


def with_input(plan: TaskPlan, uri: str, **more: object) -> TaskPlan:
    """The plan with one input called ``code``."""
    return plan.model_copy(update={"inputs": (StagedInput(uri=uri, name="code", max_bytes=100_000),), **more})


async def fetching(behind: LocalBehind, plan: TaskPlan, *, but: tuple[int, ...] = ()) -> int:
    """The process that fetches, once there is one that is not among ``but``."""
    async with asyncio.timeout(PATIENCE_S):
        while True:
            found = [pid for pid in behind.processes(plan.uid) if pid not in but]
            if found:
                return found[0]
            await asyncio.sleep(0.02)


@pytest.mark.asyncio
async def test_a_backend_that_comes_back_finds_the_task_pulling_and_leaves_it_alone(
    engine: LocalEngine, root: Path, behind: LocalBehind, make_plan: MakePlan, silent: str
) -> None:
    plan = with_input(make_plan("echo ran"), silent)
    async with watching(engine) as watch:
        await engine.start(plan)
        seen = await watch.state(plan.uid, TaskState.PULLING)
        assert seen.message == "fetching code"
    before = await fetching(behind, plan)
    later = LocalEngine(root, [NODE])
    async with watching(later) as watch:
        assert [seen.state for seen in watch.of(plan.uid)] == [TaskState.PULLING]
        await later.start(plan)
        assert behind.processes(plan.uid) == [before]
        await later.stop(plan.uid, 0)
        await watch.state(plan.uid, TaskState.EXITED)


@pytest.mark.asyncio
async def test_a_shim_killed_while_it_fetches_is_replaced_when_the_backend_comes_back(
    engine: LocalEngine, root: Path, behind: LocalBehind, make_plan: MakePlan, silent: str
) -> None:
    """The command was not run, so nothing is lost; two programs never fetch at once."""
    plan = with_input(make_plan("echo ran"), silent)
    await engine.start(plan)
    orphan = await fetching(behind, plan)
    behind.crash(plan.uid)
    later = LocalEngine(root, [NODE])
    async with watching(later) as watch:
        assert [seen.state for seen in watch.of(plan.uid)] == [TaskState.PULLING]
        fresh = await fetching(behind, plan, but=(orphan,))
        assert behind.processes(plan.uid) == [fresh]
        await later.stop(plan.uid, 0)
        ended = (await watch.state(plan.uid, TaskState.EXITED)).exit
    assert ended is not None
    assert ended.reason == "stopped"
    assert behind.processes(plan.uid) == []


@pytest.mark.asyncio
async def test_a_shim_killed_before_the_eyes_of_its_backend_is_a_failed_start(
    engine: LocalEngine, behind: LocalBehind, make_plan: MakePlan, silent: str
) -> None:
    plan = with_input(make_plan("echo ran"), silent)
    async with watching(engine) as watch:
        await engine.start(plan)
        await fetching(behind, plan)
        behind.crash(plan.uid)
        ended = (await watch.state(plan.uid, TaskState.EXITED)).exit
    assert ended is not None
    assert (ended.reason, ended.causer) == ("start-failed", Causer.PLATFORM)
    assert behind.processes(plan.uid) == []


@pytest.mark.asyncio
async def test_a_stop_after_the_shim_was_killed_ends_what_fetches(
    engine: LocalEngine, behind: LocalBehind, make_plan: MakePlan, silent: str
) -> None:
    plan = with_input(make_plan("echo ran"), silent)
    await engine.start(plan)
    await fetching(behind, plan)
    behind.crash(plan.uid)
    for shim in psutil.Process().children():
        if shim.status() == psutil.STATUS_ZOMBIE:
            shim.wait(PATIENCE_S)
    await engine.stop(plan.uid, 0)
    assert behind.processes(plan.uid) == []
    async with watching(engine) as watch:
        ended = (await watch.state(plan.uid, TaskState.EXITED)).exit
    assert ended is not None
    assert ended.reason == "stopped"


@pytest.mark.asyncio
async def test_a_program_that_is_killed_while_it_fetches_fails_the_input(
    engine: LocalEngine, behind: LocalBehind, make_plan: MakePlan, silent: str
) -> None:
    plan = with_input(make_plan("echo ran"), silent)
    async with watching(engine) as watch:
        await engine.start(plan)
        os.kill(await fetching(behind, plan), signal.SIGKILL)
        ended = (await watch.state(plan.uid, TaskState.EXITED)).exit
    assert ended is not None
    assert ended.reason == "input-failed"
    assert "hush" not in ended.message
    assert await read_log(engine, plan.uid, LogStream.STDOUT) == b""


@pytest.mark.asyncio
async def test_the_reason_is_one_line_and_holds_no_password(
    engine: LocalEngine, behind: LocalBehind, make_plan: MakePlan
) -> None:
    port = free_port()
    plan = with_input(make_plan("echo ran"), f"webhdfs://user:hush@127.0.0.1:{port}/code")
    async with watching(engine) as watch:
        await engine.start(plan)
        ended = (await watch.state(plan.uid, TaskState.EXITED)).exit
    assert ended is not None
    assert ended.reason == "input-failed"
    assert f"127.0.0.1:{port}/code" in ended.message
    assert "\n" not in ended.message
    assert "hush" not in ended.message
    assert b"hush" not in await read_log(engine, plan.uid, LogStream.ALL)


@pytest.mark.asyncio
async def test_neither_the_tasks_python_nor_its_files_decide_what_fetches(
    engine: LocalEngine, behind: LocalBehind, make_plan: MakePlan, tmp_path: Path
) -> None:
    evil, source = tmp_path / "evil", tmp_path / "source"
    for folder in (evil, source):
        folder.mkdir()
    (evil / "json.py").write_text("raise SystemExit('not this one')")
    (source / "data").write_text("d")
    plan = with_input(make_plan("cat code/data", PYTHONPATH=str(evil), PYTHONHOME="/nowhere"), str(source))
    async with watching(engine) as watch:
        await engine.start(plan)
        ended = (await watch.state(plan.uid, TaskState.EXITED)).exit
    assert ended is not None
    assert (ended.code, ended.message) == (0, "exited with status 0")


@pytest.mark.asyncio
async def test_what_was_fetched_is_read_only_and_bounded(
    engine: LocalEngine, behind: LocalBehind, make_plan: MakePlan, tmp_path: Path, root: Path
) -> None:
    source = tmp_path / "source"
    source.mkdir()
    (source / "train.py").write_text("print(1)")
    fits, large = (with_input(make_plan("ls -l code", number), str(source)) for number in (0, 1))
    async with watching(engine) as watch:
        await engine.start(fits)
        await watch.state(fits.uid, TaskState.EXITED)
        (source / "blob").write_bytes(bytes(100_001))
        await engine.start(large)
        ended = (await watch.state(large.uid, TaskState.EXITED)).exit
    assert b"-r--r--r--" in await read_log(engine, fits.uid, LogStream.STDOUT)
    assert ended is not None
    assert ended.reason == "input-failed"
    assert os.listdir(root / "tasks" / large.uid / "work") == []
