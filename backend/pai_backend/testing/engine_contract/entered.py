"""Tasks that are logged in to: by the other tasks of their job, and by plain ``ssh`` on their own port."""

from __future__ import annotations

import asyncio
import subprocess
from datetime import UTC, datetime
from pathlib import Path

import pytest
from pydantic import SecretStr

from pai_backend.access.hostca import certify_host, names_of_task
from pai_backend.access.keys import known_hosts_line, make_ed25519, public_line
from pai_backend.engine.base import LogStream, SshPlan, TaskPlan, TaskState
from pai_backend.launch.job_info import job_info
from pai_backend.model.job import Job
from pai_backend.model.node import Placement
from pai_backend.model.plan import PeerAccess
from pai_backend.model.spec import PortSpec
from pai_backend.testing.builders import make_job, make_role, make_spec
from pai_backend.testing.engine_contract.observing import PATIENCE_S, read_log, watching
from pai_backend.testing.engine_contract.serving import Serving
from pai_backend.testing.engine_contract.world import EngineMaker, EngineWorld
from pai_backend.testing.free_ports import free_ports

ENTER = """for name in worker-0 worker-1; do ssh $name 'echo $PAI_TASK_UID'; done
ssh worker-1 'cat; exit 5' <<<'all of it' || echo status $?
echo copied >here && scp -q here worker-1:there && ssh worker-1 'cat there'
ssh worker-1 "ssh worker-0 'echo and back to \\$PAI_TASK_UID'"
ssh -o HostKeyAlias=somebody-else worker-1 'echo in' 2>/dev/null || echo refused
"""
"""What the first of two tasks does, from its first moment on."""


class Inside(EngineWorld):
    """``ssh worker-1`` in the tasks of a job; nothing is asked."""

    def peer_address(self, placement: Placement, index: int) -> str:
        """Where the task of that index is reached by the others; the placement is that of index 0."""
        return placement.address

    @pytest.mark.asyncio
    async def test_the_tasks_of_a_job_enter_each_other_by_name(
        self, make_engine: EngineMaker, placement: Placement, serving_ssh: None, free_ports: tuple[int, int]
    ) -> None:
        """Scripts get output and exit status, and files; a host that is not the one of that name is left."""
        first, second = self.pair(placement, free_ports)
        engine = make_engine()
        async with watching(engine) as watch:
            await engine.start(first)
            await engine.start(second)
            ended = await watch.state(first.uid, TaskState.EXITED)
            await engine.stop(second.uid, 1.0)
            await watch.state(second.uid, TaskState.EXITED)
        said = (await read_log(engine, first.uid, LogStream.STDOUT)).decode().splitlines()
        back = f"and back to {first.uid}"
        assert said == [first.uid, second.uid, "all of it", "status 5", "copied", back, "refused"]
        assert ended.exit is not None
        assert ended.exit.code == 0

    def pair(self, placement: Placement, ports: tuple[int, int]) -> tuple[TaskPlan, TaskPlan]:
        """Plans of the two tasks of a job, as the controller makes them."""
        roles = [make_role(instances=2, ports=[PortSpec(label="ssh", begin_at=0, count=1)])]
        job = make_job("contract", uid=self.JOB, spec=make_spec("contract", roles=roles))
        places = [
            placement.model_copy(update={"ports": {"ssh": (port,)}, "address": self.peer_address(placement, index)})
            for index, port in enumerate(ports)
        ]
        tasks = [task.model_copy(update={"placement": at}) for task, at in zip(job.tasks, places, strict=True)]
        placed = job.model_copy(update={"tasks": tuple(tasks)})
        ca, key = make_ed25519("hosts")[0], make_ed25519("peers")[0]
        first, second = (
            self.plan(at, command, index).model_copy(
                update={"ssh": _of_peers(placed, index, ca, key), "job_info": job_info(placed), **_OF_TWO}
            )
            for index, (at, command) in enumerate(zip(places, (ENTER, "exec sleep 1000"), strict=True))
        )
        return first, second

    @pytest.fixture
    def free_ports(self) -> tuple[int, int]:
        """Two ports of this machine that nothing listens on."""
        first, second = free_ports(2)
        return first, second


_OF_TWO = {"job_tasks": 2, "job_placed": 2}


def _of_peers(job: Job, index: int, ca: str, key: str) -> SshPlan:
    """The SSH server of a task that the others of the job know by its name."""
    task, host_key = job.tasks[index], make_ed25519("host")[0]
    assert task.placement is not None
    names = names_of_task(job, task.role, index)
    return SshPlan(
        port=task.placement.ports["ssh"][0],
        host_key=SecretStr(host_key),
        host_certificate=certify_host(ca, host_key, key_id=task.uid, principals=names, now=datetime.now(UTC)),
        authorized_keys=(public_line(key),),
        peers=PeerAccess(key=SecretStr(key), host_ca=public_line(ca)),
    )


class Direct(Serving):
    """A task's own ``ssh`` port; for engines whose clients reach it at the address of the placement."""

    @pytest.mark.asyncio
    async def test_plain_ssh_enters_a_task_by_its_own_port(
        self, make_engine: EngineMaker, placement: Placement, serving_ssh: None, free_port: int, tmp_path: Path
    ) -> None:
        """As OpenPAI's guides have it, ``ssh -i key -p PORT root@IP``, with the host's key known and checked."""
        host_key, keys = make_ed25519("host")[0], [make_ed25519("job"), make_ed25519("another")]
        ssh = SshPlan(port=free_port, host_key=SecretStr(host_key), authorized_keys=(keys[0][1],))
        at = placement.model_copy(update={"ports": {"ssh": (free_port,)}})
        plan = self.plan(at, "exec sleep 1000").model_copy(update={"ssh": ssh})
        for name, (private, _) in zip(("job", "another"), keys, strict=True):
            (tmp_path / name).write_text(private)
            (tmp_path / name).chmod(0o600)
        for name, known in (("known", host_key), ("changed", keys[1][0])):
            (tmp_path / name).write_text(f"{known_hosts_line(placement.address, free_port, public_line(known))}\n")
        engine = make_engine()
        async with watching(engine) as watch:
            await engine.start(plan)
            assert await self.answers_ssh(engine, placement, plan)
            entered = await self.ssh(plan, tmp_path, "job", "known", "echo $PAI_TASK_UID; cat; exit 3")
            assert (entered.stdout.decode(), entered.returncode) == (f"{plan.uid}\nin", 3), entered.stderr
            for key, known, why in (("another", "known", b"Permission denied"), ("job", "changed", b"CHANGED")):
                refused = await self.ssh(plan, tmp_path, key, known, "echo in")
                assert (refused.stdout, refused.returncode, why in refused.stderr) == (b"", 255, True), refused.stderr
            await engine.stop(plan.uid, 1.0)
            await watch.state(plan.uid, TaskState.EXITED)

    async def ssh(
        self, plan: TaskPlan, files: Path, key: str, known: str, command: str
    ) -> subprocess.CompletedProcess[bytes]:
        """The machine's own OpenSSH, which reads nothing of its user's."""
        assert plan.ssh is not None
        options = {
            "UserKnownHostsFile": files / known,
            "GlobalKnownHostsFile": "/dev/null",
            "StrictHostKeyChecking": "yes",
            "IdentitiesOnly": "yes",
            "IdentityAgent": "none",
            "BatchMode": "yes",
        }
        words = [word for name, value in options.items() for word in ("-o", f"{name}={value}")]
        where = ["-i", str(files / key), "-p", str(plan.ssh.port), f"root@{plan.placement.address}"]
        return await asyncio.to_thread(
            subprocess.run,
            ["ssh", "-F", "none", *words, *where, command],
            input=b"in",
            capture_output=True,
            timeout=PATIENCE_S,
            check=False,
        )
