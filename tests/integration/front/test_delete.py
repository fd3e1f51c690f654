"""``pai delete`` and ``%pai delete`` on a real backend: rows, logs and directories go, outputs stay."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest
from IPython.core.interactiveshell import InteractiveShell
from IPython.utils.capture import capture_output

from jupyter_pai.errors import NotFound
from jupyter_pai.sync import Client
from tests.support.living_trees import paths_below
from tests.support.warm_start import run_pai

WAIT_S = 60


def submit(backend: Client, name: str, command: str) -> str:
    """The uid of a new job of one task."""
    role = {"name": "main", "taskNumber": 1, "cpuNumber": 1, "memoryMB": 100, "gpuNumber": 0, "command": command}
    return backend.submit(json.dumps({"jobName": name, "image": "none", "taskRoles": [role]}).encode())["uid"]


def until_ended(backend: Client, uid: str) -> None:
    for _ in backend.follow_events(uid):
        pass


def left_of(data: Path, uid: str) -> list[str]:
    """Files and directories below the data directory that have the job's uid in their names, storages aside."""
    return sorted(
        str(path.relative_to(data))
        for path in paths_below(data)
        if uid in path.name and path.relative_to(data).parts[0] != "fs"
    )


def test_a_finished_job_is_deleted_with_its_files_and_keeps_its_outputs(
    backend: Client, backend_data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = backend_data
    endpoint = backend.api.endpoint
    monkeypatch.setenv("PAI_URL", endpoint.url)
    monkeypatch.setenv("PAI_TOKEN", endpoint.token)

    first = submit(backend, "first", "echo result > $PAI_OUTPUT_DIR/result; mkdir -m 0 closed; echo done")
    second = submit(backend, "second", "true")
    submit(backend, "runs", "sleep 600")
    for uid in (first, second):
        until_ended(backend, uid)
    assert left_of(data, first) != []
    outputs = [path for path in paths_below(data / "fs") if path.name == "result" and first in str(path)]
    assert len(outputs) == 1

    asked = run_pai("delete", "first", "second")
    assert (asked.returncode, "Give --yes." in asked.stderr) == (2, True)
    unknown = run_pai("delete", "first", "nothing", "--yes")
    assert (unknown.returncode, backend.job("first")["uid"]) == (2, first)
    refused = run_pai("delete", "runs", "--yes")
    assert (refused.returncode, "pai stop" in refused.stderr) == (2, True)

    deleted = run_pai("delete", "first", "--yes")
    assert deleted.returncode == 0, deleted.stderr
    assert "its outputs in storages are kept" in deleted.stdout
    with pytest.raises(NotFound):
        backend.job("first")
    shell = InteractiveShell()
    shell.run_line_magic("load_ext", "jupyter_pai")
    with capture_output():
        unsaid = shell.run_cell("%pai delete second")
        said = shell.run_cell("%pai delete second --yes")
    assert "Nothing was deleted" in str(unsaid.error_in_exec)
    assert repr(said.result).startswith("job second is deleted")

    until_gone(data, first, second)
    assert [path.read_text() for path in outputs] == ["result\n"]
    assert [row["name"] for row in backend.jobs()] == ["runs"]


def until_gone(data: Path, *uids: str) -> None:
    """Return when nothing of the jobs is left, as an operator would look for it; the test's time-out bounds it."""
    while any(left_of(data, uid) for uid in uids):
        time.sleep(0.05)  # files tell no one that they are gone
