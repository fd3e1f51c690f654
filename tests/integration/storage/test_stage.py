"""The staging program as an engine runs it: a process with a file, an exit status and a last line."""

from __future__ import annotations

import json
import os
import signal
import stat
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

LIMIT = 200_000_000


class Stage:
    """A working directory and the program that fills it."""

    def __init__(self, root: Path) -> None:
        self.work, self.file = root / "work", root / "stage.json"
        self.work.mkdir()

    def command(self, *inputs: dict[str, Any], outputs: tuple[str, ...] = ()) -> list[str]:
        self.file.write_text(
            json.dumps({"inputs": inputs, "outputs": outputs, "work_dir": str(self.work), "user": "alice"})
        )
        return [sys.executable, "-P", "-m", "pai_backend.storage.stage", str(self.file)]

    def run(self, *inputs: dict[str, Any], outputs: tuple[str, ...] = ()) -> tuple[int, str]:
        done = subprocess.run(
            self.command(*inputs, outputs=outputs), cwd=self.work, capture_output=True, text=True, timeout=60
        )
        assert done.stdout == ""
        assert "Traceback" not in done.stderr, done.stderr
        return done.returncode, done.stderr

    def refused(self, *inputs: dict[str, Any], outputs: tuple[str, ...] = ()) -> str:
        """The last line of a staging that must fail, which must leave nothing of its own behind."""
        before = sorted(os.listdir(self.work))
        status, said = self.run(*inputs, outputs=outputs)
        assert status == 1, said
        assert sorted(os.listdir(self.work)) == before
        return said.splitlines()[-1]


@pytest.fixture
def staging(tmp_path: Path) -> Stage:
    return Stage(tmp_path)


@pytest.fixture
def code(tmp_path: Path) -> Path:
    folder = tmp_path / "outside" / "code"
    (folder / "pkg" / "deep").mkdir(parents=True)
    (folder / "train.py").write_text("print('hello')")
    (folder / "run.sh").write_text("#!/bin/sh\n")
    (folder / "run.sh").chmod(0o755)
    (folder / "pkg" / "deep" / "data.bin").write_bytes(b"x" * 3_000_000)
    (folder / "empty").mkdir()
    return folder


def given(uri: object, name: str = "code", max_bytes: int = LIMIT) -> dict[str, Any]:
    return {"uri": str(uri), "name": name, "max_bytes": max_bytes}


def test_a_directory_is_copied_read_only_under_its_name(staging: Stage, code: Path) -> None:
    status, said = staging.run(given(code))
    assert status == 0, said
    copy = staging.work / "code"
    assert (copy / "pkg" / "deep" / "data.bin").read_bytes() == b"x" * 3_000_000
    assert (copy / "empty").is_dir()
    modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in [copy, *copy.rglob("*")]}
    assert modes == {
        "code": 0o555, "pkg": 0o555, "deep": 0o555, "empty": 0o555,
        "train.py": 0o444, "run.sh": 0o555, "data.bin": 0o444,
    }  # fmt: skip
    assert "3 files, 3,000,024 bytes" in said


def test_an_empty_directory_and_a_single_file_are_inputs_too(staging: Stage, tmp_path: Path) -> None:
    (tmp_path / "nothing").mkdir()
    (tmp_path / "one.txt").write_text("1")
    status, said = staging.run(given(tmp_path / "nothing", "nothing"), given(tmp_path / "one.txt", "one.txt"))
    assert status == 0, said
    assert os.listdir(staging.work / "nothing") == []
    assert (staging.work / "one.txt").read_text() == "1"


def test_a_uri_of_this_machine_is_a_path(staging: Stage, code: Path) -> None:
    assert staging.run(given(code.as_uri()))[0] == 0
    assert (staging.work / "code" / "train.py").exists()


def test_staging_again_keeps_what_is_complete(staging: Stage, code: Path) -> None:
    assert staging.run(given(code))[0] == 0
    (code / "train.py").write_text("changed since")
    status, said = staging.run(given(code))
    assert (status, "in place already" in said) == (0, True)
    assert (staging.work / "code" / "train.py").read_text() == "print('hello')"


def test_what_a_killed_staging_left_is_done_anew(staging: Stage, code: Path) -> None:
    (code / "zz-fifo").write_text("")  # listed last
    big = code / "a.bin"
    with big.open("wb") as file:
        file.truncate(150_000_000)
    process = subprocess.Popen(staging.command(given(code)), stderr=subprocess.PIPE, text=True)
    assert process.stderr is not None
    try:
        assert "copying" in process.stderr.readline()
    finally:
        process.send_signal(signal.SIGKILL)
        process.wait(60)
        process.stderr.close()
    assert not (staging.work / "code").exists() or len(list((staging.work / "code").iterdir())) == 6
    status, said = staging.run(given(code))
    assert status == 0, said
    assert os.listdir(staging.work) == ["code"]
    assert (staging.work / "code" / "a.bin").stat().st_size == 150_000_000


def test_more_bytes_than_allowed_are_refused_before_anything_is_copied(staging: Stage, code: Path) -> None:
    line = staging.refused(given(code, max_bytes=3_000_000))
    assert str(code) in line
    assert "larger than the 3,000,000 bytes" in line
    assert "dataDir" in line


def test_exactly_as_many_bytes_as_allowed_are_copied(staging: Stage, code: Path) -> None:
    assert staging.run(given(code, max_bytes=3_000_024))[0] == 0


def test_more_files_than_allowed_are_refused(staging: Stage, tmp_path: Path) -> None:
    many = tmp_path / "many"
    many.mkdir()
    for number in range(50_001):
        os.close(os.open(many / str(number), os.O_CREAT | os.O_WRONLY))
    line = staging.refused(given(many, "many"))
    assert "more than 50,000" in line
    assert "archive" in line


def test_a_link_inside_stays_a_link_inside(staging: Stage, code: Path) -> None:
    (code / "pkg" / "latest").symlink_to("deep")
    (code / "absolute").symlink_to(code / "train.py")
    status, said = staging.run(given(code))
    assert status == 0, said
    copy = staging.work / "code"
    assert os.readlink(copy / "absolute") == "train.py"
    assert (copy / "pkg" / "latest" / "data.bin").exists()


@pytest.mark.parametrize("target", ["/etc/hostname", "../../outside.txt", "../..", "/"])
def test_a_link_that_leads_outside_is_refused_by_name(staging: Stage, code: Path, target: str) -> None:
    (code / "pkg" / "sly").symlink_to(target)
    line = staging.refused(given(code))
    assert f"{code}/pkg/sly is a symbolic link that leads outside" in line
    assert "copy" in line


def test_the_directory_itself_may_be_named_through_a_link(staging: Stage, code: Path, tmp_path: Path) -> None:
    (tmp_path / "current").symlink_to(code)
    assert staging.run(given(tmp_path / "current"))[0] == 0
    assert not (staging.work / "code").is_symlink()


def test_a_fifo_is_refused_and_not_waited_for(staging: Stage, code: Path) -> None:
    os.mkfifo(code / "pipe")
    assert f"{code}/pipe is neither a file nor a directory" in staging.refused(given(code))


@pytest.mark.parametrize("name", ["", ".", "..", "a/b", "../x", ".code.part"])
def test_a_name_that_would_leave_the_working_directory_is_refused(staging: Stage, code: Path, name: str) -> None:
    assert "cannot be copied under the name" in staging.refused(given(code), given(code, name))


def test_two_inputs_of_one_name_are_refused(staging: Stage, code: Path) -> None:
    assert "two inputs would be called 'code'" in staging.refused(given(code), given(code))


def test_an_input_that_is_not_there_is_named(staging: Stage, tmp_path: Path) -> None:
    line = staging.refused(given(tmp_path / "gone"))
    assert f"{tmp_path}/gone does not exist" in line
    assert "pai upload" in line


def test_output_directories_are_made_and_kept(staging: Stage, tmp_path: Path) -> None:
    output = tmp_path / "fs" / "Output" / "job"
    assert staging.run(outputs=(str(output),))[0] == 0
    (output / "model.bin").write_text("weights")
    assert staging.run(outputs=(str(output),))[0] == 0
    assert (output / "model.bin").read_text() == "weights"


def test_an_output_that_is_a_file_is_refused(staging: Stage, tmp_path: Path) -> None:
    (tmp_path / "result").write_text("")
    assert f"{tmp_path}/result is a file" in staging.refused(outputs=(str(tmp_path / "result"),))


def test_a_storage_nobody_answers_for_is_refused_without_its_password(staging: Stage) -> None:
    line = staging.refused(given("webhdfs://bob:hunter22@127.0.0.1:1/code"))
    assert "webhdfs://bob:******@127.0.0.1:1/code" in line
    assert "hunter22" not in line


@pytest.mark.parametrize("text", ["", "{", "[]", '{"inputs": 3}', '{"inputs": [{}], "outputs": []}'])
def test_a_file_that_is_none_is_refused(staging: Stage, text: str) -> None:
    command = staging.command()
    staging.file.write_text(text)
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert done.returncode == 1
    assert "is not a staging file" in done.stderr.splitlines()[-1]
