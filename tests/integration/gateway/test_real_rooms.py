"""The gateway on the real store, in front of the real local engine and its agent."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import AsyncIterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import pytest
import pytest_asyncio
from pydantic import SecretStr

from pai_backend.access.gateway.options import GatewayOptions
from pai_backend.access.gateway.server import serve_gateway
from pai_backend.access.keys import (
    gateway_host_public_key,
    gateway_public_key,
    known_hosts_line,
    parse_public_key,
    task_host_key,
)
from pai_backend.engine.base import SshPlan, TaskPlan
from pai_backend.engine.local.agent import serve_agent
from pai_backend.engine.local.engine import LocalEngine
from pai_backend.engine.local.nodes import simulated_node
from pai_backend.model.ids import JobUid, slot_of
from pai_backend.model.job import Job, JobExit, State
from pai_backend.store.base import UserKey
from pai_backend.store.grants import Act
from pai_backend.store.sql import Store
from pai_backend.testing.free_ports import free_port
from tests.support.sealing import KEYS
from tests.support.ssh_world import USER, Outcome, answers, program, run, running_job, write_key

pytestmark = pytest.mark.asyncio


@dataclass
class Site:
    """A running job of a small but real installation, and how a client reaches it."""

    store: Store
    job: Job
    epoch: int
    client: list[str]

    async def ssh(self, *args: str, options: tuple[str, ...] = (), stdin: bytes | None = None) -> Outcome:
        return await run(
            ["env", "TERM=xterm-256color", "ssh", *options, *self.client, f"{self.job.alias}@127.0.0.1", *args], stdin
        )

    async def finish(self) -> None:
        ended = self.job.model_copy(update={"state": State.SUCCEEDED, "exit": JobExit(status=0, message="")})
        await self.store.jobs.save(ended, seen=self.job, epoch=self.epoch, events=(), at=datetime.now(UTC))


@pytest_asyncio.fixture
async def site(tmp_path: Path) -> AsyncIterator[Site]:
    store = Store(f"sqlite:///{tmp_path / 'pai.sqlite'}", KEYS)
    await store.open()
    engine = LocalEngine(tmp_path / "engine", [simulated_node("carol", "TITANX", 1, 2, 1000)])
    stop, ready = asyncio.Event(), asyncio.get_running_loop().create_future()
    job, epoch = await _running(store, engine)
    public = parse_public_key(write_key(tmp_path / "id"))
    added = datetime.now(UTC)
    await store.user_keys.add(UserKey(public.fingerprint, USER, public.line, "", added), Act(USER, added))
    options = GatewayOptions(port=0, drain_s=0.1)
    serving = [
        asyncio.create_task(serve_agent(tmp_path / "engine", stop)),
        asyncio.create_task(serve_gateway(options, store, engine, stop, lambda _, port: ready.set_result(port))),
    ]
    try:
        port = await asyncio.wait_for(ready, 60)
        await answers(job.tasks[0].placement.ports["ssh"][0] if job.tasks[0].placement else 0)
        pinned = known_hosts_line("127.0.0.1", port, await gateway_host_public_key(store))
        (tmp_path / "known_hosts").write_text(pinned + "\n")
        yield Site(store, job, epoch, _client(tmp_path, port))
    finally:
        stop.set()
        await engine.stop(job.tasks[0].uid, 0.0)
        await asyncio.wait(serving, timeout=60)
        await engine.aclose()
        await store.aclose()
    for task in serving:
        task.result()


async def _running(store: Store, engine: LocalEngine) -> tuple[Job, int]:
    """Submit a job, place and start its task as the controller would."""
    # Of no other test: tasks are known, and ended, by their uid in the environment of their processes.
    running = running_job(free_port(), uid=JobUid(f"j{secrets.token_hex(8)}"))
    waiting = running.model_copy(update={"state": State.WAITING, "tasks": ()})
    seen = await store.jobs.submit(waiting, b"{}", "job.json", "application/json", [])
    lease = await store.leadership.acquire("test", 600, datetime.now(UTC))
    assert lease is not None
    update = {"state": State.RUNNING, "tasks": running.tasks}
    job = await store.jobs.save(
        seen.model_copy(update=update), seen=seen, epoch=lease.epoch, events=(), at=datetime.now(UTC)
    )
    task = job.tasks[0]
    assert task.placement is not None
    ssh = SshPlan(
        port=task.placement.ports["ssh"][0],
        host_key=SecretStr(await task_host_key(store, slot_of(task.uid))),
        authorized_keys=(await gateway_public_key(store),),
    )
    await engine.start(
        TaskPlan(
            uid=task.uid,
            job_name=job.name,
            user=job.user,
            role=task.role,
            index=task.index,
            image="none",
            command="sleep 600",
            env={"PAI_JOB_NAME": "demo"},
            placement=task.placement,
            ssh=ssh,
        )
    )
    return job, lease.epoch


def _client(path: Path, port: int) -> list[str]:
    return [
        *("-F", "none", "-o", "BatchMode=yes", "-o", "StrictHostKeyChecking=yes", "-o", f"Port={port}"),
        *("-o", f"UserKnownHostsFile={path / 'known_hosts'}", "-o", "GlobalKnownHostsFile=/dev/null"),
        *("-o", "IdentityAgent=none", "-o", "IdentitiesOnly=yes", "-i", str(path / "id")),
    ]


async def test_the_tasks_own_environment_and_directory_are_there(site: Site) -> None:
    outcome = await site.ssh("echo $PAI_JOB_NAME; pwd; exit 5")
    name, directory = outcome.stdout.decode().splitlines()
    assert (outcome.status, name, Path(directory).name) == (5, "demo", "work")


async def test_a_terminal_of_a_local_task(site: Site) -> None:
    outcome = await site.ssh("stty size; echo $TERM", options=("-tt",), stdin=b"")
    assert outcome.status == 0, outcome
    assert outcome.stdout.decode().split()[-1] == "xterm-256color", outcome


async def test_files_go_to_the_tasks_directory_and_back(site: Site, tmp_path: Path) -> None:
    (tmp_path / "out").write_bytes(bytes(range(256)) * 1000)
    (tmp_path / "batch").write_text(f"put {tmp_path / 'out'} there\nget there {tmp_path / 'back'}\n")
    argv = ["sftp", "-b", str(tmp_path / "batch"), *site.client, f"{site.job.alias}@127.0.0.1"]
    outcome = await run(argv)
    assert outcome.status == 0, outcome.stderr
    assert (tmp_path / "back").read_bytes() == (tmp_path / "out").read_bytes()


async def test_the_end_of_the_job_in_the_store_ends_the_session(site: Site) -> None:
    argv = ["ssh", "-tt", *site.client, f"{site.job.alias}@127.0.0.1", "echo started; exec sleep 60"]
    async with program(argv) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        async with asyncio.timeout(60):
            assert (await process.stdout.readline()).strip() == b"started"
            await site.finish()
        async with asyncio.timeout(60):
            assert b"Job demo has ended: SUCCEEDED." in await process.stderr.read()
    assert "Job demo has ended: SUCCEEDED." in (await site.ssh("true")).stderr
