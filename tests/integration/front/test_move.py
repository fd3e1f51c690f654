"""``pai move`` and ``%pai move`` on a real backend: who is moved to the front starts first."""

from __future__ import annotations

import json

import pytest
from IPython.core.interactiveshell import InteractiveShell
from IPython.utils.capture import capture_output

from jupyter_pai.sync import Client
from tests.support.warm_start import run_pai

NAMES = ("first", "second", "third", "fourth")
WAIT_S = 60


def submit(backend: Client, name: str) -> None:
    """A job that needs both GPUs."""
    role = {"name": "main", "taskNumber": 2, "cpuNumber": 1, "memoryMB": 100, "gpuNumber": 1}
    document = {"jobName": name, "image": "none", "taskRoles": [{**role, "command": "sleep 600"}]}
    backend.submit(json.dumps(document).encode())


def until_running(backend: Client, name: str) -> None:
    for event in backend.follow_events(name):
        if event["payload"].get("state") == "RUNNING":
            return


def test_moved_jobs_start_in_their_new_order(backend: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    endpoint = backend.api.endpoint
    monkeypatch.setenv("PAI_URL", endpoint.url)
    monkeypatch.setenv("PAI_TOKEN", endpoint.token)

    submit(backend, NAMES[0])
    until_running(backend, NAMES[0])
    for name in NAMES[1:]:
        submit(backend, name)

    moved = run_pai("move", "fourth", "--first")
    assert (moved.stdout, moved.returncode) == ("job fourth is number 1 of its priority now\n", 0), moved.stderr
    told = json.loads(run_pai("move", "second", "--after", "third", "--json").stdout)
    assert [(job["id"].partition("~")[2], job["place"], job["was"]) for job in told["jobs"]] == [("second", 3, 2)]

    shell = InteractiveShell()
    shell.run_line_magic("load_ext", "jupyter_pai")
    with capture_output():
        again = shell.run_cell("%pai move fourth --before third")
        unsaid = shell.run_cell("%pai move fourth")
    assert repr(again.result) == "job fourth is there already"
    assert "--before --after --first --last is required" in str(unsaid.error_in_exec)

    refused = run_pai("move", "first", "--last")
    assert refused.returncode == 2
    assert "first does not wait for its turn" in refused.stderr
    assert run_pai("move", "fourth").returncode == 2  # no place is named

    order = ["first", "fourth", "third", "second"]
    while len(order) > 1:
        backend.stop(order.pop(0))
        until_running(backend, order[0])
        assert {job["name"] for job in backend.jobs(state="WAITING")} == set(order[1:])
