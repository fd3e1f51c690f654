"""``ssh worker-0`` between tasks of a job, with the machine's own OpenSSH, and no question ever."""

from __future__ import annotations

import os
import subprocess
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import pytest
import pytest_asyncio
from pydantic import SecretStr

from pai_backend.access.hostca import certify_host
from pai_backend.access.keys import make_ed25519, public_line
from pai_backend.engine.base import LogStream, SshPlan, TaskPlan, TaskState
from pai_backend.engine.local.engine import LocalEngine
from pai_backend.launch.job_info import job_info
from pai_backend.model.job import Job
from pai_backend.model.node import Placement
from pai_backend.model.plan import PeerAccess
from pai_backend.model.spec import PortSpec
from pai_backend.testing.builders import make_job, make_placement, make_role, make_spec, make_uid
from pai_backend.testing.engine_contract import watching
from pai_backend.testing.engine_contract.observing import read_log
from pai_backend.testing.free_ports import free_port
from tests.integration.engine.test_agent_ssh import agent, served
from tests.support.living_trees import contents_below
from tests.support.local_engine import NODE

__all__ = ["agent"]

ROLES = ("ps", "worker")
CA = make_ed25519("host-ca")[0]


@dataclass
class Gang:
    """A job with a task of each role, every one with its SSH server, as the controller would plan them."""

    job: Job
    peers: str
    names: Callable[[str], tuple[str, ...]]

    def plan(self, role: str, command: str) -> TaskPlan:
        """The plan of a role's task."""
        task = next(task for task in self.job.tasks if task.role == role)
        assert task.placement is not None
        host_key = make_ed25519("host")[0]
        names = self.names(role)
        certificate = certify_host(CA, host_key, key_id=task.uid, principals=names, now=datetime.now(UTC))
        return TaskPlan(
            uid=task.uid,
            job_name=self.job.name,
            user="alice",
            role=role,
            index=0,
            image="example/image:1",
            command=command,
            env={"ROLE": role},
            placement=task.placement,
            job_info=job_info(self.job),
            ssh=SshPlan(
                port=task.placement.ports["ssh"][0],
                host_key=SecretStr(host_key),
                host_certificate=certificate,
                authorized_keys=(public_line(self.peers),),
                peers=PeerAccess(key=SecretStr(self.peers), host_ca=public_line(CA)),
            ),
        )


def gang(number: int) -> Gang:
    """A job of its own: uid, alias, keys and ports."""
    ssh = [PortSpec(label="ssh", begin_at=0, count=1)]
    job = make_job(
        f"demo{number}",
        uid=make_uid(os.getpid() * 100 + number),
        spec=make_spec(roles=[make_role(name, ports=ssh) for name in ROLES]),
    )

    def place() -> Placement:
        return make_placement(NODE.name, machine=NODE.machine, ports={"ssh": (free_port(),)})

    tasks = tuple(task.model_copy(update={"placement": place()}) for task in job.tasks)
    job = job.model_copy(update={"tasks": tasks})
    return Gang(job, make_ed25519("peers")[0], lambda role: (f"{job.alias}--{role}-0",))


SCRIPT = """
set -e
for name in ps-0 worker-0; do ssh $name 'echo $ROLE in $PWD'; done
ssh worker-0 'cat >taken; exit 5' <<<input || echo status $?
echo copied >here; scp -q here worker-0:there; ssh worker-0 cat there taken
scp -q -O worker-0:there back; cat back
printf 'get there again\\nbye\\n' | sftp -q -b - worker-0 >/dev/null; cat again
ssh worker-0 "ssh ps-0 'echo back at \\$ROLE'"
! test -e ~/.ssh || find ~/.ssh -newer here
"""


@pytest_asyncio.fixture
async def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home of the user's whose configuration of ssh would lead peers astray, and which must stay as it is."""
    made = tmp_path / "home"
    (made / ".ssh").mkdir(parents=True, mode=0o700)
    (made / ".ssh/config").write_text("Host *\n    Port 1\n    StrictHostKeyChecking no\n")
    monkeypatch.setenv("HOME", str(made))
    return made


@pytest_asyncio.fixture
async def worker(engine: LocalEngine, agent: subprocess.Popen[bytes], home: Path) -> AsyncIterator[Gang]:
    """A gang whose worker runs; its server may not be there yet."""
    made = gang(1)
    plan = made.plan("worker", "sleep 1000")
    await engine.start(plan)
    yield made
    await served(plan.placement.ports["ssh"][0])  # an agent that is just starting cannot be ended in good order
    await engine.stop(plan.uid, 0)


async def said(engine: LocalEngine, plan: TaskPlan) -> str:
    """All that a task writes, once it has ended."""
    async with watching(engine) as watch:
        await engine.start(plan)
        await watch.state(plan.uid, TaskState.EXITED)
    return (await read_log(engine, plan.uid, LogStream.ALL)).decode()


@pytest.mark.asyncio
async def test_scripts_of_a_task_log_in_to_its_peers(engine: LocalEngine, worker: Gang, root: Path, home: Path) -> None:
    """From the first moment: the worker's server need not be there yet."""
    plan = worker.plan("ps", SCRIPT)
    found = (await said(engine, plan)).splitlines()
    work = {task.role: f"{root}/tasks/{task.uid}/work" for task in worker.job.tasks}
    assert found == [
        f"ps in {work['ps']}",
        f"worker in {work['worker']}",
        "status 5",
        "copied",
        "input",
        "copied",
        "copied",
        "back at ps",
    ]
    assert [path.name for path in (home / ".ssh").iterdir()] == ["config"]


@pytest.mark.asyncio
async def test_the_task_of_another_job_is_let_in_nowhere(engine: LocalEngine, worker: Gang) -> None:
    """Also when it knows the port, and with the key of its own job."""
    port = worker.plan("worker", "").placement.ports["ssh"][0]
    stranger = gang(2).plan("ps", f"ssh -p {port} -o HostKeyAlias=demo1--worker-0 worker-0 true 2>&1; echo $?")
    found = await said(engine, stranger)
    assert "Permission denied (publickey)" in found
    assert found.endswith("\n255\n")


@pytest.mark.asyncio
async def test_another_task_that_has_a_peers_port_is_not_taken_for_it(engine: LocalEngine, worker: Gang) -> None:
    """Its certificate is of the same CA, but for another name."""
    port = worker.plan("worker", "").placement.ports["ssh"][0]
    plan = worker.plan("ps", f"ssh -p {port} ps-0 true 2>&1; echo $?")
    found = await said(engine, plan)
    assert "Certificate invalid: name is not a listed principal" in found
    assert found.endswith("\n255\n")


@pytest.mark.asyncio
async def test_peers_that_come_late_are_told_of(engine: LocalEngine, worker: Gang, root: Path) -> None:
    wait = "until ssh -G worker-0 2>&1 | grep -q ^hostkeyalias; do sleep 0.05; done"
    late = worker.plan("ps", f"{wait}; ssh worker-0 'echo $ROLE'")
    early = worker.job.model_copy(update={"tasks": worker.job.tasks[:1]})
    async with watching(engine) as watch:
        await engine.start(late.model_copy(update={"job_info": job_info(early)}))
        await watch.state(late.uid, TaskState.RUNNING)
        await engine.refresh(late.uid, job_info(worker.job))
        await watch.state(late.uid, TaskState.EXITED)
    assert await read_log(engine, late.uid, LogStream.ALL) == b"worker\n"


@pytest.mark.asyncio
async def test_the_jobs_key_is_in_one_private_file_and_goes_with_the_task(
    engine: LocalEngine, worker: Gang, root: Path
) -> None:
    plan = worker.plan("ps", "true")
    secret = worker.peers.splitlines()[3]
    async with watching(engine) as watch:
        await engine.start(plan)
        await watch.state(plan.uid, TaskState.EXITED)
        holding = having(root / "tasks" / plan.uid, secret)
        assert [(path.name, path.stat().st_mode & 0o777) for path in holding] == [("peer_key", 0o600)]
        await engine.forget(plan.uid)
    assert having(root / "done" / plan.uid, secret) == []


def having(directory: Path, text: str) -> list[Path]:
    """Files below a directory with this text in them."""
    assert directory.is_dir()
    return [path for path, content in contents_below(directory) if text.encode() in content]
