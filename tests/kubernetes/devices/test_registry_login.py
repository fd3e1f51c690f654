"""Credentials of a document reach the kubelet, which fetches the image of a private registry with them."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from tests.kubernetes.cluster import images, programs
from tests.kubernetes.cluster.cluster import Cluster
from tests.kubernetes.devices.conftest import CAROL, ROOT, BackendMaker
from tests.support.backend_process import until

PORT = 5000  # of the node's own network, where nobody else listens
HOST = f"127.0.0.1:{PORT}"
LOGIN, WRONG = "alice:only-alice-knows", "only-mallory-thinks"
LONG_S = 240
DOCUMENT = """\
protocolVersion: 2
name: {name}
type: job
secrets: {{password: {password}}}
prerequisites:
  - name: private
    type: dockerimage
    uri: {host}/team/busybox:1
    auth: {{username: alice, password: <% $secrets.password %>, registryuri: {host}}}
taskRoles:
  r:
    dockerImage: private
    resourcePerInstance: {{cpu: 1, memoryMB: 64, gpu: 0}}
    commands: [echo fetched]
"""


@pytest.fixture
def registry(machine: Cluster, tmp_path: Path) -> Iterator[None]:
    (archive,) = (each for each in images.ensure(programs.images()) if each.name.startswith("busybox-"))
    log = tmp_path / "registry.log"
    command = (sys.executable, "-m", "tests.kubernetes.devices.registry", archive, str(PORT))
    with log.open("wb") as output:
        process = subprocess.Popen(
            machine.nodes[CAROL].in_its_network(*command),
            cwd=ROOT,
            env={**os.environ, "REGISTRY_LOGIN": LOGIN},
            stdout=output,
            stderr=output,
        )
    try:
        until(lambda: "serving" in log.read_text())
        yield
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(60)


def submit(client: httpx.Client, name: str, password: str) -> None:
    document = DOCUMENT.format(name=name, password=password, host=HOST).encode()
    answer = client.post("/api/v2/jobs", content=document, params={"name": name, "filename": "job.yaml"})
    assert answer.status_code == 202, answer.text


def test_an_image_is_fetched_with_the_documents_credentials(registry: None, backend_with: BackendMaker) -> None:
    """And with wrong ones it is not, with the registry's words and without the password."""
    with backend_with(image_pull_policy="Always") as running, running.client() as client:
        submit(client, "right", LOGIN.partition(":")[2])
        submit(client, "wrong", WRONG)
        until(lambda: client.get("/api/v2/jobs/right").json()["state"] == "SUCCEEDED", LONG_S)
        assert client.get("/api/v2/jobs/right/logs").text == "fetched\n"

        def said() -> str:
            return client.get("/api/v2/jobs/wrong/why").text + client.get("/api/v2/jobs/wrong/events").text

        until(lambda: "401 Unauthorized" in client.get("/api/v2/jobs/wrong/why").json()["sentence"], LONG_S)
        assert WRONG not in said()
        stop = client.put("/api/v2/jobs/wrong/executionType", json={"value": "STOP"})
        assert stop.status_code == 202, stop.text
        until(lambda: client.get("/api/v2/jobs/wrong").json()["state"] == "STOPPED", LONG_S)
