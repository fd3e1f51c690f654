"""Nodes with taints: tasks of the SKU whose rule tolerates them run there; others are told which taint is in the way.

On a cluster of the test's own, since a taint NoExecute ends what others run.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.kubernetes.cluster import images
from tests.kubernetes.cluster.cluster import Cluster, started
from tests.kubernetes.cluster.commands import until
from tests.kubernetes.cluster.kubectl import Json
from tests.kubernetes.fixtures import need_machine
from tests.kubernetes.runtime_image import loaded
from tests.support.backend_process import backend
from tests.support.documents import scm_document

WAIT_S = 120.0
COMMAND = "echo $PAI_NODE_NAME"
TAINTS = ("pool=v100:NoSchedule", "batch=only:NoExecute")
TOLERATED = {
    "V100": {
        "tolerations": [
            {"key": "pool", "value": "v100", "effect": "NoSchedule"},
            {"key": "batch", "operator": "Exists", "effect": "NoExecute"},
        ]
    }
}


def arguments(cluster: Cluster, runtime_image: str, rules: Json) -> list[str]:
    keys = {
        "engine-kind": "kubernetes",
        "cluster-sku-scheduling": json.dumps(rules),
        "kubernetes-kubeconfig": str(cluster.kubeconfig),
        "kubernetes-pods": json.dumps({"runtime_image": runtime_image, "cpu_limits": False}),
    }
    return [word for key, value in keys.items() for word in (f"--{key}", value)]


async def submit(client: httpx.AsyncClient) -> None:
    role = {
        "name": "r",
        "taskNumber": 1,
        "cpuNumber": 1,
        "memoryMB": 100,
        "gpuNumber": 1,
        "command": "echo $PAI_NODE_NAME",
    }
    content = scm_document("train", taskRoles=[role], gpuType="V100", image=images.PYTHON)
    answer = await client.post("/api/v2/jobs", content=content, params={"name": "train", "filename": "job.json"})
    assert answer.status_code == 202, answer.text


@pytest.mark.asyncio
async def test_tasks_of_a_sku_run_on_tainted_nodes_that_its_rule_tolerates(tmp_path: Path) -> None:
    need_machine()
    async with started() as cluster:
        await cluster.add_node("erin", 1, {"jupyter-pai/gpu-type": "V100"}, TAINTS)
        runtime_image = await loaded(cluster)
        for rules in ({}, TOLERATED):
            place = tmp_path / ("with" if rules else "without")
            with backend(place, arguments(cluster, runtime_image, rules)) as running:
                headers = {"Authorization": f"Bearer {running.token}", "Accept": "application/vnd.jupyter-pai+json"}
                async with httpx.AsyncClient(base_url=running.url, headers=headers, timeout=60) as client:
                    await submit(client)
                    await (runs(client) if rules else is_kept_off(client))


async def is_kept_off(client: httpx.AsyncClient) -> None:
    async def told() -> bool:
        why = (await client.get("/api/v2/jobs/train/why")).json()
        return "may not use erin (taint " in why["sentence"] and any(taint in why["sentence"] for taint in TAINTS)

    await until(told, "the job to be told of the taint", WAIT_S)


async def runs(client: httpx.AsyncClient) -> None:
    job: dict[str, Any] = {}

    async def ended() -> bool:
        job.update((await client.get("/api/v2/jobs/train")).json())
        return job["state"] in ("SUCCEEDED", "FAILED", "STOPPED")

    await until(ended, "the job to end", WAIT_S)
    assert job["state"] == "SUCCEEDED", job
    assert (await client.get("/api/v2/jobs/train/logs")).text == "erin\n"
