"""``ssh worker-0`` from a task's command, in images that have nothing for it, as any user."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from pai_backend.access.hostca import certify_host
from pai_backend.access.keys import make_ed25519, public_line
from pai_backend.launch.job_info import job_info
from pai_backend.launch.peers import known_hosts_line, ssh_config
from pai_backend.model.job import Job
from pai_backend.model.spec import PortSpec
from pai_backend.testing.builders import make_job, make_placement, make_role, make_spec
from pai_backend.testing.free_ports import free_port
from tests.integration.runtime.rooms import Room, running, until

CA, PEERS = make_ed25519("host-ca")[0], make_ed25519("peers")[0]
SSH = [PortSpec(label="ssh")]
NOBODY: dict[str, Any] = {"uid": 23456, "drop_all": True, "read_only_root": True}


def placed() -> Job:
    """A job with the tasks ps-0 and worker-0, on ports of this machine: the containers here share its network."""
    job = make_job("demo", spec=make_spec(roles=[make_role("ps", ports=SSH), make_role("worker", ports=SSH)]))
    tasks = [task.model_copy(update={"placement": make_placement(ports={"ssh": (free_port(),)})}) for task in job.tasks]
    return job.model_copy(update={"tasks": tuple(tasks)})


def room_of(job: Job, role: str, directory: Path, root: Path, bundle: Path, **given: Any) -> Room:
    """The container of a task of that job."""
    task = next(task for task in job.tasks if task.role == role)
    assert task.placement is not None
    host_key, name = make_ed25519("host")[0], f"demo--{role}-0"
    made = directory / role
    made.mkdir()
    return Room(
        made,
        root,
        bundle,
        ssh_port=task.placement.ports["ssh"][0],
        environ={"ROLE": role},
        authorized=[public_line(PEERS)],
        files={
            "host_key": host_key,
            "host_certificate": certify_host(CA, host_key, key_id=name, principals=[name], now=datetime.now(UTC)),
            "peer_key": PEERS,
            "known_hosts": known_hosts_line(public_line(CA)),
        },
        job_info=json.loads(job_info(job)),
        **given,
    )


SCRIPT = """
for name in ps-0 worker-0; do ssh $name 'echo $ROLE'; done
ssh worker-0 'read word; echo $word >taken; exit 5' <<<input; echo status $?
echo copied >here; scp -q here worker-0:/pai/work/there; scp -q -O worker-0:there back; echo $(<back)
echo 'get taken again' | sftp -q -b - worker-0 >/dev/null; echo $(<again)
ssh worker-0 'ssh ps-0 "echo back at \\$ROLE"'
ssh -p $PS worker-0 true; echo $?
"""


@pytest.mark.parametrize("user", [{"uid": 0}, NOBODY], ids=["root", "unknown user, no rights, read-only"])
@pytest.mark.parametrize("image", ["scratch", "debian"])
def test_a_command_logs_in_to_the_tasks_of_its_job(
    request: pytest.FixtureRequest, image: str, user: dict[str, Any], bundle: Path, directory: Path
) -> None:
    root, job = request.getfixturevalue(image), placed()
    worker = room_of(job, "worker", directory, root, bundle, **user)
    ps = room_of(job, "ps", directory, root, bundle, command=SCRIPT, **user)
    ps.environ["PS"] = str(ps.ssh_port)
    with running(worker) as other:
        other.until_up()
        with running(ps) as container:
            assert container.wait() == 0, container.said()
            said = container.out.read_text().splitlines()
            assert said == ["ps", "worker", "status 5", "copied", "input", "back at ps", "255"], container.said()
            assert "Certificate invalid: name is not a listed principal" in container.said()
            assert container.state("peer_key").stat().st_mode & 0o777 == 0o600


def test_the_launcher_writes_what_the_backend_would_and_keeps_it_current(
    scratch: Path, bundle: Path, directory: Path
) -> None:
    early, late = placed(), placed()
    early = early.model_copy(update={"tasks": early.tasks[:1]})
    with running(room_of(early, "ps", directory, scratch, bundle)) as container:
        container.until_up()
        assert container.state("ssh_config").read_text() == of_backend(early)
        container.room.share(json.loads(job_info(late)), "")
        until(lambda: container.state("ssh_config").read_text() == of_backend(late), "the configuration for two peers")


def of_backend(job: Job) -> str:
    """The configuration as the backend's own builder has it, for the places of a pod."""
    return ssh_config(job_info(job), "/pai/state/peer_key", "/pai/plan/known_hosts")


def test_a_task_without_peers_has_the_programs_of_its_image(busybox: Path, bundle: Path, directory: Path) -> None:
    """So has every task of a backend that is older than its runtime bundle."""
    with running(Room(directory, busybox, bundle, command="echo $PATH; type -p ssh")) as container:
        assert container.wait() == 0
        path, ssh = container.out.read_text().splitlines()
    assert path.endswith(":/bin:/pai/runtime/commands")
    assert ssh == "/pai/runtime/commands/ssh"
