"""A login to a workspace that has ended runs it again, with everything real."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from jupyter_pai import broker
from jupyter_pai.endpoint import Endpoint
from jupyter_pai.sync import Client
from tests.support.backend_process import until
from tests.support.private_backend import private_backend
from tests.support.ssh_people import BOB, CONFIG, Person, run, runs

WAIT_S = 120


@pytest.fixture(scope="module")
def backend(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Client]:
    place = tmp_path_factory.mktemp("starts")
    (place / "backend.yaml").write_text(CONFIG)
    (place / "backend.yaml").chmod(0o600)
    with private_backend(place / "data", place / "backend.yaml") as client:
        yield client


def stopped(backend: Client, name: str, command: str = "exec sleep 600", **own: object) -> str:
    """A workspace of that name which has ended."""
    role = {"name": "main", "taskNumber": 1, "cpuNumber": 1, "memoryMB": 100, "gpuNumber": 0, "command": command}
    extras = {"jupyterPai": {"startOnLogin": True, **own}}
    document = {"jobName": f"{name}-job", "address": name, "image": "none", "taskRoles": [role], "extras": extras}
    uid = backend.submit(json.dumps(document).encode())["uid"]
    if command.startswith("exec"):
        runs(backend, uid)
        backend.stop(uid)
    ended(backend, uid)
    return uid


def ended(backend: Client, uid: str) -> None:
    for _ in backend.follow_events(uid):
        pass


def starts(backend: Client, uid: str) -> int:
    return [event["type"] for event in backend.events(uid)].count("job.restart-requested")


def test_openssh_starts_it_waits_and_says_why_on_stderr_alone(backend: Client, tmp_path: Path) -> None:
    uid = stopped(backend, "work")
    alice = Person(backend.api.endpoint, tmp_path / "alice")
    assert alice.pai("ssh-config").returncode == 0
    assert "Host work\n" in alice.files.config.read_text(), "a stopped workspace has its name, too"
    done = alice.ssh("-o", "StrictHostKeyChecking=yes", "work", "echo in")
    assert (done.stdout, done.returncode) == ("in\n", 0), done.stderr
    assert "It is started again for this login." in done.stderr
    assert (starts(backend, uid), backend.job(uid)["attempt"]) == (1, 1)
    assert alice.ssh("work", "echo in").stdout == "in\n"
    backend.stop(uid)
    ended(backend, uid)
    certified = alice.pai("ssh", "work", "echo in")
    assert certified.stdout == "in\n", certified.stderr
    assert starts(backend, uid) == 2
    backend.stop(uid)
    ended(backend, uid)
    copied = alice.ssh("-q", str(alice.files.config), "work:copied", program="scp")
    assert (copied.returncode, copied.stdout) == (0, ""), copied.stderr


def test_ten_logins_at_once_start_it_once_and_all_get_in(backend: Client, tmp_path: Path) -> None:
    uid = stopped(backend, "many")
    alice = Person(backend.api.endpoint, tmp_path / "alice")
    assert alice.pai("ssh-config").returncode == 0
    command = ["ssh", "-F", str(alice.files.config), "-o", "BatchMode=yes", "many", "echo in"]
    logins = [
        subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        for _ in range(10)
    ]
    assert [login.communicate(timeout=WAIT_S)[0] for login in logins] == ["in\n"] * 10
    assert starts(backend, uid) == 1


def test_the_job_goes_on_when_the_client_has_gone(backend: Client, tmp_path: Path) -> None:
    uid = stopped(backend, "gone")
    alice = Person(backend.api.endpoint, tmp_path / "alice")
    assert alice.pai("ssh-config").returncode == 0
    command = ["ssh", "-F", str(alice.files.config), "-o", "BatchMode=yes", "gone", "sleep 600"]
    with subprocess.Popen(command, stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=dict(os.environ)) as login:
        until(lambda: starts(backend, uid) == 1, WAIT_S)
        login.kill()
    assert runs(backend, uid)["attempt"] == 1


def test_a_workspace_that_ends_at_once_is_started_once_for_a_login(backend: Client, tmp_path: Path) -> None:
    uid = stopped(backend, "short", command="true")
    alice = Person(backend.api.endpoint, tmp_path / "alice")
    assert alice.pai("ssh-config").returncode == 0
    done = alice.ssh("short", "sleep 600")
    assert done.returncode == 255
    assert starts(backend, uid) == 1


def test_nobody_but_the_owner_starts_it(backend: Client, tmp_path: Path) -> None:
    uid = stopped(backend, "mine")
    alice = Person(backend.api.endpoint, tmp_path / "alice")
    bob = Person(Endpoint(backend.api.endpoint.url, BOB), tmp_path / "bob")
    assert bob.pai("ssh-config").returncode == 0
    assert alice.pai("ssh-config").returncode == 0
    seen = dict(line.split(maxsplit=1) for line in alice.ssh("-G", "mine").stdout.splitlines() if " " in line)
    options = ("StrictHostKeyChecking=no", "UserKnownHostsFile=/dev/null", "BatchMode=yes")
    login = ["-p", seen["port"], *(word for option in options for word in ("-o", option)), f"mine@{seen['hostname']}"]
    assert run("ssh", "-F", "none", "-i", str(bob.files.identity), *login, "true").returncode == 255
    limited = broker.certify(
        backend.api, alice.files.identity.with_name("id_ed25519.pub").read_text(), job=uid, only=["sftp"]
    )
    certificate = tmp_path / "limited-cert.pub"
    certificate.write_text(backend.thread.run(limited)["certificate"])
    registered = backend.keys()
    for key in registered:
        backend.delete_key(key["fingerprint"])
    proof = ("-o", f"CertificateFile={certificate}", "-i", str(alice.files.identity))
    assert run("ssh", "-F", "none", *proof, *login, "true").returncode == 255
    assert (starts(backend, uid), backend.job(uid)["state"]) == (0, "STOPPED")


def test_without_the_field_a_login_is_told_that_it_has_ended(backend: Client, tmp_path: Path) -> None:
    uid = stopped(backend, "plain", startOnLogin=False)
    alice = Person(backend.api.endpoint, tmp_path / "alice")
    done = alice.pai("ssh", "plain", "true")
    assert (done.returncode, "there is nothing to log in to" in done.stderr) == (2, True)
    assert starts(backend, uid) == 0
