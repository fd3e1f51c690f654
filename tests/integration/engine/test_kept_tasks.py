"""Failed tasks that are kept for their user, with real OpenSSH clients."""

from __future__ import annotations

import asyncio
import subprocess
from pathlib import Path

import pytest

from pai_backend.engine.base import TaskPlan, TaskState
from pai_backend.engine.local.engine import LocalEngine
from pai_backend.testing.engine_contract import PATIENCE_S, watching
from tests.integration.engine.conftest import MakePlan
from tests.integration.engine.test_agent_ssh import Client, agent, client, refused, served, start_agent
from tests.support.local_engine import NODE, LocalBehind

__all__ = ["agent", "client"]  # fixtures of the agent's tests


async def failed(engine: LocalEngine, plan: TaskPlan) -> None:
    """Run a task to the end of its command."""
    async with watching(engine) as watch:
        await engine.start(plan)
        ended = (await watch.state(plan.uid, TaskState.EXITED)).exit
    assert ended is not None
    assert ended.code == 3


def kept(make_plan: MakePlan, client: Client, command: str) -> TaskPlan:
    """A plan that is kept when it fails."""
    plan = make_plan(command, ssh=client.plan, MODEL="resnet")
    return plan.model_copy(update={"keep_on_failure": True, "job_info": '{"job": 1}'})


@pytest.mark.asyncio
async def test_a_kept_task_has_its_files_and_environment_and_none_of_its_processes(
    engine: LocalEngine,
    agent: subprocess.Popen[bytes],
    behind: LocalBehind,
    root: Path,
    make_plan: MakePlan,
    client: Client,
) -> None:
    plan = kept(make_plan, client, "sleep 1000 & echo trace > core.txt; exit 3")
    await failed(engine, plan)
    assert behind.processes(plan.uid) == []
    await served(client.port)
    done = await client.ssh("pwd; cat core.txt; echo $MODEL; cat $PAI_JOB_INFO_FILE")
    assert done.stdout.decode().splitlines() == [
        str(root / "tasks" / plan.uid / "work"),
        "trace",
        "resnet",
        '{"job": 1}',
    ]
    await engine.refresh(plan.uid, "late")
    assert (await client.ssh("cat $PAI_JOB_INFO_FILE")).stdout == b'{"job": 1}'


@pytest.mark.asyncio
async def test_a_session_outlives_the_command_whose_failure_its_user_watched(
    engine: LocalEngine, agent: subprocess.Popen[bytes], behind: LocalBehind, make_plan: MakePlan, client: Client
) -> None:
    plan = kept(make_plan, client, "until [ -e fail ]; do sleep 0.02; done; exit 3")
    async with watching(engine) as watch:
        await engine.start(plan)
        await served(client.port)
        session = await asyncio.create_subprocess_exec(
            *client.command("touch fail; read line; echo still $line"), stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )
        await watch.state(plan.uid, TaskState.EXITED)
        async with asyncio.timeout(PATIENCE_S):
            out, _ = await session.communicate(b"here\n")
    assert out == b"still here\n"


@pytest.mark.asyncio
@pytest.mark.parametrize("end", ["stop", "forget"])
async def test_a_kept_task_that_is_released_lets_nobody_in_and_ends_what_sessions_left(
    engine: LocalEngine,
    agent: subprocess.Popen[bytes],
    behind: LocalBehind,
    root: Path,
    make_plan: MakePlan,
    client: Client,
    end: str,
) -> None:
    plan = kept(make_plan, client, "exit 3")
    await failed(engine, plan)
    await served(client.port)
    assert (await client.ssh("nohup setsid sleep 1000 > /dev/null 2>&1 & echo up")).stdout == b"up\n"
    session = await asyncio.create_subprocess_exec(*client.command("echo in; sleep 1000"), stdout=subprocess.PIPE)
    assert session.stdout
    assert await session.stdout.readline() == b"in\n"
    if end == "stop":
        await engine.stop(plan.uid, 1.0)
        await engine.stop(plan.uid, 1.0)
    else:
        await engine.forget(plan.uid)
    await refused(client.port)
    assert await asyncio.wait_for(session.wait(), PATIENCE_S) == 255
    async with asyncio.timeout(PATIENCE_S):
        while True:
            if not behind.processes(plan.uid):
                break
            await asyncio.sleep(0.02)
    await engine.forget(plan.uid)
    assert not (root / "done" / plan.uid / "plan.json").exists()


@pytest.mark.asyncio
async def test_a_kept_task_is_reachable_again_after_agent_and_backend_were_killed(
    engine: LocalEngine, root: Path, behind: LocalBehind, make_plan: MakePlan, client: Client
) -> None:
    plan = kept(make_plan, client, "exit 3")
    await failed(engine, plan)
    for _ in range(2):
        agent = start_agent(root)
        await served(client.port)
        assert (await client.ssh("echo in")).stdout == b"in\n"
        agent.kill()
        agent.wait()
    later = LocalEngine(root, [NODE])
    async with watching(later) as watch:
        assert [seen.state for seen in watch.of(plan.uid)] == [TaskState.EXITED]
        await later.stop(plan.uid, 0)
    agent = start_agent(root)
    try:
        other = make_plan("sleep 1000", 1, ssh=Client(root).plan)
        await later.start(other)
        assert other.ssh is not None
        await served(other.ssh.port)  # so the agent has looked, and leaves the released one alone
        await refused(client.port)
        await later.stop(other.uid, 0)
    finally:
        agent.terminate()
        agent.wait(PATIENCE_S)
