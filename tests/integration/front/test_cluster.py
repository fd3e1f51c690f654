"""``pai cluster`` and ``%pai cluster`` against a real backend, and two files without one."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from IPython.core.interactiveshell import InteractiveShell
from IPython.utils.capture import capture_output

from jupyter_pai.embedded import Embedded
from jupyter_pai.sync import Client
from tests.support.lab_config import ONE_VC
from tests.support.warm_start import run_pai

WAIT_S = 60
HARDWARE = ONE_VC.partition("virtualClusters")[0]
SETTINGS = """
engine:
  grace_s: 1
  nodes:
    - {name: carol, gpus: {type: TITANX, count: 1}}
    - {name: dan, gpus: {type: TITANX, count: 1}}
"""


def quotas(**owned: int) -> str:
    """Two nodes of one kind, so many for each virtual cluster."""
    lines = [f"  {vc}: {{virtualCells: [{{cellType: GPU-NODE, cellNumber: {n}}}]}}" for vc, n in owned.items()]
    return "\n".join([f"{HARDWARE}virtualClusters:", *lines, ""])


@pytest.fixture
def files(tmp_path: Path) -> Path:
    (tmp_path / "old.yaml").write_text(quotas(default=2, vc1=0))
    (tmp_path / "new.yaml").write_text(quotas(default=1, vc1=1))
    (tmp_path / "wrong.yaml").write_text(quotas(default=2, vc1=1))
    return tmp_path


@pytest.fixture
def backend(files: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Client]:
    (files / "backend.yaml").write_text(SETTINGS + f"cluster: {{config: {files / 'old.yaml'}}}\n")
    private = Embedded(files / "data", files / "backend.yaml")
    with Client(private.ensure()) as client:
        monkeypatch.setenv("PAI_URL", client.api.endpoint.url)
        monkeypatch.setenv("PAI_TOKEN", client.api.endpoint.token)
        yield client
        for job in client.jobs(state="WAITING,RUNNING"):
            client.stop(job["uid"])
            for _ in client.follow_events(job["uid"]):
                pass
    private.stop()


def pai(*words: str, given: str = "") -> subprocess.CompletedProcess[str]:
    done = run_pai("cluster", *words, stdin=given)
    assert "Traceback" not in done.stderr
    return done


def run_job(backend: Client, name: str) -> None:
    role = {"name": "main", "taskNumber": 1, "cpuNumber": 1, "memoryMB": 100, "gpuNumber": 1, "command": "sleep 600"}
    backend.submit(json.dumps({"jobName": name, "image": "none", "taskRoles": [role]}).encode())
    for event in backend.follow_events(name):
        if event["payload"].get("state") == "RUNNING":
            return


def test_a_plan_tells_in_words_and_by_its_exit_code_who_is_concerned(backend: Client, files: Path) -> None:
    old, new, wrong = (str(files / f"{name}.yaml") for name in ("old", "new", "wrong"))
    same = pai("plan", new)
    assert (same.returncode, same.stderr) == (0, "")
    assert "No job is affected." in same.stdout
    for name in ("first", "second"):
        run_job(backend, name)
    done = pai("plan", new)
    assert done.returncode == 2
    assert [line.split() for line in done.stdout.splitlines()[:3]] == [
        ["VC", "CELLS", "BEFORE", "AFTER"],
        ["default", "GPUs", "in", "all", "2", "1"],
        ["GPU-NODE", "2", "1", "changes"],
    ]
    (line,) = [line for line in done.stdout.splitlines() if "~second" in line]
    assert line.endswith("keeps running outside its quota: it may be preempted")
    assert "~first" not in done.stdout
    plan = json.loads(pai("plan", new, "--json").stdout)
    assert [each["job"].partition("~")[2] for each in plan["change"]["lost"]] == ["second"]

    faulty = pai("plan", wrong)
    assert faulty.returncode == 1
    assert "3 cells of type GPU-NODE are promised" in faulty.stderr
    assert f"{wrong}:" in faulty.stderr
    assert pai("plan", str(files / "none.yaml")).returncode == 1
    assert json.loads(pai("plan", wrong, "--json").stdout)["valid"] is False
    assert pai("plan", old).returncode == 0


def test_applying_asks_waits_until_it_is_in_force_and_is_remembered(backend: Client, files: Path) -> None:
    new = str(files / "new.yaml")
    unasked = pai("apply", new)
    assert (unasked.returncode, "Give --yes" in unasked.stderr) == (2, True)
    assert pai("show").stdout.startswith("# version 1, in force since")
    run_job(backend, "first")
    done = pai("apply", new, "--yes")
    assert (done.returncode, done.stdout.splitlines()[-1]) == (0, "Version 2 is in force.")
    assert backend.job("first")["state"] == "RUNNING"
    shown = pai("show")
    assert shown.stdout.startswith("# version 2, in force since")
    assert shown.stdout.endswith(quotas(default=1, vc1=1))
    assert json.loads(pai("show", "--version", "1", "--json").stdout)["text"] == quotas(default=2, vc1=0)
    assert "TITANX-NODE-1" in pai("show", "--derived").stdout
    head, newest, oldest = pai("history").stdout.splitlines()
    assert head.split()[:3] == ["VERSION", "STATE", "BY"]
    assert newest.startswith("2        in force")
    assert newest.endswith("none")
    assert oldest.split()[:3] == ["1", "past", "cluster.config"]
    assert pai("apply", str(files / "wrong.yaml"), "--yes").returncode == 1


def test_a_notebook_plans_and_applies(backend: Client, files: Path) -> None:
    shell = InteractiveShell()
    shell.run_line_magic("load_ext", "jupyter_pai")
    shell.user_ns["wanted"] = quotas(default=1, vc1=1)
    for cell, said in (
        ("%pai cluster plan $wanted", "No job is affected."),
        ("%pai cluster apply $wanted --yes", "Version 2 is in force."),
        ("%pai cluster show", "# version 2, in force since"),
        ("%pai cluster history", "in force"),
    ):
        with capture_output() as shown:
            result = shell.run_cell(cell)
        assert result.success, shown.stdout
        assert said in repr(result.result)
    for cell, said in (
        ("%pai cluster apply $wanted", "Give --yes to apply it"),
        (f"%pai cluster plan {files / 'wrong.yaml'}", "are promised"),
    ):
        with capture_output() as shown:
            result = shell.run_cell(cell)
        assert not result.success
        assert said in shown.stdout


def test_two_files_are_compared_without_a_backend(files: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PAI_URL", "http://127.0.0.1:1")
    monkeypatch.setenv("PAI_TOKEN", "unused")
    old, new, wrong = (str(files / f"{name}.yaml") for name in ("old", "new", "wrong"))
    done = pai("plan", old, new)
    assert (done.returncode, done.stderr) == (2, "")
    assert done.stdout == (
        "VC       CELLS        BEFORE  AFTER\n"
        "default  GPUs in all  2       1\n"
        "         GPU-NODE     2       1      changes\n"
        "vc1      GPUs in all  0       1\n"
        "         GPU-NODE     0       1      changes\n"
    )
    assert pai("plan", old, old).returncode == 0
    faulty = pai("plan", old, wrong)
    assert faulty.returncode == 1
    assert f"{wrong}:" in faulty.stderr
    assert "are promised" in faulty.stderr
    assert pai("plan", old, str(files / "none.yaml")).returncode == 1
    assert json.loads(pai("plan", old, new, "--json").stdout)["differs"] is True
    assert pai("plan", new).returncode == 3
