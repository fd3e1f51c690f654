"""Tab behind ``pai`` in real shells, before a fake backend."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support import typed_at_shell
from tests.support.lacking import needs
from tests.support.running_fake import RunningFake

TIMEOUT_S = 120

START = {
    "bash": 'PS1="> "; eval "$(pai completion bash)"',
    "zsh": 'PS1="> "; autoload -U compinit; compinit -u; eval "$(pai completion zsh)"',
}
COMMAND = {"bash": ["--norc", "--noprofile", "-i"], "zsh": ["-f", "-i"]}


@pytest.fixture
def environ(fake: RunningFake, tmp_path: Path) -> dict[str, str]:
    """Where ``pai`` is this tree's, asks the fake, and two jobs have names that begin alike."""
    for name in ("train", "other"):
        fake.advance(fake.add_job(name), "RUNNING")
    program = tmp_path / "bin" / "pai"
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\nexec {sys.executable} -m jupyter_pai.cli "$@"\n')
    program.chmod(0o755)
    place = {"PAI_URL": fake.endpoint.url, "PAI_TOKEN": fake.endpoint.token, "HOME": str(tmp_path), "TERM": "dumb"}
    return {**os.environ, **place, "PATH": f"{program.parent}:{os.environ['PATH']}"}


LINES = [
    ("pai subm", "pai submit "),
    ("pai keys rot", "pai keys rotate "),
    ("pai logs x --stream stdo", "pai logs x --stream stdout"),
    ("pai why tra", "pai why train"),
    ("pai release train ma", "pai release train main-0"),
]


@pytest.mark.parametrize("shell", ["bash", "zsh"])
def test_tab_completes_what_is_typed(shell: str, environ: dict[str, str], tmp_path: Path) -> None:
    needs(shell)
    asked = json.dumps({"command": [shell, *COMMAND[shell]], "start": START[shell], "lines": LINES})
    done = subprocess.run(
        [sys.executable, typed_at_shell.__file__],
        input=asked,
        env=environ,
        cwd=tmp_path,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr


def test_fish_completes_what_is_typed(environ: dict[str, str]) -> None:
    needs("fish")
    for typed, completed in LINES:
        program = f"pai completion fish | source; complete -C '{typed}'"
        done = subprocess.run(
            ["fish", "--no-config", "-c", program], env=environ, capture_output=True, text=True, timeout=TIMEOUT_S
        )
        assert completed.split()[-1] in [line.partition("\t")[0].strip() for line in done.stdout.splitlines()], typed


def test_a_backend_that_is_away_is_not_started_and_says_nothing(environ: dict[str, str], tmp_path: Path) -> None:
    away = {**environ, "PAI_URL": "", "PAI_DATA_DIR": str(tmp_path / "none")}
    program = (
        'eval "$(pai completion bash)"; COMP_LINE="pai why t"; COMP_POINT=9; COMP_TYPE=9; _python_argcomplete pai; '
        'printf "%s" "${COMPREPLY[@]}"'
    )
    done = subprocess.run(
        ["bash", "--norc", "-c", program], env=away, capture_output=True, text=True, timeout=TIMEOUT_S, check=True
    )
    assert (done.stdout, done.stderr) == ("", "")
    assert not (tmp_path / "none").exists()
