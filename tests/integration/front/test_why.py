"""``pai why`` and ``%pai why`` of a job for which a real backend has no room."""

from __future__ import annotations

import json

import pytest
from IPython.core.interactiveshell import InteractiveShell
from IPython.utils.capture import capture_output

from jupyter_pai.sync import Client
from tests.support.warm_start import run_pai

WAIT_S = 60


def submit(backend: Client, name: str, tasks: int) -> None:
    role = {"name": "main", "taskNumber": tasks, "cpuNumber": 1, "memoryMB": 100, "gpuNumber": 1}
    document = {"jobName": name, "image": "none", "taskRoles": [{**role, "command": "sleep 600"}]}
    backend.submit(json.dumps(document).encode())


def test_a_job_without_room_is_explained_in_the_shell_and_in_a_notebook(
    backend: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    endpoint = backend.api.endpoint
    monkeypatch.setenv("PAI_URL", endpoint.url)
    monkeypatch.setenv("PAI_TOKEN", endpoint.token)

    def pai(*words: str) -> str:
        done = run_pai(*words)
        assert done.returncode == 0, done.stderr
        return done.stdout

    submit(backend, "first", 1)
    for event in backend.follow_events("first"):
        if event["payload"].get("state") == "RUNNING":
            break
    submit(backend, "second", 2)

    told = json.loads(pai("why", "second", "--json"))
    assert (told["state"], told["current"]) == ("WAITING", True)
    waiting = told["waiting"]
    assert (waiting["cause"], waiting["needed"], waiting["owned"], waiting["free"]) == ("priority", 2, 2, 1)
    assert [holder["group"].partition("/")[0] for holder in waiting["holders"]] == [backend.job("first")["id"]]
    assert (waiting["changes"][0]["kind"], waiting["changes"][0]["after"]) == ("fewer-tasks", 1)

    text = pai("why", "second")
    assert "With 1 task instead of 2 it would start now." in text
    assert "1 of 1 in the queue of default" in text
    assert "HELD BY" in text

    shell = InteractiveShell()
    shell.run_line_magic("load_ext", "jupyter_pai")
    with capture_output() as shown:
        cell = shell.run_cell("%pai why second")
    assert cell.success
    assert repr(cell.result) == text.rstrip("\n"), shown.stdout
    assert "it does not wait" in pai("why", "first")
