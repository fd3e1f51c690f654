"""``pai restart`` and ``--replace`` with everything real: the names that led to a job lead to what follows it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from IPython.core.interactiveshell import InteractiveShell
from IPython.utils.capture import capture_output

from jupyter_pai.sync import Client
from tests.support.private_backend import private_backend
from tests.support.ssh_people import Person, runs, submitted

CONFIG = """\
user: alice
cluster_name: lab
engine:
  trust_all_users: true
  nodes:
    - {name: carol, simulated: true, gpus: {type: TITANX, count: 1}}
"""
ROLE = {"taskNumber": 1, "cpuNumber": 1, "memoryMB": 100, "gpuNumber": 0, "command": "exec sleep 600"}


@pytest.fixture
def backend(tmp_path: Path) -> Iterator[Client]:
    (tmp_path / "backend.yaml").write_text(CONFIG)
    (tmp_path / "backend.yaml").chmod(0o600)
    with private_backend(tmp_path / "data", tmp_path / "backend.yaml") as client:
        yield client


def until_ended(backend: Client, uid: str) -> None:
    for _ in backend.follow_events(uid):
        pass


def test_the_ssh_names_of_a_job_lead_to_the_one_that_replaces_it(backend: Client, tmp_path: Path) -> None:
    alice = Person(backend.api.endpoint, tmp_path / "alice")
    first = submitted(backend, "solo", [{"name": "main", **ROLE}])
    runs(backend, first)
    assert alice.pai("ssh-config", "--jump").returncode == 0
    assert alice.pai("ssh", "solo", "echo in").stdout == "in\n"
    document = tmp_path / "solo.json"
    document.write_text(json.dumps({"jobName": "solo", "image": "none", "taskRoles": [{"name": "other", **ROLE}]}))

    taken = alice.pai("submit", str(document))
    assert taken.returncode == 2
    assert "--name OTHER" in taken.stderr
    assert "--replace" in taken.stderr
    told = alice.json("submit", str(document), "--replace")
    assert isinstance(told, dict)
    second = told["uid"]
    assert (told["name"], told["alias"], second != first) == ("solo", "solo", True)

    runs(backend, second)
    before = backend.job(first)
    assert (before["state"], before["name"]) == ("STOPPED", f"solo-{first[1:5]}")
    strict, ask = ("-o", "StrictHostKeyChecking=yes"), "echo $PAI_CURRENT_TASK_ROLE_NAME"
    for name in ("solo", "solo.jump"):
        assert alice.ssh(*strict, name, ask).stdout == "other\n"
    assert alice.pai("ssh", "solo", ask).stdout == "other\n"


def test_the_ssh_names_of_a_job_lead_to_its_next_attempt(
    backend: Client, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    alice = Person(backend.api.endpoint, tmp_path / "alice")
    uid = submitted(backend, "solo", [{"name": "main", **ROLE}])
    runs(backend, uid)
    assert alice.pai("ssh-config", "--jump").returncode == 0
    refused = alice.pai("restart", "solo")
    assert (refused.returncode, "pai stop alice~solo" in refused.stderr) == (2, True)

    def entered() -> list[str]:
        """What each name leads to, asked of OpenSSH, which refuses hosts that it does not know."""
        strict, ask = ("-o", "StrictHostKeyChecking=yes"), "echo $PAI_JOB_NAME"
        return [alice.ssh(*strict, name, ask).stdout for name in ("solo", "solo.jump")]

    assert entered() == ["solo\n"] * 2
    known = alice.files.known_hosts.read_text()
    assert alice.pai("stop", "solo").returncode == 0
    until_ended(backend, uid)

    done = alice.pai("restart", "solo")
    assert (done.returncode, done.stdout) == (0, "job solo is restarted\n")
    again = runs(backend, uid)
    assert (again["uid"], again["alias"], again["attempt"]) == (uid, "solo", 1)
    assert entered() == ["solo\n"] * 2
    assert alice.files.known_hosts.read_text() == known
    assert "restarted on request" in [event["payload"].get("reason") for event in backend.events(uid)]

    backend.stop(uid)
    until_ended(backend, uid)
    monkeypatch.setenv("PAI_URL", alice.endpoint.url)
    monkeypatch.setenv("PAI_TOKEN", alice.endpoint.token)
    shell = InteractiveShell()
    shell.run_line_magic("load_ext", "jupyter_pai")
    with capture_output():
        said = shell.run_cell("%pai restart solo")
    assert repr(said.result) == "job solo is restarted"
    assert runs(backend, uid)["attempt"] == 2
