"""A failed task of a debug job as its user meets it: entered from the shell, let go from the shell."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from jupyter_pai.sync import Client
from tests.support.warm_start import run_pai

WAIT_S = 60


ROLE = {"name": "main", "taskNumber": 1, "cpuNumber": 1, "memoryMB": 100, "gpuNumber": 0}
DOCUMENT = {
    "jobName": "kept",
    "image": "none",
    "jobEnvs": {"isDebug": True},
    "taskRoles": [{**ROLE, "command": "echo what it left > trace; exit 3"}],
}


def test_a_kept_task_is_entered_and_let_go(backend: Client, tmp_path: Path) -> None:
    endpoint = backend.api.endpoint
    environ = {"PAI_URL": endpoint.url, "PAI_TOKEN": endpoint.token, "PAI_SSH_DIR": str(tmp_path / "ssh")}

    def pai(*words: str) -> subprocess.CompletedProcess[str]:
        return run_pai(*words, env={**os.environ, **environ})

    backend.submit(json.dumps(DOCUMENT).encode())
    following = subprocess.Popen(
        [sys.executable, "-m", "jupyter_pai.cli", "status", "kept", "--watch"],
        env={**os.environ, **environ},
        stderr=subprocess.PIPE,
        text=True,
    )
    assert following.stderr is not None
    for line in following.stderr:
        if "kept for debugging" in line:
            break
    else:
        pytest.fail("the task was never kept")

    entered = pai("ssh", "kept", "cat trace")
    assert (entered.stdout, entered.returncode) == ("what it left\n", 0), entered.stderr

    released = pai("release", "kept")
    assert released.returncode == 0, released.stderr
    assert following.wait(WAIT_S) == 1  # as for any failed job
    assert "FAILED" in following.stderr.read()

    refused = pai("ssh", "kept", "cat trace")
    assert refused.returncode != 0
    assert "there is nothing to log in to" in refused.stderr
