"""``pai upload`` and ``pai fs`` against a real backend and directly: whole, again after a kill, nothing excluded."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from IPython.core.interactiveshell import InteractiveShell
from IPython.utils.capture import capture_output

from tests.support.backend_process import Backend, backend
from tests.support.warm_start import run_pai

OLD = 1_000_000_000  # 2001: long before any upload


class Shell:
    """Runs ``pai`` as a user whose backend this is."""

    def __init__(self, running: Backend, work: Path) -> None:
        self.running, self.work = running, work
        self.user = running.client().get("/api/v2/users/me").json().get("username", "")

    @property
    def env(self) -> dict[str, str]:
        base = {key: os.environ[key] for key in ("PATH", "HOME") if key in os.environ}
        return {**base, "PAI_URL": self.running.url, "PAI_TOKEN": self.running.token}

    def command(self, *words: str) -> list[str]:
        return [sys.executable, "-P", "-m", "jupyter_pai.cli", *words]

    def run(self, *words: str) -> tuple[int, str, str]:
        done = run_pai(*words, cwd=self.work, env=self.env)
        assert "Traceback" not in done.stderr, done.stderr
        return done.returncode, done.stdout, done.stderr

    def ok(self, *words: str) -> str:
        code, out, said = self.run(*words)
        assert code == 0, said
        return out

    def names(self, uri: str) -> list[str]:
        return [entry["name"] for entry in json.loads(self.ok("fs", "ls", uri, "--json"))]


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Backend]:
    with backend(tmp_path_factory.mktemp("site") / "backend") as started:
        yield started


@pytest.fixture
def shell(running: Backend, tmp_path: Path) -> Shell:
    return Shell(running, tmp_path)


@pytest.fixture
def home(shell: Shell) -> str:
    """A directory of this test's own."""
    return f"pai://{shell.user}/{os.urandom(5).hex()}"


@pytest.fixture
def code(tmp_path: Path) -> Path:
    folder = tmp_path / "code"
    for name, text in {
        "train.py": "print('hello')", "pkg/a.py": "a", "pkg/a.pyc": "junk", ".git/config": "g", "data/raw/x": "raw",
    }.items():  # fmt: skip
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
        os.utime(folder / name, (OLD, OLD))
    (folder / "empty").mkdir()
    (folder / "linked.py").symlink_to("train.py")
    (folder / "loop").symlink_to(".")
    return folder


def on_disk(shell: Shell, home: str) -> Path:
    return shell.running.data_dir / "fs" / home.removeprefix("pai://")


def test_a_directory_is_uploaded_without_what_is_excluded(shell: Shell, home: str, code: Path) -> None:
    status, out, said = shell.run("upload", "code", f"{home}/code", "--exclude", "*.pyc", "--exclude", "data/raw")
    assert status == 0, said
    assert out == f"{home}/code: 3 files, 29 B\n"
    assert said == "left out: loop is not a file, but a link\n"
    place = on_disk(shell, home) / "code"
    found = sorted(str(path.relative_to(place)) for path in place.rglob("*"))
    assert found == ["data", "empty", "linked.py", "pkg", "pkg/a.py", "train.py"]
    assert (place / "linked.py").read_text() == "print('hello')"


def test_a_second_upload_sends_only_what_was_changed(shell: Shell, home: str, code: Path) -> None:
    shell.ok("upload", "code", f"{home}/code")
    (code / "train.py").write_text("print('other')")  # as long as before
    assert shell.ok("upload", "code", f"{home}/code") == f"{home}/code: 2 files, 36 B, 3 there already\n"
    assert (on_disk(shell, home) / "code" / "train.py").read_text() == "print('other')"


def test_one_file_goes_to_the_name_or_into_the_directory(shell: Shell, home: str, code: Path) -> None:
    shell.ok("upload", "code/train.py", f"{home}/renamed.py")
    shell.ok("upload", "code/train.py", f"{home}/new/")
    shell.ok("upload", "code/train.py", home)
    assert shell.names(home) == ["new", "renamed.py", "train.py"]
    assert shell.names(f"{home}/new") == ["train.py"]


def test_an_upload_that_was_killed_goes_on_where_it_was(shell: Shell, home: str, tmp_path: Path) -> None:
    data = os.urandom(100_000_000)
    (tmp_path / "big").write_bytes(data)
    process = subprocess.Popen(
        shell.command("upload", "big", f"{home}/big"), cwd=tmp_path, env=shell.env, stderr=subprocess.DEVNULL
    )
    part = on_disk(shell, home) / ".big.part"
    deadline = time.monotonic() + 60
    while not (part.exists() and part.stat().st_size >= 8 * 2**20):
        assert time.monotonic() < deadline
        assert process.poll() is None
        time.sleep(0.005)
    process.send_signal(signal.SIGKILL)
    process.wait(60)
    kept = part.stat().st_size
    assert not (on_disk(shell, home) / "big").exists()
    assert 8 * 2**20 <= kept < len(data)
    assert shell.names(home) == []
    before = _received(shell)
    shell.ok("upload", "big", f"{home}/big")
    assert (on_disk(shell, home) / "big").read_bytes() == data
    assert _received(shell) - before <= len(data) - kept + 9 * 2**20  # a part may have been under way
    assert shell.names(home) == ["big"]


def _received(shell: Shell) -> int:
    """Bytes of files that the backend has written: its own count."""
    text = shell.running.client().get("/metrics").text
    (line,) = [line for line in text.splitlines() if line.startswith("pai_api_file_bytes_total ")]
    return int(float(line.split()[1]))


def test_what_another_version_left_is_not_mixed_in(shell: Shell, home: str, tmp_path: Path) -> None:
    with shell.running.client() as client:
        path = home.removeprefix("pai:/")
        client.put(f"/api/v2/fs{path}/f", content=b"old ", params={"size": 8})
    (tmp_path / "f").write_bytes(b"new text")
    shell.ok("upload", "f", f"{home}/f")
    assert (on_disk(shell, home) / "f").read_bytes() == b"new text"


def test_an_upload_survives_the_backends_restart(shell: Shell, home: str, tmp_path: Path) -> None:
    data = os.urandom(100_000_000)
    (tmp_path / "big").write_bytes(data)
    uploading = subprocess.Popen(
        shell.command("upload", "big", f"{home}/big"), cwd=tmp_path, env=shell.env, stderr=subprocess.PIPE
    )
    part = on_disk(shell, home) / ".big.part"
    deadline = time.monotonic() + 60
    while not (part.exists() and part.stat().st_size >= 8 * 2**20):
        assert time.monotonic() < deadline
        time.sleep(0.005)
    shell.running.children()["api,controller"].kill()
    _, said = uploading.communicate(timeout=90)
    assert uploading.returncode == 0, said
    assert (on_disk(shell, home) / "big").read_bytes() == data


def test_a_directory_does_not_take_the_place_of_a_file(shell: Shell, home: str, code: Path) -> None:
    shell.ok("upload", "code/train.py", f"{home}/code")
    status, _, said = shell.run("upload", "code", f"{home}/code")
    assert (status, f"{home.removeprefix('pai:/')}/code" in said, "a file" in said) == (2, True, True)
    assert (on_disk(shell, home) / "code").read_text() == "print('hello')"


def test_hundreds_of_small_files_arrive(shell: Shell, home: str, tmp_path: Path) -> None:
    for number in range(300):
        (tmp_path / "many" / str(number % 7)).mkdir(parents=True, exist_ok=True)
        (tmp_path / "many" / str(number % 7) / str(number)).write_text(str(number))
    assert "300 files" in shell.ok("upload", "many", f"{home}/many")
    place = on_disk(shell, home) / "many"
    assert {path.name: path.read_text() for path in place.rglob("*") if path.is_file()} == {
        str(number): str(number) for number in range(300)
    }


def test_files_are_listed_printed_copied_and_removed(shell: Shell, home: str, code: Path) -> None:
    shell.ok("upload", "code", f"{home}/code")
    text = shell.ok("fs", "ls", f"{home}/code")
    assert [line.split()[-1] for line in text.splitlines()] == [
        "NAME", "data/", "empty/", "linked.py", "pkg/", "train.py",
    ]  # fmt: skip
    assert shell.ok("fs", "cat", f"{home}/code/train.py") == "print('hello')"
    shell.ok("fs", "cp", f"{home}/code", f"{home}/copy")
    shell.ok("fs", "cp", f"{home}/copy/train.py", "here.py")
    shell.ok("fs", "cp", f"{home}/copy", "back")
    assert (shell.work / "here.py").read_text() == "print('hello')"
    assert (shell.work / "back" / "pkg" / "a.py").read_text() == "a"
    shell.ok("fs", "cp", "here.py", f"{home}/again/")
    assert shell.names(f"{home}/again") == ["here.py"]
    code_, _, said = shell.run("fs", "rm", f"{home}/copy")
    assert (code_, "is not empty" in said) == (2, True)
    shell.ok("fs", "rm", "-r", f"{home}/copy")
    shell.ok("fs", "mkdir", f"{home}/a/b")
    assert shell.names(home) == ["a", "again", "code"]


def test_the_default_file_system_may_be_written_as_documents_write_it(shell: Shell, home: str, code: Path) -> None:
    path = home.removeprefix("pai://")
    shell.ok("upload", "code/train.py", f"$PAI_DEFAULT_FS_URI/{path}/train.py")
    assert shell.ok("fs", "cat", "${PAI_DEFAULT_FS_URI}/" + path + "/train.py") == "print('hello')"


def test_another_storage_is_reached_directly(shell: Shell, code: Path, tmp_path: Path) -> None:
    uri = (tmp_path / "elsewhere").as_uri()
    code_, _, said = shell.run("upload", "code", uri)
    assert (code_, "path of this machine" in said) == (2, True)
    shell.ok("fs", "mkdir", f"{uri}/d")
    assert shell.names(uri) == ["d"]
    code_, _, said = shell.run("fs", "ls", "s3://bucket/x")
    assert (code_, "fsspec[s3]" in said) == (2, True)
    code_, _, said = shell.run("fs", "ls", "hdfs://127.0.0.1:1/x")
    assert (code_, "does not answer" in said) == (3, True)


@pytest.mark.parametrize(
    ("words", "exit_code", "said"),
    [
        (("fs", "cat", "pai://{user}/gone"), 2, "does not exist"),
        (("fs", "cat", "pai://{user}"), 2, "is a directory"),
        (("fs", "ls", "pai://{user}/../x"), 2, "holds . or .."),
        (("fs", "ls", "code"), 2, "path of this machine"),
        (("fs", "cp", "a", "b"), 2, "Both are paths of this machine"),
        (("upload", "gone", "pai://{user}/x"), 2, "cannot be read: No such file"),
        (("upload", "/dev/null", "pai://{user}/x"), 2, "neither a file nor a directory"),
        (("fs", "rm", "pai://"), 2, "cannot be changed"),
        (("fs", "ls", ""), 2, "is empty"),
    ],
)
def test_a_mistake_is_said_with_a_remedy(shell: Shell, words: tuple[str, ...], exit_code: int, said: str) -> None:
    (shell.work / "a").write_text("")
    code_, out, text = shell.run(*(word.format(user=shell.user) for word in words))
    assert (code_, out) == (exit_code, "")
    assert said in text
    assert len(text.splitlines()) >= 2


def test_a_new_users_directory_is_one_for_every_command(tmp_path: Path, code: Path) -> None:
    with backend(tmp_path / "new") as started:
        new = Shell(started, tmp_path)
        home = f"pai://{new.user}"
        status, out, said = new.run("fs", "cat", home)
        assert (status, out, "is a directory" in said) == (2, "", True)
        assert new.names(home) == []
        new.ok("fs", "cp", home, "nothing")
        assert list((tmp_path / "nothing").iterdir()) == []
        new.ok("upload", "code/train.py", home)
        assert new.names(home) == ["train.py"]


def test_a_notebook_uploads(
    shell: Shell, home: str, code: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    for name, value in shell.env.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path / "ipython"))
    notebook = InteractiveShell.instance()
    try:
        notebook.run_line_magic("load_ext", "jupyter_pai")
        with capture_output() as captured:
            notebook.run_cell(f"folder = {str(code)!r}").raise_error()
            notebook.run_cell(f"%pai upload $folder {home}/code --exclude *.pyc").raise_error()
        assert "files" in captured.stdout
    finally:
        InteractiveShell.clear_instance()
    assert "train.py" in shell.names(f"{home}/code")
    assert "a.pyc" not in shell.names(f"{home}/code/pkg")
