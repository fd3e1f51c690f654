"""The two ways in which the watch learns of tasks, each with the other one out of order."""

from __future__ import annotations

import os
import socket
from pathlib import Path

import pytest

from pai_backend.engine.base import TaskState
from pai_backend.engine.local.engine import LocalEngine
from pai_backend.testing.engine_contract import watching
from tests.integration.engine.conftest import MakePlan
from tests.support.local_engine import NODE, LocalBehind


@pytest.mark.asyncio
async def test_hints_alone_tell_of_running_and_of_the_end(
    engine: LocalEngine, make_plan: MakePlan, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pai_backend.engine.local.watching.SCAN_S", 3600.0)
    plan = make_plan("sleep 0.3; exit 5")
    async with watching(engine) as watch:
        await engine.start(plan)
        await watch.state(plan.uid, TaskState.RUNNING)
        ended = (await watch.state(plan.uid, TaskState.EXITED)).exit
    assert ended is not None
    assert ended.code == 5


@pytest.mark.asyncio
async def test_the_scan_alone_tells_of_the_end(engine: LocalEngine, root: Path, make_plan: MakePlan) -> None:
    """A shim that finds no FIFO, or a full one, goes on without a word."""
    plan = make_plan("exit 5")
    async with watching(engine) as watch:
        os.unlink(root / "events.fifo")
        await engine.start(plan)
        ended = (await watch.state(plan.uid, TaskState.EXITED)).exit
    assert ended is not None
    assert ended.code == 5


@pytest.mark.asyncio
async def test_nonsense_in_the_fifo_is_ignored(engine: LocalEngine, root: Path, make_plan: MakePlan) -> None:
    plan = make_plan("exit 5")
    async with watching(engine) as watch:
        fifo = os.open(root / "events.fifo", os.O_WRONLY)
        os.write(fifo, b"../../etc/passwd\n\xff\n\nj99-0-0-0\n")
        os.close(fifo)
        await engine.start(plan)
        await watch.state(plan.uid, TaskState.EXITED)


@pytest.mark.asyncio
async def test_no_shim_is_left_as_a_zombie(engine: LocalEngine, behind: LocalBehind, make_plan: MakePlan) -> None:
    """They are collected with the next event; the last one's own is still to come."""
    before = behind.zombies()
    async with watching(engine) as watch:
        for plan in [make_plan("true", number) for number in range(8)]:
            await engine.start(plan)
            await watch.state(plan.uid, TaskState.EXITED)
    assert len(behind.zombies() - before) <= 2


@pytest.mark.asyncio
async def test_a_port_whose_connections_have_just_ended_is_free(engine: LocalEngine) -> None:
    """TIME_WAIT on the server's side, as after any short-lived server."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        with socket.create_connection(("127.0.0.1", port)):
            accepted, _ = server.accept()
            accepted.close()
        assert await engine.busy_ports(NODE.machine, [port]) == {port}
    assert await engine.busy_ports(NODE.machine, [port]) == set()
