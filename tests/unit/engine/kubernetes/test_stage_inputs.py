"""The program of the pod that fetches inputs: the task's variables, and the program that all engines use."""

from __future__ import annotations

import gzip
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from pai_backend.engine.bundle import layout
from pai_backend.engine.kubernetes.stage_inputs import environment


def stage(plan: Path) -> subprocess.CompletedProcess[str]:
    """Run it as the pod does, with a variable of the backend's that no task may see."""
    return subprocess.run(
        [sys.executable, "-E", "-P", "-m", "pai_backend.engine.kubernetes.stage_inputs", str(plan)],
        env={**os.environ, "BACKEND_TOKEN": "hush"},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def write_plan(plan: Path, work: Path, source: Path) -> None:
    plan.mkdir()
    work.mkdir()
    (plan / layout.ENVIRON).write_bytes(gzip.compress(b"PAI_JOB_NAME=train\0"))
    wanted = {
        "inputs": [{"uri": str(source), "name": "code", "max_bytes": 1000}],
        "outputs": [],
        "work_dir": str(work),
        "user": "alice",
    }
    (plan / layout.STAGE).write_text(json.dumps(wanted))


def test_inputs_are_put_into_the_working_directory(tmp_path: Path) -> None:
    source = tmp_path / "source"
    source.mkdir()
    (source / "train.py").write_text("print()\n")
    write_plan(tmp_path / "plan", tmp_path / "work", source)
    done = stage(tmp_path / "plan")
    assert (done.returncode, done.stdout) == (0, ""), done.stderr
    assert (tmp_path / "work" / "code" / "train.py").read_text() == "print()\n"


def test_the_last_line_says_what_cannot_be_had(tmp_path: Path) -> None:
    """It becomes the container's last word, and the sentence of the task's exit."""
    write_plan(tmp_path / "plan", tmp_path / "work", tmp_path / "missing")
    done = stage(tmp_path / "plan")
    assert done.returncode == 1
    assert str(tmp_path / "missing") in done.stderr.splitlines()[-1]


@pytest.mark.parametrize(
    "content",
    [None, b"hush", gzip.compress(b"hush"), gzip.compress(b"hush\0")],
    ids=["missing", "plain", "one-word", "no-pair"],
)
def test_a_plan_that_is_none_is_refused_without_quoting_it(tmp_path: Path, content: bytes | None) -> None:
    (tmp_path / "plan").mkdir()
    if content is not None:
        (tmp_path / "plan" / layout.ENVIRON).write_bytes(content)
    done = stage(tmp_path / "plan")
    assert done.returncode == 1
    assert layout.ENVIRON in done.stderr
    assert "hush" not in done.stderr


def test_only_what_finds_programs_is_the_containers_own() -> None:
    own = {"PATH": "/usr/bin", "PAI_JOB_NAME": "other", "AWS_SECRET_ACCESS_KEY": "hush"}
    assert environment(b"PAI_JOB_NAME=train\0EMPTY=\0PATH=/task\0", own) == {
        "PAI_JOB_NAME": "train",
        "EMPTY": "",
        "PATH": "/usr/bin",
    }
