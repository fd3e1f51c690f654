"""The SSH barrier's lines in a real bash, with an ``ssh`` that answers as the test says."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from pai_backend.protocol.plugin_shell import ssh_barrier

SSH = """#!/bin/sh
echo "$@" >> "$SAID"
case "$*" in *gone-0*) exit 255;; *touch*) PAI_TASK_UID=theirs sh -c "$6";; esac
"""


def run(path: Path, roles: list[str], timeout_s: int) -> subprocess.CompletedProcess[str]:
    (path / "ssh").write_text(SSH)
    (path / "ssh").chmod(0o755)
    own = {"PAI_TASK_UID": "mine", "PAI_CURRENT_TASK_ROLE_NAME": "me", "PAI_CURRENT_TASK_ROLE_CURRENT_TASK_INDEX": "0"}
    counts = {f"PAI_TASK_ROLE_TASK_COUNT_{role}": "1" for role in roles}
    env = {"PATH": f"{path}:{os.environ['PATH']}", "TMPDIR": str(path), "SAID": str(path / "said"), **own, **counts}
    script = f"set -o errexit -o nounset -o pipefail\n{ssh_barrier(roles, timeout_s)}\necho past\n"
    return subprocess.run(["bash", "-c", script], env=env, capture_output=True, text=True, timeout=60)


def test_a_task_that_has_reached_all_tells_each_of_them(tmp_path: Path) -> None:
    done = run(tmp_path, ["me", "other"], 60)
    assert (done.returncode, done.stdout) == (0, "past\n"), done.stderr
    assert (tmp_path / "pai-barrier-theirs-me-0").exists()
    words = [line.split()[4:6] for line in (tmp_path / "said").read_text().splitlines()]
    assert words == [["me-0", "true"], ["other-0", "true"], ["me-0", "touch"], ["other-0", "touch"]]


def test_a_peer_that_has_told_so_and_ended_is_waited_for_no_more(tmp_path: Path) -> None:
    (tmp_path / "pai-barrier-mine-gone-0").touch()
    done = run(tmp_path, ["gone", "me"], 60)
    assert (done.returncode, done.stdout) == (0, "past\n"), done.stderr
    assert not (tmp_path / "pai-barrier-mine-gone-0").exists()


@pytest.mark.parametrize("roles", [["gone"], ["me", "gone"]])
def test_a_peer_that_never_answers_is_named_at_the_time_limit(tmp_path: Path, roles: list[str]) -> None:
    done = run(tmp_path, roles, 0)
    assert (done.returncode, done.stdout) == (249, "")
    assert done.stderr == "sshbarrier: gone-0 did not answer within 0 s\n"
