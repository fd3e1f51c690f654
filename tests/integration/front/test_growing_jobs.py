"""``minInstances`` on a real backend: some tasks start together or not at all, the others join as room comes."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from jupyter_pai.sync import Client
from tests.support.private_backend import private_backend

THREE_GPUS = """
engine:
  grace_s: 1
  nodes: [{name: carol, simulated: true, gpus: {type: TITANX, count: 3}, cpus: 8, memory_mb: 32768}]
"""


@pytest.fixture
def backend(tmp_path: Path) -> Iterator[Client]:
    (tmp_path / "gpus.yaml").write_text(THREE_GPUS)
    with private_backend(tmp_path / "data", tmp_path / "gpus.yaml") as client:
        yield client


def document(name: str, tasks: int, least: int | None) -> bytes:
    role = {
        "instances": tasks,
        "completion": {"minSucceededInstances": -1},
        "dockerImage": "i",
        "resourcePerInstance": {"cpu": 1, "memoryMB": 100, "gpu": 1},
        "commands": ["sleep 600"],
    }
    own = {} if least is None else {"jupyterPai": {"taskRoles": {"worker": {"minInstances": least}}}}
    job = {
        "protocolVersion": 2,
        "name": name,
        "type": "job",
        "prerequisites": [{"type": "dockerimage", "name": "i", "uri": "none"}],
        "taskRoles": {"worker": role},
        "extras": {"gangAllocation": False, **own},
    }
    return json.dumps(job).encode()


def running(backend: Client, name: str, count: int) -> list[int]:
    """The indexes of the job's running tasks, once there are so many."""
    for event in backend.follow_events(name):
        found = [
            task["index"]
            for role in backend.job(name)["taskRoles"]
            for task in role["taskStatuses"]
            if task["state"] == "RUNNING"
        ]
        if len(found) == count:
            return found
        assert event["type"] != "job.exit"
    raise AssertionError(f"{name} ended before {count} of its tasks ran")


def test_two_of_three_tasks_begin_together_and_the_third_joins(backend: Client) -> None:
    for name in ("first", "second"):
        backend.submit(document(name, 1, None))
        running(backend, name, 1)
    backend.submit(document("grows", 3, 2))
    for event in backend.follow_events("grows"):
        if event["payload"].get("why"):
            break
    tasks = backend.job("grows")["taskRoles"][0]["taskStatuses"]
    assert [task["state"] for task in tasks] == ["WAITING"] * 3

    backend.stop("first")
    assert running(backend, "grows", 2) == [0, 1]
    waiting = backend.why("grows")["waiting"]
    assert waiting is not None
    assert {holder["group"] for holder in waiting["holders"]} >= {backend.job("second")["id"]}
    backend.stop("second")
    assert running(backend, "grows", 3) == [0, 1, 2]
