"""The configuration of ``ssh`` in a task, as OpenSSH reads it."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from pai_backend.launch.job_info import job_info
from pai_backend.launch.peers import known_hosts_line, ssh_config
from pai_backend.model.job import Job
from pai_backend.model.node import Placement
from pai_backend.model.spec import PortSpec
from pai_backend.testing.builders import make_job, make_placement, make_role, make_spec

PORTS = [PortSpec(label="ssh", begin_at=0, count=1)]


def job_with(*roles: str, waiting: tuple[str, ...] = ()) -> Job:
    """A job named demo with one task for each role, each with an SSH port of its own, but for those that wait."""
    job = make_job("demo", spec=make_spec(roles=[make_role(name, ports=PORTS) for name in roles]))
    tasks = [
        task if task.role in waiting else task.model_copy(update={"placement": placed(20100 + number)})
        for number, task in enumerate(job.tasks)
    ]
    return job.model_copy(update={"tasks": tuple(tasks)})


def placed(port: int) -> Placement:
    return make_placement(ports={"ssh": (port,)})


def read_by_openssh(config: Path, host: str) -> dict[str, str]:
    """What ``ssh -G`` says it would do for a host."""
    words = ["ssh", "-F", str(config), "-G", host]
    done = subprocess.run(words, capture_output=True, text=True, check=True, timeout=60)
    return dict(line.split(" ", 1) for line in done.stdout.splitlines() if " " in line)


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    """With signs in its name that mean something to ssh."""
    made = tmp_path / "with blank and 100%d"
    made.mkdir()
    return made


def written(directory: Path, job: Job) -> Path:
    file = directory / "ssh_config"
    file.write_text(ssh_config(job_info(job), str(directory / "peer_key"), str(directory / "known_hosts")))
    return file


def test_openssh_connects_to_a_peer_by_its_port_and_recognises_it_by_its_name(directory: Path) -> None:
    config = written(directory, job_with("a.b", "Worker"))
    for host, port, name in (("a.b-0", "20100", "demo--a-b-0"), ("Worker-0", "20101", "demo--worker-0")):
        told = read_by_openssh(config, host)
        assert (told["hostname"], told["port"], told["hostkeyalias"]) == ("127.0.0.1", port, name)
        assert told["stricthostkeychecking"] in ("true", "yes")
        assert told["identityfile"].strip('"').replace("%%", "%") == str(directory / "peer_key")
        assert told["userknownhostsfile"].strip('"').replace("%%", "%") == str(directory / "known_hosts")
        assert (told["identitiesonly"], told["preferredauthentications"]) == ("yes", "publickey")
        assert told["connectionattempts"] == "30"


def test_other_hosts_are_left_to_the_users_own_configuration(directory: Path) -> None:
    told = read_by_openssh(written(directory, job_with("worker")), "elsewhere.example.org")
    usual = subprocess.run(["ssh", "-G", "elsewhere.example.org"], capture_output=True, text=True, check=True)
    assert told == dict(line.split(" ", 1) for line in usual.stdout.splitlines() if " " in line)


def test_the_users_own_configuration_does_not_reach_peers(directory: Path, tmp_path: Path) -> None:
    own = tmp_path / "own"  # OpenSSH 9.9 and later would read the signs in the other directory's name as tokens
    own.write_text("Host *\n    ProxyJump bastion\n    User somebody\n    Port 1\n")
    config = written(directory, job_with("worker"))
    config.write_text(config.read_text().replace("~/.ssh/config", f'"{own}"'))
    peer, other = read_by_openssh(config, "worker-0"), read_by_openssh(config, "worker-1")
    assert (peer["port"], peer.get("proxyjump")) == ("20100", None)
    assert (other["port"], other["proxyjump"], other["user"]) == ("1", "bastion", "somebody")


def test_a_task_that_waits_for_a_place_is_told_of_when_it_has_one() -> None:
    assert "Host late-0\n" not in ssh_config(job_info(job_with("early", "late", waiting=("late",))), "/key", "/known")
    assert "Host late-0\n" in ssh_config(job_info(job_with("early", "late")), "/key", "/known")


@pytest.mark.parametrize("text", ["", "no JSON", '{"job": "first"}', "[]"])
def test_text_that_is_no_job_info_names_no_peers(text: str) -> None:
    assert ssh_config(text, "/key", "/known") == "Host *\n    Include ~/.ssh/config\n    Include /etc/ssh/ssh_config\n"


@pytest.mark.parametrize("path", ["relative", '/with"quote', "/with\nbreak", "/with${HOME}", "/with\\sign"])
def test_a_path_that_openssh_would_read_otherwise_is_refused(path: str) -> None:
    with pytest.raises(ValueError, match="plainer directory"):
        ssh_config(job_info(job_with("worker")), path, "/known")


def test_whoever_has_a_certificate_of_the_ca_is_trusted_under_its_names(tmp_path: Path) -> None:
    (tmp_path / "known").write_text(known_hosts_line("ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIHlr"))
    assert (tmp_path / "known").read_text() == "@cert-authority * ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIHlr\n"
