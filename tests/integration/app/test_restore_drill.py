"""A database that is lost, restored or mistaken for another: what runs goes on, and every job is accounted for."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import httpx
import pytest

from tests.support.backend_process import START_S, Backend, backend, command, until
from tests.support.documents import scm_document
from tests.support.warm_start import run_backend, run_pai

pytestmark = pytest.mark.timeout(600)

JOBS = int(os.environ.get("PAI_DRILL_JOBS", "12"))
"""Jobs that run when the backup is taken."""
NODES = json.dumps([{"name": "carol", "simulated": True, "cpus": 1000, "memory_mb": 1_000_000}])
ROOM = ("--engine-nodes", NODES)


@pytest.fixture
def gate(tmp_path: Path) -> Iterator[Path]:
    """A file whose presence ends the jobs: also after a failure nothing goes on."""
    yield tmp_path / "gate"
    (tmp_path / "gate").touch()


def leave(running: Backend) -> None:
    """End the backend as its user would; its tasks go on."""
    running.process.terminate()
    running.process.wait(START_S)


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    return run_backend(*arguments, timeout=START_S)


def pai(running: Backend, *arguments: str) -> str:
    """What the command line prints."""
    environment = {**os.environ, "PAI_URL": running.url, "PAI_TOKEN": running.token}
    done = run_pai(*arguments, env=environment, timeout=START_S)
    assert done.returncode == 0, done
    return done.stdout


def submit(client: httpx.Client, name: str, gate: Path, ran: Path) -> None:
    """A job that notes that it ran and goes on until its gate is there."""
    role = {"name": "worker", "taskNumber": 1, "cpuNumber": 1, "memoryMB": 128, "shmMB": 64, "gpuNumber": 0}
    waiting = f"echo {name} >> {ran}; until [ -e {gate} ]; do sleep 0.5; done; exit 0"
    document = scm_document(name, gpuType=None, taskRoles=[{**role, "command": waiting}])
    answer = client.post("/api/v2/jobs", content=document)
    assert answer.status_code == 202, answer.text


def states(client: httpx.Client) -> dict[str, str]:
    answer = client.get("/api/v2/jobs", params={"limit": 1000})
    answer.raise_for_status()
    found = answer.json()
    rows = found["data"] if isinstance(found, dict) else found
    return {row["name"]: row["state"] for row in rows}


def all_in(running: Backend, wanted: dict[str, str]) -> None:
    with running.client() as client:
        until(lambda: {name: state for name, state in states(client).items() if name in wanted} == wanted)


def names(first: str, count: int, state: str) -> dict[str, str]:
    return {f"{first}{number}": state for number in range(count)}


def pids(data: Path) -> dict[str, int]:
    """Process of every live task: a task that is killed or run again has another."""
    found = {}
    for path in (data / "engine" / "tasks").glob("*/started.json"):
        with suppress(FileNotFoundError):  # it was forgotten meanwhile
            found[path.parent.name] = int(json.loads(path.read_bytes())["pid"])
    return found


def pids_of(data: Path, count: int) -> dict[str, int]:
    """The same once only so many are left: an ended task is forgotten after its job's end is known."""
    until(lambda: len(pids(data)) == count)
    return pids(data)


def test_a_restored_database_kills_nothing_and_knows_every_job(tmp_path: Path, gate: Path) -> None:
    data, early, ran = tmp_path / "data", tmp_path / "early", tmp_path / "ran"
    with backend(data, ROOM) as running, running.client() as client:
        for number in range(JOBS):
            submit(client, f"old{number}", gate, ran)
        submit(client, "ends0", early, ran)
        all_in(running, {**names("old", JOBS, "RUNNING"), "ends0": "RUNNING"})
        done = run("backup", str(tmp_path / "backup"), "--data-dir", str(data))
        assert (done.returncode, done.stderr) == (0, ""), done
        for number in range(3):
            submit(client, f"new{number}", gate, ran)
        early.touch()
        all_in(running, {**names("new", 3, "RUNNING"), "ends0": "SUCCEEDED"})
        alive = pids_of(data, JOBS + 3)
        leave(running)
    assert pids(data) == alive
    done = run("restore", str(tmp_path / "backup"), "--data-dir", str(data))
    assert (done.returncode, done.stderr) == (0, ""), done
    with backend(data, ROOM) as running, running.client() as client:
        all_in(running, {**names("old", JOBS, "RUNNING"), **names("new", 3, "RUNNING"), "ends0": "SUCCEEDED"})
        assert pids(data) == alive
        assert client.get("/api/v2/cluster/orphans").json() == {"data": []}
        gate.touch()
        all_in(running, {**names("old", JOBS, "SUCCEEDED"), **names("new", 3, "SUCCEEDED")})
    assert sorted(ran.read_text().split()) == sorted([*names("old", JOBS, ""), *names("new", 3, ""), "ends0"]), (
        "each ran once"
    )


def test_a_job_that_waited_at_the_backup_and_ran_since_is_not_run_again(tmp_path: Path, gate: Path) -> None:
    data, early, ran = tmp_path / "data", tmp_path / "early", tmp_path / "ran"
    nodes = json.dumps([{"name": "carol", "simulated": True, "cpus": 1, "memory_mb": 10_000}])
    room = ("--engine-nodes", nodes)
    with backend(data, room) as running, running.client() as client:
        submit(client, "first", early, ran)
        all_in(running, {"first": "RUNNING"})
        submit(client, "waited", early, ran)
        submit(client, "waits", gate, ran)
        all_in(running, {"waited": "WAITING", "waits": "WAITING"})
        assert run("backup", str(tmp_path / "backup"), "--data-dir", str(data)).returncode == 0
        early.touch()
        all_in(running, {"first": "SUCCEEDED", "waited": "SUCCEEDED", "waits": "RUNNING"})
        alive = pids_of(data, 1)
        leave(running)
    assert run("restore", str(tmp_path / "backup"), "--data-dir", str(data)).returncode == 0
    with backend(data, room) as running:
        all_in(running, {"first": "SUCCEEDED", "waits": "RUNNING"})
        assert pids(data) == alive
        gate.touch()
        all_in(running, {"waited": "SUCCEEDED", "waits": "SUCCEEDED"})
    assert sorted(ran.read_text().split()) == ["first", "waited", "waits"], "each ran once"


def test_an_empty_database_over_running_tasks_is_refused_and_adopts_on_request(tmp_path: Path, gate: Path) -> None:
    data, ran = tmp_path / "data", tmp_path / "ran"
    with backend(data, ROOM) as running, running.client() as client:
        submit(client, "mine", gate, ran)
        all_in(running, {"mine": "RUNNING"})
        leave(running)
    alive = pids(data)
    (file,) = data.glob("*.sqlite")
    for path in data.glob("*.sqlite*"):
        path.unlink()
    (data / "secret.key").unlink()  # nothing is left of what the tasks carry
    refused = subprocess.run(command(data, *ROOM), capture_output=True, text=True, timeout=START_S)
    assert refused.returncode == 2, refused
    for told in ("another database", "cluster_name", "data_dir", "pai_backend adopt"):
        assert told in refused.stderr
    assert pids(data) == alive
    assert file.exists()
    deadline = time.monotonic() + START_S
    while (done := run("adopt", "--data-dir", str(data))).returncode and time.monotonic() < deadline:
        assert "was heard" in done.stderr
        time.sleep(1)  # until the heartbeat of the backend that was ended is old
    assert done.returncode == 0, done
    with backend(data, ROOM) as running, running.client() as client:
        until(lambda: len(client.get("/api/v2/cluster/orphans").json()["data"]) == 1)
        (orphan,) = client.get("/api/v2/cluster/orphans").json()["data"]
        assert (orphan["state"], orphan["why"]) == (
            "running",
            "its record is sealed with a key that this database does not have",
        )
        assert pids(data) == alive
        assert "pai_orphans 1.0" in client.get("/metrics").text
        submit(client, "other", gate, ran)
        all_in(running, {"other": "RUNNING"})
        told = pai(running, "cluster", "orphans")
        assert orphan["task"] in told
        assert orphan["why"] in " ".join(told.split())
        assert "was requested" in pai(running, "cluster", "orphans", "--end", orphan["task"])
        until(lambda: client.get("/api/v2/cluster/orphans").json() == {"data": []})
        assert orphan["task"] not in pids(data)
        gate.touch()
        all_in(running, {"other": "SUCCEEDED"})


def test_a_backup_overwrites_nothing_and_a_restore_wants_the_backend_stopped(tmp_path: Path) -> None:
    data, place = tmp_path / "data", tmp_path / "backup"
    with backend(data, ROOM):
        assert run("backup", str(place), "--data-dir", str(data)).returncode == 0
        again = run("backup", str(place), "--data-dir", str(data))
        assert again.returncode == 1
        assert "is not empty" in again.stderr
        running = run("restore", str(place), "--data-dir", str(data))
        assert running.returncode == 1
        assert "is running already" in running.stderr
    (place / "backup.json").unlink()
    cut = run("restore", str(place), "--data-dir", str(data))
    assert cut.returncode == 1
    assert "not a complete backup" in cut.stderr
    shutil.rmtree(place)
