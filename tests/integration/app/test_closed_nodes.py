"""Taints and labels of nodes on a real backend: who is kept away and told why, and who starts when it is allowed."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx

from tests.support.backend_process import backend, until

TAINT = "team=vision:NoSchedule"
GPU = {"type": "TITANX", "count": 1}
NODES = [
    {"name": "carol", "gpus": GPU, "taints": [{"key": "team", "value": "vision", "effect": "NoSchedule"}]},
    {"name": "dan", "gpus": GPU, "labels": {"zone": "a"}},
]
ALLOWED = {"TITANX": {"tolerations": [{"key": "team", "operator": "Equal", "value": "vision"}]}}


@contextmanager
def serving(data_dir: Path, *arguments: str) -> Iterator[httpx.Client]:
    """A backend with these two nodes, and a client of it."""
    with (
        backend(data_dir, ["--engine-nodes", json.dumps(NODES), *arguments]) as running,
        running.client() as client,
    ):
        yield client


def submit(client: httpx.Client, name: str, **selector: str) -> str:
    """Submit a job that wants a GPU and runs until it is stopped; its path."""
    role = {"name": "main", "taskNumber": 1, "cpuNumber": 1, "memoryMB": 100, "gpuNumber": 1, "command": "sleep 600"}
    document: dict[str, Any] = {"jobName": name, "image": "none", "gpuType": "TITANX", "taskRoles": [role]}
    if selector:
        document["extras"] = {"jupyterPai": {"nodeSelector": selector}}
    response = client.post("/api/v2/jobs", content=json.dumps(document))
    assert response.status_code == 202, response.text
    return f"/api/v2/jobs/{response.json()['id']}"


def running_task(client: httpx.Client, job: str) -> dict[str, Any]:
    """The job's only task, once it runs."""
    until(lambda: client.get(job).json()["state"] == "RUNNING")
    ((task,),) = (role["taskStatuses"] for role in client.get(job).json()["taskRoles"])
    return dict(task)


def waiting(client: httpx.Client, job: str) -> dict[str, Any]:
    """Why the job waits, once that is known."""
    until(lambda: client.get(f"{job}/why").json()["waiting"] is not None)
    return dict(client.get(f"{job}/why").json()["waiting"])


def stop(client: httpx.Client, *jobs: str) -> None:
    """Stop the jobs, and wait until they have ended."""
    for job in jobs:
        assert client.put(f"{job}/executionType", json={"value": "STOP"}).status_code == 202
    until(lambda: all(client.get(job).json()["state"] == "STOPPED" for job in jobs))


def test_a_taint_keeps_jobs_away_until_their_sku_tolerates_it(tmp_path: Path) -> None:
    with serving(tmp_path / "data") as client:
        shown = {node["name"]: node for node in client.get("/api/v2/cluster/nodes").json()["data"]}
        assert shown["carol"]["taints"] == [{"key": "team", "value": "vision", "effect": "NoSchedule"}]
        assert shown["dan"]["labels"]["zone"] == "a"
        first = submit(client, "first")
        assert running_task(client, first)["node"] == "dan"
        second, picky = submit(client, "second"), submit(client, "picky", zone="a")
        told = waiting(client, second)
        assert told["cause"] == "linear"
        assert (told["lacks"][0]["node"], told["lacks"][0]["what"], told["lacks"][0]["detail"]) == (
            "carol",
            "taint",
            TAINT,
        )
        assert told["texts"]["en"]["remedy"] == (
            f"If it tolerated the taint {TAINT} of carol, which an administrator decides, it would start now."
        )
        assert client.get(f"{second}/why").json()["sentence"] == (
            f"waits for 1 TITANX GPU: it may not use carol (taint {TAINT})"
        )
        lack = waiting(client, picky)["lacks"][0]
        assert (lack["node"], lack["what"], lack["detail"]) == ("carol", "selector", "zone=a")
    with serving(tmp_path / "data", "--cluster-sku-scheduling", json.dumps(ALLOWED)) as client:
        assert running_task(client, second)["node"] == "carol"
        assert running_task(client, picky)["node"] == "dan", "what ran there ended with the first backend's processes"
        stop(client, second, picky)
