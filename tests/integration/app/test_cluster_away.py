"""A backend whose cluster is away: it starts, answers, and says what is wrong."""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest
import yaml

from tests.support.backend_process import backend, until
from tests.support.kubeconfigs import kubeconfig

WORDS = "the API server cannot be reached"


@pytest.mark.parametrize("processes", ['[["api", "controller"]]', '[["api"], ["controller"]]'])
def test_a_backend_without_its_cluster_is_not_ready_and_says_why(tmp_path: Path, processes: str) -> None:
    """Also the process of the API alone, which hears of nodes from the cluster itself."""
    path = tmp_path / "kubeconfig"
    arguments = ["--engine-kind", "kubernetes", "--kubernetes-kubeconfig", str(path), "--processes", processes]
    pods = ["--kubernetes-pods", json.dumps({"runtime_image": "r:1"})]
    with silent_port() as port:
        path.write_text(yaml.safe_dump(kubeconfig(f"http://127.0.0.1:{port}", token="none")))
        with backend(tmp_path / "b", [*arguments, *pods], whole=False) as running, running.client() as client:
            look(client)


@contextmanager
def silent_port() -> Iterator[int]:
    """A port that refuses connections, and that nobody else can take meanwhile."""
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        yield bound.getsockname()[1]


def look(client: httpx.Client) -> None:
    """Wait until the backend says that it does not reach the cluster, and look what else it says."""

    def told() -> bool:
        answer = client.get("/readyz")
        checks = {check["name"]: check["message"] for check in answer.json().get("checks", ())}
        said = checks.get("engine", "")
        return answer.status_code == 503 and "nodes were never listed: " in said and WORDS in said

    until(told)
    # Between two tries nothing is watched, and no age is told.
    until(lambda: 'pai_kubernetes_knowledge_age_seconds{resource="nodes"} +Inf' in client.get("/metrics").text)
    assert 'answer="unreachable"' in client.get("/metrics").text
    assert client.get("/api/v2/cluster/nodes").json()["data"] == []
