"""A shim of root's starts programs as another account, and says why where it cannot."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.other_accounts import FIRST_UID

ACCOUNT = f"{FIRST_UID}:{FIRST_UID}:{FIRST_UID + 1},{FIRST_UID + 2}"
HEAD = "import os; from pai_backend.engine.local.shim.account import done_as, spawn_as\n"
root_only = pytest.mark.skipif(os.geteuid() != 0, reason="only root can run programs as other accounts")


def said(text: str, *, account: str = ACCOUNT, work: str = "/") -> list[str]:
    """What a shim-like process, which has one thread, prints."""
    code = f"{HEAD}account, work = {account!r}, {work!r}\n{text}"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, cwd="/")
    assert done.returncode == 0, done.stderr
    return done.stdout.split("\n")[:-1]


@root_only
def test_a_program_has_the_account_its_groups_and_no_descriptor_of_the_shims() -> None:
    text = """
secret = os.open("/etc/shadow", os.O_RDONLY)
os.set_inheritable(secret, False)
script = 'id -u; id -G; umask; ls /proc/self/fd | wc -l; cat <&3; readlink /proc/self/fd/0; '
script += 'cut -d " " -f 6 /proc/$$/stat; echo $$'
reader, writer = os.pipe(); os.write(writer, b"told\\n"); os.close(writer)
pid = spawn_as(account, "/bin/sh", ["sh", "-c", script], {"PATH": "/usr/bin:/bin"}, work, {1: 1, 2: 2, 3: reader})
assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
"""
    lines = said(text)
    assert lines[0] == str(FIRST_UID)
    assert set(lines[1].split()) == {str(FIRST_UID), str(FIRST_UID + 1), str(FIRST_UID + 2)}
    assert lines[2] == "0022"
    assert lines[3:6] == ["5", "told", "/dev/null"]  # 0, 1, 2, 3 and that of the listing
    assert lines[6] == lines[7]  # it leads its session


@root_only
@pytest.mark.parametrize(
    ("program", "where", "error"),
    [("/no/such/program", "/", "FileNotFoundError"), ("/bin/sh", "closed", "PermissionError")],
)
def test_a_program_that_cannot_be_started_is_an_error_here(
    tmp_path: Path, program: str, where: str, error: str
) -> None:
    work = "/" if where == "/" else str(tmp_path)
    text = f"""
try:
    spawn_as(account, {program!r}, ["sh"], {{}}, work, {{1: 1, 2: 2}})
except OSError as error:
    print(type(error).__name__)
try:
    os.waitpid(-1, 0)
except ChildProcessError:
    print("nothing is left")
"""
    assert said(text, work=work) == [error, "nothing is left"]


@root_only
def test_directories_are_made_with_the_rights_of_the_account(tmp_path: Path) -> None:
    text = """
print(done_as(account, lambda: os.makedirs(work + "/made")))

print(os.path.exists(work + "/made"), os.geteuid())
"""
    assert said(text, work=str(tmp_path)) == ["False", "False 0"]


def test_an_account_that_is_not_root_cannot_become_another() -> None:
    assert said("os.geteuid() or os.setuid(65534)\nprint(done_as(account, lambda: None))") == ["False"]
