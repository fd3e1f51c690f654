"""Looking around in a failed task, as its user does: submit, fail, log in with OpenSSH, release with ``pai``."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from tests.support.backend_process import START_S, Backend, backend, until

DOCUMENT = {
    "jobName": "broken",
    "image": "none",
    "jobEnvs": {"isDebug": True},
    "taskRoles": [
        {
            "name": "main",
            "taskNumber": 1,
            "cpuNumber": 1,
            "memoryMB": 100,
            "gpuNumber": 1,
            "command": "echo the evidence > left; no-such-program",
        }
    ],
}


def pai(running: Backend, home: Path, *words: str) -> subprocess.CompletedProcess[str]:
    env = {"PAI_URL": running.url, "PAI_TOKEN": running.token, "PAI_SSH_DIR": str(home / "ssh"), "HOME": str(home)}
    line = [str(Path(sys.executable).with_name("pai")), *words]
    return subprocess.run(line, capture_output=True, text=True, timeout=START_S, env={**os.environ, **env})


def task_of(running: Backend) -> dict[str, Any]:
    with running.client() as client:
        roles = client.get("/api/v2/jobs/broken").json()["taskRoles"]
    return dict(roles[0]["taskStatuses"][0])


def left_behind(running: Backend, home: Path) -> str:
    """What a login into the failed task finds, once its SSH answers."""
    found = ""

    def answers() -> bool:
        nonlocal found
        done = pai(running, home, "ssh", "broken", "--", "cat left; echo $PAI_JOB_NAME")
        found = done.stdout if done.returncode == 0 else ""
        return bool(found)

    until(answers)
    return found


def test_a_failed_task_can_be_entered_also_after_a_restart_until_it_is_released(tmp_path: Path) -> None:
    data = tmp_path / "data"
    with backend(data) as running:
        with running.client() as client:
            assert client.post("/api/v2/jobs", content=json.dumps(DOCUMENT)).status_code == 202
        until(lambda: task_of(running)["phase"] == "kept for debugging")
        assert left_behind(running, tmp_path) == "the evidence\nbroken\n"
        told = pai(running, tmp_path, "status", "broken").stdout
        assert "RUNNING (kept for debugging): task main-0 failed and is kept for debugging until" in told
        assert "exit status 127: a program that the command names was not found" in told
        assert "Check its spelling and PATH" in told
    with backend(data) as running:
        assert task_of(running)["phase"] == "kept for debugging"
        assert left_behind(running, tmp_path) == "the evidence\nbroken\n"
        assert pai(running, tmp_path, "release", "broken", "main-0").stdout == "job broken: released: main-0\n"
        until(lambda: pai(running, tmp_path, "status", "broken").returncode == 1)
        refused = pai(running, tmp_path, "ssh", "broken", "--", "cat left")
        assert refused.returncode != 0
        assert "there is nothing to log in to" in refused.stderr
