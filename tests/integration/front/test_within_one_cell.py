"""``withinOneCell`` through a real backend: tasks land in one rack, and what no rack could contain is refused."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from jupyter_pai.errors import InvalidDocument
from jupyter_pai.sync import Client
from tests.support.private_backend import private_backend

RACKS = """
engine:
  grace_s: 1
  nodes:
    - {name: a0, simulated: true, gpus: {type: TITANX, count: 2}, cpus: 8, memory_mb: 32768}
    - {name: a1, simulated: true, gpus: {type: TITANX, count: 2}, cpus: 8, memory_mb: 32768}
    - {name: b0, simulated: true, gpus: {type: TITANX, count: 2}, cpus: 8, memory_mb: 32768}
    - {name: b1, simulated: true, gpus: {type: TITANX, count: 2}, cpus: 8, memory_mb: 32768}
cluster:
  config:
    physicalCluster:
      skuTypes: {TITANX: {gpu: 1, cpu: 2, memory: 4096Mi}}
      cellTypes:
        NODE: {childCellType: TITANX, childCellNumber: 2, isNodeLevel: true}
        RACK: {childCellType: NODE, childCellNumber: 2}
      physicalCells:
        - {cellType: RACK, cellChildren: [{cellAddress: a0}, {cellAddress: a1}]}
        - {cellType: RACK, cellChildren: [{cellAddress: b0}, {cellAddress: b1}]}
    virtualClusters:
      default: {virtualCells: [{cellType: RACK, cellNumber: 2}]}
"""
GPUS = 2


@pytest.fixture(scope="module")
def backend(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Client]:
    place = tmp_path_factory.mktemp("racks")
    (place / "racks.yaml").write_text(RACKS)
    with private_backend(place / "data", place / "racks.yaml") as client:
        yield client


def document(name: str, tasks: int, gpus: int, **scheduler: Any) -> bytes:
    role = {
        "instances": tasks,
        "dockerImage": "i",
        "resourcePerInstance": {"cpu": 1, "memoryMB": 100, "gpu": gpus},
        "commands": ["sleep 600"],
    }
    job = {
        "protocolVersion": 2,
        "name": name,
        "type": "job",
        "prerequisites": [{"type": "dockerimage", "name": "i", "uri": "none"}],
        "taskRoles": {"worker": role},
        "extras": {"hivedScheduler": scheduler},
    }
    return json.dumps(job).encode()


def until_told(backend: Client, name: str) -> dict[str, Any]:
    """The job once it runs, or says why it does not."""
    for event in backend.follow_events(name):
        if event["payload"].get("state") == "RUNNING" or event["payload"].get("why"):
            break
    return dict(backend.job(name))


def nodes(backend: Client, name: str) -> list[str]:
    job = until_told(backend, name)
    return sorted(task["node"] for role in job["taskRoles"] for task in role["taskStatuses"])


def test_tasks_land_in_one_rack_and_wait_for_one(backend: Client) -> None:
    within = {"taskRoles": {"worker": {"withinOneCell": "RACK"}}}
    backend.submit(document("single", 1, 1))
    (busy,) = nodes(backend, "single")
    backend.submit(document("gang", 2, GPUS, **within))
    rack = nodes(backend, "gang")
    assert {name[0] for name in rack} == {"a", "b"} - {busy[0]}

    backend.submit(document("second", 2, GPUS, withinOneCell="RACK"))
    assert "within one RACK" in until_told(backend, "second")["why"]
    waiting = backend.why("second")["waiting"]
    assert waiting is not None
    assert waiting["cause"] == "priority"
    backend.stop("gang")
    for event in backend.follow_events("second"):
        if event["payload"].get("state") == "RUNNING":
            break
    assert nodes(backend, "second") == rack


def test_what_no_rack_could_contain_is_refused_with_its_place(backend: Client) -> None:
    within = {"taskRoles": {"worker": {"withinOneCell": "SOCKET"}}}
    with pytest.raises(InvalidDocument) as unknown:
        backend.submit(document("odd", 2, GPUS, **within))
    assert "there are no cells of type SOCKET where the tasks may run" in str(unknown.value)
    with pytest.raises(InvalidDocument) as large:
        backend.submit(document("large", 3, GPUS, withinOneCell="RACK"))
    assert "the tasks ask for 6 SKUs together, and one cell of type RACK has 4" in str(large.value)
