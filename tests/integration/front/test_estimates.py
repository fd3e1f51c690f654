"""When a waiting job will probably start, as a real backend tells it: by declared run times and by a user's history."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from IPython.core.interactiveshell import InteractiveShell
from IPython.utils.capture import capture_output

from jupyter_pai.embedded import Embedded
from jupyter_pai.sync import Client
from tests.support.warm_start import run_pai

THREE_GPUS = """
engine:
  grace_s: 1
  nodes: [{name: carol, simulated: true, gpus: {type: TITANX, count: 3}, cpus: 8, memory_mb: 32768}]
"""
HOUR_S = 3600
WAIT_S = 60


@pytest.fixture
def private(tmp_path: Path) -> Iterator[Embedded]:
    (tmp_path / "gpus.yaml").write_text(THREE_GPUS)
    private = Embedded(tmp_path / "data", tmp_path / "gpus.yaml")
    try:
        yield private
        with Client(private.ensure()) as client:
            for job in client.jobs(state="WAITING,RUNNING"):
                client.stop(job["id"])
                for _ in client.follow_events(job["id"]):
                    pass
    finally:
        private.stop()


def submit(backend: Client, name: str, command: str, gpus: int = 1, **extras: Any) -> None:
    role = {"name": "main", "taskNumber": 1, "cpuNumber": 1, "memoryMB": 100, "gpuNumber": gpus, "command": command}
    document = {"jobName": name, "image": "none", "taskRoles": [role], "extras": extras}
    backend.submit(json.dumps(document).encode())


def running_since(backend: Client, name: str) -> datetime:
    """When the job's task started, once it has."""
    for event in backend.follow_events(name):
        if event["payload"].get("state") == "RUNNING":
            break
    (task,) = backend.job(name)["taskRoles"][0]["taskStatuses"]
    return datetime.fromisoformat(task["startedTime"] or "")


def waits(backend: Client, name: str) -> None:
    """Return once the job says why it waits."""
    for event in backend.follow_events(name):
        if event["payload"].get("why"):
            break


def estimate(backend: Client, name: str) -> tuple[datetime, Sequence[str], str, str]:
    """When the job starts, what that rests on, and the words for it in English and Chinese."""
    waiting = backend.why(name)["waiting"]
    assert waiting is not None
    assert waiting["startsAt"] is not None
    texts = waiting["texts"]
    at = datetime.fromisoformat(waiting["startsAt"])
    return at, waiting["restsOn"], texts["en"]["estimate"], texts["zh_CN"]["estimate"]


def is_close(one: datetime, other: datetime) -> bool:
    return abs(one - other) < timedelta(minutes=1)


def make_history_longer(data: Path) -> None:
    """Let the three jobs that the stopped backend has noted have run for an hour, which no test can wait for."""
    (database,) = data.glob("*.sqlite")
    with closing(sqlite3.connect(database)) as connection, connection:
        ((noted,),) = connection.execute("SELECT seconds FROM run_times").fetchall()
        assert len(json.loads(noted)) == 3
        connection.execute("UPDATE run_times SET seconds = ?", (json.dumps([HOUR_S] * 3),))


def test_behind_a_job_that_declares_its_run_time(private: Embedded, monkeypatch: pytest.MonkeyPatch) -> None:
    with Client(private.ensure()) as backend:
        endpoint = backend.api.endpoint
        monkeypatch.setenv("PAI_URL", endpoint.url)
        monkeypatch.setenv("PAI_TOKEN", endpoint.token)
        submit(backend, "long", "sleep 600", gpus=2, jupyterPai={"expectedRunTime": "2h30m"})
        since = running_since(backend, "long")
        submit(backend, "next", "true", gpus=3)
        waits(backend, "next")

        at, rests_on, english, chinese = estimate(backend, "next")
        assert is_close(at, since + timedelta(hours=2, minutes=30))
        assert rests_on == ["declared"]
        assert "estimate based on run times that jobs declare." in english
        assert "估计值" in chinese
        assert "声明的运行时间" in chinese

        said = run_pai("why", "next").stdout
        assert f"starts about {at.astimezone():%Y-%m-%d %H:%M}" in said
        assert english in said
        shell = InteractiveShell()
        shell.run_line_magic("load_ext", "jupyter_pai")
        with capture_output():
            cell = shell.run_cell("%pai why next")
        assert english in repr(cell.result)


def test_behind_jobs_of_a_user_with_history_also_after_a_restart(private: Embedded, tmp_path: Path) -> None:
    with Client(private.ensure()) as backend:
        for number in range(3):
            submit(backend, f"train-{number}", "true")
        for number in range(3):
            for _ in backend.follow_events(f"train-{number}"):
                pass
            assert backend.job(f"train-{number}")["state"] == "SUCCEEDED"
    private.stop()
    make_history_longer(tmp_path / "data")
    with Client(private.ensure()) as backend:
        submit(backend, "train-3", "sleep 600")
        submit(backend, "other", "sleep 600", gpus=2)
        since = running_since(backend, "train-3")
        running_since(backend, "other")
        submit(backend, "next", "true")
        waits(backend, "next")

        at, rests_on, english, chinese = estimate(backend, "next")
        assert is_close(at, since + timedelta(seconds=HOUR_S))
        assert rests_on == ["history"]
        assert "estimate based on how long earlier jobs of the same users ran." in english
        assert "以往同类作业" in chinese
