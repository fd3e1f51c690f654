"""What an environment of a task is made of, as files: which commands are taken over, and when that is done again."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from pai_backend.engine.local.interpreter import Interpreter
from pai_backend.engine.local.overlay import shared_part


@pytest.fixture
def below(tmp_path: Path) -> Interpreter:
    """A Python whose commands a test writes."""
    folder = tmp_path / "env bin"
    folder.mkdir()
    return Interpreter(f"{folder}/python", "/usr/bin/python3", "3.11", "3.11.2", "/env", (), (str(folder),), True)


def write(below: Interpreter, name: str, text: str, mode: int = 0o755) -> None:
    """Put a command into its folder."""
    path = Path(below.scripts[0], name)
    path.write_text(text)
    path.chmod(mode)


def commands(below: Interpreter, root: Path) -> dict[str, str]:
    """The commands that tasks share, but for pip's."""
    folder = shared_part(below, root) / "commands"
    return {path.name: path.read_text() for path in folder.iterdir() if not path.name.startswith("pip")}


@pytest.mark.parametrize(
    "head",
    [
        "#!{folder}/python\n",
        "#!{folder}/python3.11\n",
        "#! {folder}/python3\n",
        "#!/bin/sh\n'''exec' \"{folder}/python\" \"$0\" \"$@\"\n' '''\n",
        "#!/bin/sh\n'''exec' {escaped}/python3 \"$0\" \"$@\"\n' '''\n",
    ],
)
def test_a_command_that_the_python_below_runs_is_taken_over(below: Interpreter, tmp_path: Path, head: str) -> None:
    folder = below.scripts[0]
    write(below, "tool", head.format(folder=folder, escaped=folder.replace(" ", "\\ ")) + "print(1)\nprint(2)\n")
    (text,) = commands(below, tmp_path).values()
    assert text.splitlines()[3:] == ["print(1)", "print(2)"]


@pytest.mark.parametrize(
    ("text", "mode"),
    [
        ("#!/usr/bin/python3\nprint(1)\n", 0o755),  # another Python's
        ("#!{folder}/python -s\nprint(1)\n", 0o755),  # what asks for options is no command of pip's
        ("#!/bin/sh\nexec {folder}/python\n", 0o755),
        ("\x7fELF", 0o755),
        ("#!{folder}/python\nprint(1)\n", 0o644),
    ],
)
def test_other_commands_are_left_alone(below: Interpreter, tmp_path: Path, text: str, mode: int) -> None:
    write(below, "tool", text.replace("{folder}", below.scripts[0]), mode)
    assert commands(below, tmp_path) == {}


def test_the_shared_part_is_made_once_and_again_when_commands_have_changed(below: Interpreter, tmp_path: Path) -> None:
    first = shared_part(below, tmp_path)
    assert shared_part(below, tmp_path) == first
    write(below, "tool", f"#!{below.executable}\n")
    os.utime(below.scripts[0], ns=(1, 1))  # whatever the clock of the file system distinguishes
    assert shared_part(below, tmp_path) != first
    assert list(first.parent.glob(".*")) == []


def test_commands_of_bytes_that_are_no_text_are_kept_as_they_are(below: Interpreter, tmp_path: Path) -> None:
    path = Path(below.scripts[0], "tool")
    path.write_bytes(f"#!{below.executable}\nprint(".encode() + b"'\xff')\n")
    path.chmod(0o755)
    copy = shared_part(below, tmp_path) / "commands" / "tool"
    assert copy.read_bytes().endswith(b"print('\xff')\n")
