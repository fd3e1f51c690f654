"""A client that talks as OpenPAI's SDKs do walks through a job's life, against a real backend.

What it sends is what the Python SDK and the JavaScript SDK of OpenPAI send: paths below ``/rest-server``, bearer
tokens, documents as ``text/yaml`` or as a JSON body, and it reads no field that OpenPAI's answers do not have.
"""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from pai_backend.auth.accounts import hash_password
from tests.support.backend_process import Backend, backend, until

USER, PASSWORD = "student", "correct horse"
COMMAND = "echo hello from $PAI_JOB_NAME; sleep 600"
V1 = {
    "jobName": "from-v1",
    "image": "example/pytorch:1.0",
    "virtualCluster": "default",
    "taskRoles": [
        {
            "name": "main",
            "taskNumber": 1,
            "cpuNumber": 1,
            "memoryMB": 256,
            "gpuNumber": 0,
            "command": COMMAND,
        }
    ],
}
V2 = f"""\
protocolVersion: 2
name: from_v2
type: job
prerequisites:
  - name: image
    type: dockerimage
    uri: example/pytorch:1.0
taskRoles:
  main:
    instances: 1
    completion: {{minFailedInstances: 1, minSucceededInstances: -1}}
    dockerImage: image
    resourcePerInstance: {{cpu: 1, memoryMB: 256, gpu: 0}}
    commands:
      - {COMMAND}
extras:
  com.microsoft.pai.runtimeplugin:
    - plugin: ssh
      parameters: {{jobssh: true}}
"""


class OpenPaiClient:
    """The calls that OpenPAI's clients make."""

    def __init__(self, pai_uri: str) -> None:
        self._http = httpx.Client(base_url=f"{pai_uri}/rest-server", timeout=60)

    def __enter__(self) -> OpenPaiClient:
        return self

    def __exit__(self, *_: object) -> None:
        self._http.close()

    def login(self, username: str, password: str) -> None:
        """As the portal and the older SDK sign in: a form, answered with a token."""
        body = {"username": username, "password": password, "expiration": "604800"}
        token = self.sent("POST", "/api/v1/authn/basic/login", data=body)["token"]
        self._http.headers["Authorization"] = f"Bearer {token}"

    def submit_v1(self, job: dict[str, Any]) -> dict[str, Any]:
        return self.sent("POST", f"/api/v1/user/{USER}/jobs", json=job)

    def submit_v2(self, text: str) -> dict[str, Any]:
        return self.sent("POST", "/api/v2/jobs", content=text, headers={"Content-Type": "text/yaml"})

    def jobs(self, **query: str) -> dict[str, Any]:
        return self.sent("GET", "/api/v2/jobs", params={"withTotalCount": "true", **query})

    def job(self, version: str, name: str) -> dict[str, Any]:
        path = f"/api/v1/user/{USER}/jobs/{name}" if version == "v1" else f"/api/v2/jobs/{USER}~{name}"
        return self.sent("GET", path)

    def log(self, container_log: str) -> str:
        """The end of a task's output, as the portal shows it."""
        locations = self.sent("GET", container_log, params={"tail-mode": "true"})["locations"]
        uri = next(each["uri"] for each in locations if each["name"] == "all")
        return self._http.get(uri).raise_for_status().text

    def ssh(self, version: str, name: str) -> dict[str, Any]:
        path = f"/api/v1/jobs/{name}/ssh" if version == "v1" else f"/api/v2/jobs/{USER}~{name}/ssh"
        return self.sent("GET", path)

    def config(self, name: str) -> bytes:
        return self._http.get(f"/api/v2/jobs/{USER}~{name}/config").raise_for_status().content

    def stop(self, version: str, name: str) -> dict[str, Any]:
        path = f"/api/v1/user/{USER}/jobs/{name}" if version == "v1" else f"/api/v2/jobs/{USER}~{name}"
        return self.sent("PUT", f"{path}/executionType", json={"value": "STOP"})

    def sent(self, method: str, path: str, **how: Any) -> dict[str, Any]:
        answer = self._http.request(method, path, **how)
        assert answer.is_success, f"{method} {path}: {answer.status_code} {answer.text}"
        body: dict[str, Any] = answer.json()
        return body


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Backend]:
    home = tmp_path_factory.mktemp("openpai")
    config = home / "backend.yaml"
    config.write_text(
        f"api: {{users: [{{name: {USER}, password_hash: '{hash_password(PASSWORD)}'}}]}}\n"
        "engine: {trust_all_users: true}\n"
    )
    config.chmod(0o600)
    with backend(home / "data", ["--config", str(config)]) as one:
        yield one


def log_in(ssh: dict[str, Any], directory: Path, *, user: str = "root", port: int | None = None) -> str:
    """``wget`` the key and run a command as OpenPAI's guides have it; what it prints."""
    (container,) = ssh["containers"]
    key = directory / ssh["keyPair"]["privateKeyFileName"]
    link = ssh["keyPair"]["privateKeyDirectDownloadLink"]
    subprocess.run(["wget", "-q", link, "-O", str(key)], check=True, timeout=60)
    key.chmod(0o600)
    options = [
        "-F",
        "none",
        "-o",
        "BatchMode=yes",
        "-o",
        "IdentitiesOnly=yes",
        "-o",
        "StrictHostKeyChecking=accept-new",
    ]
    options += [
        "-o",
        f"UserKnownHostsFile={directory / 'known_hosts'}",
        "-i",
        str(key),
        "-p",
        str(port or container["sshPort"]),
    ]
    command = ["ssh", *options, f"{user}@{container['sshIp']}", "echo $PAI_JOB_NAME"]
    return subprocess.run(command, check=True, capture_output=True, text=True, timeout=60).stdout.strip()


@pytest.mark.parametrize(("version", "name"), [("v1", "from-v1"), ("v2", "from_v2")])
def test_a_client_of_openpai_walks_through_a_jobs_life(
    running: Backend, version: str, name: str, tmp_path: Path
) -> None:
    with OpenPaiClient(running.url) as client:
        client.login(USER, PASSWORD)
        if version == "v1":
            assert client.submit_v1(V1)["jobStatus"]["username"] == USER
        else:
            assert client.submit_v2(V2)["message"]
        query = {"username": USER, "vc": "default", "keyword": name, "offset": "0", "limit": "20"}
        listed = client.jobs(**query, order="submissionTime,DESC")
        assert (listed["totalCount"], listed["data"][0]["name"]) == (1, name)

        until(lambda: client.job(version, name)["jobStatus"]["state"] == "RUNNING")
        detail = client.job(version, name)
        assert detail["jobStatus"]["subState"] == "AttemptRunning"
        assert detail["jobStatus"]["appLaunchedTime"] >= detail["jobStatus"]["createdTime"]
        (task,) = detail["taskRoles"]["main"]["taskStatuses"]
        assert (task["taskState"], task["containerIp"]) == ("RUNNING", "127.0.0.1")
        assert int(task["containerPorts"]["ssh"]) > 1024

        until(lambda: f"hello from {name}" in client.log(task["containerLog"]))
        assert log_in(client.ssh(version, name), tmp_path) == name
        if version == "v2":
            assert client.config(name) == V2.encode()

        assert client.stop(version, name)["message"]
        until(lambda: client.job(version, name)["jobStatus"]["state"] == "STOPPED")
        stopped = client.job(version, name)["jobStatus"]
        assert (stopped["appExitCode"], stopped["executionType"], stopped["subState"]) == (-210, "STOP", "Completed")
        assert [each["name"] for each in client.jobs(state="STOPPED", keyword=name)["data"]] == [name]


def test_the_tasks_own_port_takes_no_key_of_a_user_and_a_certificate_neither(running: Backend, tmp_path: Path) -> None:
    with OpenPaiClient(running.url) as client:
        client.login(USER, PASSWORD)
        client.submit_v1({**V1, "jobName": "shut"})
        until(lambda: client.job("v1", "shut")["jobStatus"]["state"] == "RUNNING")
        (task,) = client.job("v1", "shut")["taskRoles"]["main"]["taskStatuses"]
        port = int(task["containerPorts"]["ssh"])
        assert log_in(client.ssh("v1", "shut"), tmp_path) == "shut"
        with pytest.raises(subprocess.CalledProcessError) as refused:
            log_in(client.ssh("v1", "shut"), tmp_path, port=port)
        assert "Permission denied" in refused.value.stderr
        key = tmp_path / "own"
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", key], check=True, timeout=60)
        public = key.with_suffix(".pub").read_text()
        made = client.sent("POST", "/api/v2/certificates", json={"publicKey": public, "job": f"{USER}~shut"})
        Path(f"{key}-cert.pub").write_text(made["certificate"] + "\n")
        words = ["-F", "none", "-o", "BatchMode=yes", "-o", "StrictHostKeyChecking=no", "-i", str(key)]
        words += ["-o", f"UserKnownHostsFile={tmp_path / 'own_hosts'}", "-o", "IdentityAgent=none"]
        gateway = client.ssh("v1", "shut")["gateway"]
        for where, name, status in ((port, "root", 255), (gateway["port"], "shut", 0)):
            done = subprocess.run(["ssh", *words, "-p", str(where), f"{name}@127.0.0.1", "true"], timeout=60)
            assert done.returncode == status
        way = f"ssh {' '.join(words)} -p {gateway['port']} -W 127.0.0.1:{port} shut@127.0.0.1"
        through = ["ssh", *words, "-o", f"ProxyCommand={way}", "root@task", "true"]
        denied = subprocess.run(through, timeout=60, capture_output=True, text=True)
        assert "Permission denied (publickey)" in denied.stderr
        client.stop("v1", "shut")
        until(lambda: client.job("v1", "shut")["jobStatus"]["state"] == "STOPPED")


def test_the_key_of_one_job_opens_no_other(running: Backend, tmp_path: Path) -> None:
    with OpenPaiClient(running.url) as client:
        client.login(USER, PASSWORD)
        for name in ("one", "two"):
            client.submit_v1({**V1, "jobName": name})
            until(lambda: client.job("v1", name)["jobStatus"]["state"] == "RUNNING")  # noqa: B023
        one, two = (client.ssh("v1", name) for name in ("one", "two"))
        assert log_in(one, tmp_path) == "one"
        other = two["containers"][0]["sshUser"]
        assert log_in(two, tmp_path, user=other) == "two"
        with pytest.raises(subprocess.CalledProcessError) as refused:
            log_in(client.ssh("v1", "one"), tmp_path, user=other)
        assert "Permission denied" in refused.value.stderr
        for name in ("one", "two"):
            client.stop("v1", name)
            until(lambda: client.job("v1", name)["jobStatus"]["state"] == "STOPPED")  # noqa: B023
