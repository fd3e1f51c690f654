"""Jobs of a real backend with the engine ``kubernetes``, from the document to the log."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.kubernetes.cluster.kubectl import Kubectl
from tests.kubernetes.fixtures import Kubernetes
from tests.support.backend_process import Backend, backend, until
from tests.support.documents import scm_document

JOB_S = 90


@pytest.fixture
def running(kubernetes: Kubernetes, namespace: Kubectl, runtime_image: str, tmp_path: Path) -> Iterator[Backend]:
    pods = {"runtime_image": runtime_image, "grace_s": 2, "cpu_limits": False}
    keys = {"kubeconfig": str(kubernetes.kubeconfig), "namespace": namespace.namespace, "pods": json.dumps(pods)}
    arguments = [word for key, value in keys.items() for word in (f"--kubernetes-{key}", value)]
    with backend(tmp_path / "backend", ["--engine-kind", "kubernetes", *arguments]) as started:
        yield started


def document(kubernetes: Kubernetes, name: str, command: str, **changes: Any) -> bytes:
    role = {"name": "r", "taskNumber": 1, "cpuNumber": 1, "memoryMB": 100, "gpuNumber": 0, "command": command}
    return scm_document(name, taskRoles=[role], gpuType="", image=kubernetes.python, **changes)


def until_state(client: httpx.Client, name: str, *states: str) -> dict[str, Any]:
    until(lambda: client.get(f"/api/v2/jobs/{name}").json()["state"] in states, JOB_S)
    return dict(client.get(f"/api/v2/jobs/{name}").json())


def submit(client: httpx.Client, name: str, content: bytes) -> None:
    answer = client.post("/api/v2/jobs", content=content, params={"name": name, "filename": "job.json"})
    assert answer.status_code == 202, answer.text


def task_of(job: dict[str, Any]) -> dict[str, Any]:
    (task,) = [task for role in job["taskRoles"] for task in role["taskStatuses"]]
    return dict(task)


def test_a_job_runs_on_a_node_and_its_log_outlives_its_pod(
    kubernetes: Kubernetes, namespace: Kubectl, running: Backend
) -> None:
    with running.client() as client:
        submit(client, "hello", document(kubernetes, "hello", 'echo "$PAI_JOB_NAME" on $(hostname); exit 3'))
        job = until_state(client, "hello", "SUCCEEDED", "FAILED")
        assert (job["state"], task_of(job)["exit"]["code"]) == ("FAILED", 3)

        def no_pods() -> bool:
            return not asyncio.run(namespace.get("pods"))["items"]

        until(no_pods, JOB_S)
        assert client.get("/api/v2/jobs/hello/logs").text == "hello on r-0\n"


def test_a_job_is_stopped(kubernetes: Kubernetes, running: Backend) -> None:
    with running.client() as client:
        submit(client, "long", document(kubernetes, "long", "sleep 1000"))
        until_state(client, "long", "RUNNING")
        assert client.put("/api/v2/jobs/long/executionType", json={"value": "STOP"}).status_code == 202
        assert task_of(until_state(client, "long", "STOPPED"))["exit"]["reason"] == "stopped"


def test_keys_that_the_engine_cannot_use_are_named(tmp_path: Path) -> None:
    command = [sys.executable, "-P", "-m", "pai_backend", "serve", "--data-dir", str(tmp_path / "b")]
    command += ["--engine-kind", "kubernetes", "--kubernetes-pods", '{"network": "moon"}']
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, env=dict(os.environ))
    assert done.returncode != 0
    assert "kubernetes.pods." in done.stdout + done.stderr


MEET = """
python3 - <<'END'
import os, socket, subprocess
me, index = os.environ["PAI_CURRENT_TASK_ROLE_NAME"], os.environ["PAI_CURRENT_TASK_ROLE_CURRENT_TASK_INDEX"]
server = ("server", "0")
host = os.environ["PAI_HOST_IP_server_0"]
port = int(os.environ["PAI_PORT_LIST_server_0_hello"])
if (me, index) == server:
    with socket.create_server(("", port)) as listening:
        for _ in range(2):
            with listening.accept()[0] as connection:
                connection.sendall(b"hello from " + socket.gethostname().encode())
else:
    while True:
        try:
            with socket.create_connection((host, port), timeout=5) as connection:
                print(connection.makefile().read(), "at", host, flush=True)
            break
        except ConnectionRefusedError:
            pass  # it has not begun to listen
END
"""


def test_tasks_of_a_job_reach_each_other_by_what_their_variables_say(kubernetes: Kubernetes, running: Backend) -> None:
    """Their names are known before there is a pod; the launcher finds the addresses behind them."""
    role = {"cpuNumber": 1, "memoryMB": 100, "gpuNumber": 0, "command": MEET, "portList": []}
    hello = [{"label": "hello", "beginAt": 0, "portNumber": 1}]
    roles = [
        {**role, "name": "server", "taskNumber": 1, "portList": hello},
        {**role, "name": "client", "taskNumber": 2},
    ]
    content = scm_document("meeting", taskRoles=roles, gpuType="", image=kubernetes.python)
    with running.client() as client:
        submit(client, "meeting", content)
        assert until_state(client, "meeting", "SUCCEEDED", "FAILED")["state"] == "SUCCEEDED"
        for index in (0, 1):
            told = client.get("/api/v2/jobs/meeting/logs", params={"role": "client", "index": index}).text
            assert told == "hello from server-0 at server-0\n"
