"""The script that has code-server run behind a task's port, run by a shell."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from jupyter_pai.vscode_server import kept_script

LIMIT_S = 60.0
SERVER = "#!/bin/sh\necho started >>{starts}\necho 'HTTP server listening on 1'\nexec sleep 60\n"


@pytest.mark.skipif(sys.platform != "linux", reason="zombies are told from others by /proc")
def test_a_server_that_was_killed_is_started_again_before_its_parent_has_waited_for_it(tmp_path: Path) -> None:
    program, starts = tmp_path / "code-server", tmp_path / "starts"
    program.write_text(SERVER.format(starts=starts))
    program.chmod(0o755)
    environ = {**os.environ, "TMPDIR": str(tmp_path), "PAI_TASK_UID": "u", "PAI_CONTAINER_HOST_PORT": "1"}
    script = kept_script(str(program), str(tmp_path))
    kept = tmp_path / "pai-code-u" / "pid"

    def passwords(times: int) -> list[bytes]:
        return [subprocess.check_output(["sh", "-c", script], env=environ, timeout=LIMIT_S) for _ in range(times)]

    def kill() -> None:
        os.kill(int(kept.read_text().split()[0]), 9)

    before = passwords(2)
    kill()
    killed = subprocess.Popen(["true"])
    try:
        os.waitid(os.P_PID, killed.pid, os.WEXITED | os.WNOWAIT)  # a zombie until the end of this test
        kept.write_text(str(killed.pid))
        after = passwords(2)
    finally:
        killed.wait()
    kill()
    assert (before[0], after[0]) == (before[1], after[1])
    assert before[0] != after[0]
    assert starts.read_text() == "started\n" * 2


@pytest.mark.skipif(sys.platform != "linux", reason="processes are told apart by /proc")
def test_another_program_with_the_number_of_a_server_that_ended_is_not_taken_for_it(tmp_path: Path) -> None:
    program, kept = tmp_path / "code-server", tmp_path / "pai-code-u"
    program.write_text("#!/bin/sh\necho no room\nexit 3\n")
    program.chmod(0o755)
    kept.mkdir()
    (kept / "pid").write_text(f"{os.getpid()} 1\n")  # this process started later than that
    (kept / "log").write_text("HTTP server listening on 1\n")
    (kept / "config.yaml").write_text("password: of the server that ended\n")
    environ = {**os.environ, "TMPDIR": str(tmp_path), "PAI_TASK_UID": "u", "PAI_CONTAINER_HOST_PORT": "1"}
    command = ["sh", "-c", kept_script(str(program), str(tmp_path))]
    ran = subprocess.run(command, env=environ, capture_output=True, text=True, timeout=LIMIT_S)
    assert (ran.returncode, ran.stdout, ran.stderr) == (1, "", "no room\n")


def test_the_log_of_a_server_that_ended_does_not_speak_for_the_next(tmp_path: Path) -> None:
    program, kept, old = tmp_path / "broken", tmp_path / "pai-code-u", tmp_path / "old"
    program.write_text("#!/bin/sh\necho no such option\nexit 3\n")
    program.chmod(0o755)
    kept.mkdir()
    (kept / "pid").write_text("no number")
    (kept / "log").write_text("HTTP server listening on 1\n")
    old.hardlink_to(kept / "log")
    environ = {**os.environ, "TMPDIR": str(tmp_path), "PAI_TASK_UID": "u", "PAI_CONTAINER_HOST_PORT": "1"}
    command = ["sh", "-c", kept_script(str(program), str(tmp_path))]
    ran = subprocess.run(command, env=environ, capture_output=True, text=True, timeout=LIMIT_S)
    assert (ran.returncode, ran.stdout, ran.stderr) == (1, "", "no such option\n")
    # Where the child empties the old file, the parent may read it before: 6 of 1,800 runs under load did.
    assert old.read_text() == "HTTP server listening on 1\n"
