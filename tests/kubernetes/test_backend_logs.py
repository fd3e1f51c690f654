"""The log of a job on a real backend that is killed while the job prints: whole, and without the job's secrets."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import psutil

from tests.kubernetes.cluster.kubectl import Kubectl
from tests.kubernetes.fixtures import Kubernetes
from tests.support.backend_process import Backend, backend, kill, until

SECRET = "correct-horse-battery"
LIMIT_S = 120
LOGS = "/api/v2/jobs/counting/logs"
DOCUMENT = """\
protocolVersion: 2
name: counting
type: job
secrets: {token: %s}
prerequisites: [{name: image, type: dockerimage, uri: %s}]
taskRoles:
  w:
    dockerImage: image
    resourcePerInstance: {cpu: 1, memoryMB: 100, gpu: 0}
    commands:
      - echo "the word is <%% $secrets.token %%>, twice $TOKEN"
      - exec 2>/dev/null  # bash tells of its sleep that was ended
      - trap 'echo end; exit' TERM; number=0; while true; do echo $number; number=$((number + 1)); sleep 0.02; done
"""


def kill_all(running: Backend) -> None:
    """``kill -9`` of every process of the backend."""
    processes = [psutil.Process(running.process.pid), *psutil.Process(running.process.pid).children(recursive=True)]
    for process in processes:
        kill(process)
    running.process.wait()


def test_a_killed_backend_goes_on_with_the_log_and_never_shows_a_secret(
    kubernetes: Kubernetes, namespace: Kubectl, runtime_image: str, tmp_path: Path
) -> None:
    pods = {"runtime_image": runtime_image, "grace_s": 5, "cpu_limits": False}
    keys = {"kubeconfig": str(kubernetes.kubeconfig), "namespace": namespace.namespace, "pods": json.dumps(pods)}
    arguments = [word for key, value in keys.items() for word in (f"--kubernetes-{key}", value)]
    arguments = ["--engine-kind", "kubernetes", *arguments]
    kept = tmp_path / "backend" / "task-logs"

    with backend(tmp_path / "backend", arguments) as first, first.client() as client:
        document = (DOCUMENT % (SECRET, kubernetes.python)).replace("$TOKEN", SECRET)
        answer = client.post("/api/v2/jobs", content=document, params={"filename": "job.yaml"})
        assert answer.status_code == 202, answer.text
        until(lambda: any(b"\n50\n" in log.read_bytes() for log in kept.glob("*/all-*.log")), LIMIT_S)
        kill_all(first)

    def no_pods() -> bool:
        return not asyncio.run(namespace.get("pods"))["items"]

    with backend(tmp_path / "backend", arguments) as second, second.client() as client:
        before = len(client.get(LOGS).content)
        until(lambda: len(client.get(LOGS).content) > before + 100, LIMIT_S)
        assert client.put("/api/v2/jobs/counting/executionType", json={"value": "STOP"}).status_code == 202
        until(no_pods, LIMIT_S)
        first_line, *numbers, last = client.get(LOGS).text.splitlines()
        part = client.get(LOGS, params={"offset": 30, "limit": 40}).text
        assert part == client.get(LOGS).text[30:70]
    assert SECRET not in first_line
    assert first_line.startswith("the word is ")
    assert (numbers, last) == ([str(number) for number in range(len(numbers))], "end")
    assert len(numbers) > 50
