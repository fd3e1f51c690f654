"""Deleting jobs while the process that erases their files is killed."""

from __future__ import annotations

import json
from pathlib import Path

import httpx
import pytest

from tests.support.backend_process import START_S, Backend, backend, kill, until

JOBS = 12

pytestmark = pytest.mark.timeout(START_S * 2)


def submit(client: httpx.Client, name: str) -> str:
    """The uid of a new job that leaves many files."""
    command = "for i in $(seq 200); do mkdir -p d$i; echo $i >d$i/f; done"
    role = {"name": "main", "taskNumber": 1, "cpuNumber": 1, "memoryMB": 100, "gpuNumber": 0, "command": command}
    answer = client.post("/api/v2/jobs", content=json.dumps({"jobName": name, "image": "none", "taskRoles": [role]}))
    assert answer.status_code == 202, answer.text
    return str(answer.json()["uid"])


def ended(running: Backend) -> int:
    with running.client() as client:
        return len(client.get("/api/v2/jobs?state=SUCCEEDED").json())


def left(running: Backend) -> list[Path]:
    """Directories of tasks that are there."""
    return [path for folder in ("tasks", "done") for path in (running.data_dir / "engine" / folder).iterdir()]


def test_jobs_whose_deletion_was_cut_off_go_all_the_same(tmp_path: Path) -> None:
    with backend(tmp_path / "data") as running:
        with running.client() as client:
            uids = [submit(client, f"job-{number}") for number in range(JOBS)]
        until(lambda: ended(running) == JOBS)
        with running.client() as client:
            for uid in uids:
                assert client.delete(f"/api/v2/jobs/{uid}").status_code == 202
        kill(running.children()["api,controller"])
        until(lambda: running.ready() and not left(running))
        with running.client() as client:
            assert client.get("/api/v2/jobs").json() == []
            assert [client.get(f"/api/v2/jobs/{uid}").status_code for uid in uids] == [404] * JOBS
            submit(client, "job-0")  # its name is free
        until(lambda: ended(running) == 1)
