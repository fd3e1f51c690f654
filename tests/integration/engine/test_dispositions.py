"""Tasks and sessions of a backend that ``nohup`` or a script started: they ignore no signal."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
import pytest_asyncio

from pai_backend.engine.base import LogStream, TaskPlan, TaskState
from pai_backend.engine.local.engine import LocalEngine
from pai_backend.testing.engine_contract import PATIENCE_S, read_log, watching
from tests.integration.engine.conftest import MakePlan
from tests.integration.engine.test_agent_ssh import Client, client, served, start_agent
from tests.support.local_engine import LocalBehind

__all__ = ["client"]

pytestmark = [
    pytest.mark.asyncio,
    pytest.mark.skipif(sys.platform != "linux", reason="reads /proc"),
]

IGNORED = (signal.SIGHUP, signal.SIGINT, signal.SIGQUIT)
ORDINARY = 2**31 - 1  # glibc's posix_spawn leaves the two above, which it keeps for itself, ignored
LOOK = "grep SigIgn /proc/self/status"


def ignored(line: str) -> int:
    """What a line of /proc/…/status says, as a mask."""
    return int(line.split()[1], 16) & ORDINARY


@pytest.fixture
def ignoring() -> Iterator[None]:
    """This process ignores what ``nohup``, and ``&`` in a script, make it ignore."""
    before = {number: signal.signal(number, signal.SIG_IGN) for number in IGNORED}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


@pytest.fixture
def agent(root: Path, behind: LocalBehind, ignoring: None) -> Iterator[subprocess.Popen[bytes]]:
    """An agent that ignores them from its beginning."""
    process = start_agent(root)
    yield process
    process.terminate()
    assert process.wait(PATIENCE_S) == 0


@pytest_asyncio.fixture
async def task(
    engine: LocalEngine, agent: subprocess.Popen[bytes], make_plan: MakePlan, client: Client
) -> AsyncIterator[TaskPlan]:
    """A running task that serves SSH."""
    plan = make_plan("sleep 1000", ssh=client.plan)
    await engine.start(plan)
    await served(client.port)
    yield plan
    await engine.stop(plan.uid, 0)


async def test_a_task_ignores_nothing(engine: LocalEngine, ignoring: None, make_plan: MakePlan) -> None:
    plan = make_plan(LOOK)
    async with watching(engine) as watch:
        await engine.start(plan)
        await watch.state(plan.uid, TaskState.EXITED)
    assert ignored((await read_log(engine, plan.uid, LogStream.STDOUT)).decode()) == 0


@pytest.mark.parametrize("options", [(), ("-tt",)], ids=["pipes", "terminal"])
async def test_a_session_ignores_nothing(client: Client, task: TaskPlan, options: tuple[str, ...]) -> None:
    assert ignored((await client.ssh(LOOK, options=options)).stdout.decode()) == 0


async def test_the_agent_itself_goes_on_ignoring_them(
    client: Client, task: TaskPlan, agent: subprocess.Popen[bytes]
) -> None:
    agent.send_signal(signal.SIGHUP)
    agent.send_signal(signal.SIGQUIT)
    assert (await client.ssh("echo here")).stdout == b"here\n"
