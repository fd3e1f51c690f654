"""The ssh plugin of v2 documents before the real backend: keys that are secrets, and tasks that wait for others."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from jupyter_pai.errors import InvalidDocument
from jupyter_pai.following import observe
from jupyter_pai.sync import Client
from jupyter_pai.wire import tasks_of
from jupyter_pai.wire_types import JobDetail
from pai_backend.access.keys import make_ed25519
from tests.support.private_backend import private_backend

CONFIG = """\
user: alice
engine:
  nodes:
    - {name: carol, simulated: true}
"""
DOCUMENT = """\
protocolVersion: 2
name: {name}
type: job
prerequisites: [{{name: image, type: dockerimage, uri: "python:3.11"}}]
secrets: {{mine: "{key}"}}
taskRoles:
  first: &role
    dockerImage: image
    completion: {{minSucceededInstances: -1}}
    resourcePerInstance: {{cpu: 1, memoryMB: 100, gpu: 0}}
    commands: ['echo past the barrier', '{command}']
  second: *role
extras:
  com.microsoft.pai.runtimeplugin:
    - plugin: ssh
      parameters:
        jobssh: true
        sshbarrier: [first, second]
        userssh: {{type: custom, value: "<% $secrets.mine %>"}}
"""


@pytest.fixture(scope="module")
def backend(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Client]:
    place = tmp_path_factory.mktemp("document-keys")
    (place / "backend.yaml").write_text(CONFIG)
    with private_backend(place / "data", place / "backend.yaml") as client:
        yield client


def until_state(client: Client, uid: str, state: str) -> JobDetail:
    for item in client.iterate(observe(client.api, uid, log=False)):
        if not isinstance(item, bytes) and item["state"] == state:
            return item
    raise AssertionError(f"the job never was {state}")


def test_a_key_among_the_secrets_opens_the_job_by_the_gateway_and_no_other(backend: Client, tmp_path: Path) -> None:
    private, public = make_ed25519("mine")
    uids = {}
    for name, key in (("entered", public), ("closed", make_ed25519("other")[1])):
        text = DOCUMENT.format(name=name, key=key, command="exec sleep 600")
        uids[name] = backend.submit(text.encode(), filename="job.yaml")["uid"]
    details = {name: until_state(backend, uid, "RUNNING") for name, uid in uids.items()}
    assert public.split()[1] not in repr(details)
    (tmp_path / "key").touch(0o600)
    (tmp_path / "key").write_text(private)
    answer = backend.ssh(uids["entered"])
    options = ["BatchMode=yes", "StrictHostKeyChecking=no", f"UserKnownHostsFile={tmp_path / 'known'}"]
    options += ["IdentitiesOnly=yes", "IdentityAgent=none"]
    words = [word for option in options for word in ("-o", option)]

    def ssh(name: str) -> subprocess.CompletedProcess[str]:
        where = ["-i", str(tmp_path / "key"), "-p", str(answer["port"]), f"{name}@{answer['host']}"]
        return subprocess.run(
            ["ssh", "-F", "none", *words, *where, "echo in"],
            capture_output=True,
            text=True,
            timeout=90,
            stdin=subprocess.DEVNULL,
        )

    for task in tasks_of(details["entered"]):
        done = ssh(task["alias"])
        assert done.stdout == "in\n", done.stderr
    for name in ("closed", "nothing"):
        refused = ssh(name)
        assert refused.returncode == 255
        assert "Permission denied (publickey)" in refused.stderr
    for uid in uids.values():
        backend.stop(uid)


def test_tasks_wait_until_the_others_take_logins(backend: Client) -> None:
    text = DOCUMENT.format(name="waiting", key=make_ed25519("mine")[1], command="echo done")
    uid = backend.submit(text.encode(), filename="job.yaml")["uid"]
    until_state(backend, uid, "SUCCEEDED")


def test_a_secret_that_is_no_public_key_is_refused_at_submit_and_not_repeated(backend: Client) -> None:
    text = DOCUMENT.format(name="refused", key="hunter2-never-shown", command="echo done")
    with pytest.raises(InvalidDocument) as caught:
        backend.submit(text.encode(), filename="job.yaml")
    assert "userssh of the ssh plugin" in str(caught.value)
    assert "hunter2" not in str(caught.value) + repr(caught.value)
