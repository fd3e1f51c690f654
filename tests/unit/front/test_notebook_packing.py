"""Notebooks before they are sent: what is one, its parameters, and which variables can go along."""

from __future__ import annotations

import json
import pickle
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from jupyter_pai.errors import ClientError
from jupyter_pai.notebooks import execute, packing


def notebook(*sources: str, **metadata: Any) -> dict[str, Any]:
    return {**packing.cell_notebook(""), "metadata": metadata, "cells": [packing.code_cell(each) for each in sources]}


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("{", "it is not JSON"),
        ("[]", "not a notebook of format 4"),
        ('{"nbformat": 3, "worksheets": []}', "not a notebook of format 4"),
        ('{"nbformat": 4, "cells": [{"cell_type": "code", "source": 5}]}', "not a notebook of format 4"),
        ('{"nbformat": 4, "cells": [], "metadata": {"kernelspec": {"language": "R"}}}', "a notebook of R"),
        ('{"nbformat": 4, "cells": [], "metadata": {"language_info": {"name": "julia"}}}', "a notebook of julia"),
    ],
)
def test_what_is_no_notebook_of_python_is_refused(tmp_path: Path, text: str, reason: str) -> None:
    file = tmp_path / "x.ipynb"
    file.write_text(text)
    with pytest.raises(ClientError, match=reason):
        packing.read_notebook(file)


def test_parameters_stand_behind_the_cell_that_is_tagged_and_replace_earlier_ones() -> None:
    given = notebook("import os", "lr = 1", "print(lr)")
    given["cells"][1]["metadata"]["tags"] = ["parameters"]
    once = packing.with_parameters(given, {"lr": 0.1, "name": 'a"b'})
    assert once["cells"][2]["source"] == "# Parameters\nlr = 0.1\nname = 'a\"b'"
    twice = packing.with_parameters(once, {"lr": 2})
    assert [cell["source"] for cell in twice["cells"]] == ["import os", "lr = 1", "# Parameters\nlr = 2", "print(lr)"]
    assert packing.with_parameters(notebook("a"), {"x": 1})["cells"][0]["source"] == "# Parameters\nx = 1"


@pytest.mark.parametrize(
    ("text", "value"), [("lr=0.1", 0.1), ("a=[1, 2]", [1, 2]), ("a=True", True), ("a=none", "none"), ("a=", "")]
)
def test_values_of_parameters(text: str, value: object) -> None:
    assert packing.parameter(text)[1] == value


@pytest.mark.parametrize("text", ["lr", "1x=3", "import os; x=1"])
def test_what_is_no_parameter(text: str) -> None:
    with pytest.raises(ValueError, match="is not NAME=VALUE"):
        packing.parameter(text)


def test_a_variable_that_is_too_large_or_cannot_be_pickled_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(packing, "MOST_SENT_BYTES", 1000)
    half = b"x" * 600
    with pytest.raises(ClientError, match=r"b is larger than 3\d\d bytes"):
        packing.files(notebook(), "x", send={"a": half, "b": half})
    with pytest.raises(ClientError, match="lock cannot be sent: TypeError") as refused:
        packing.files(notebook(), "x", send={"lock": __import__("threading").Lock()})
    assert "pai upload" in refused.value.hint


class Played:
    """A task's directory, and the program in it without any package, as in an image of bare Python."""

    def __init__(self, work: Path) -> None:
        self.work, self.out = work, work / "out"
        self.out.mkdir()

    def run(self, given: dict[str, Any], **more: Any) -> tuple[int, str]:
        for name, data in packing.files(given, "nb.ipynb", **more).items():
            path = self.work / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data)
        command = [sys.executable, "-I", "-S", str(self.work / ".pai/execute.py"), str(self.work / ".pai/run.json")]
        done = subprocess.run(
            command, cwd=self.work, env={"PAI_OUTPUT_DIR": str(self.out)}, capture_output=True, text=True, timeout=60
        )
        return done.returncode, done.stdout + done.stderr

    def outputs(self) -> list[list[dict[str, Any]]]:
        cells = json.loads((self.out / "nb.ipynb").read_text())["cells"]
        return [cell["outputs"] for cell in cells]

    def result(self) -> dict[str, Any]:
        return dict(json.loads((self.out / "result.json").read_text()))


@pytest.fixture
def played(tmp_path: Path) -> Played:
    return Played(tmp_path)


def test_bare_python_runs_cells_and_names_the_one_that_fails(played: Played) -> None:
    (played.work / "mine.py").write_text("x = 5")
    status, said = played.run(notebook("import mine\nprint('a')\nprint('b')\nmine.x", " ", "1/0", "print('never')"))
    assert status == 1
    assert "a\nb\n5\n" in said
    first, _, failed, never = played.outputs()
    assert first[0] == {"output_type": "stream", "name": "stdout", "text": "a\nb\n"}
    assert first[1]["data"] == {"text/plain": "5"}
    assert (failed[0]["ename"], never) == ("ZeroDivisionError", [])
    assert played.result()["failed"] == {"cell": 2, "error": "ZeroDivisionError: division by zero"}


def test_a_process_that_dies_leaves_the_cell_that_it_died_in(played: Played) -> None:
    status, _ = played.run(notebook("print('fine')", "import os\nos._exit(9)"))
    assert status == 9
    assert played.result()["failed"] == {"cell": 2, "error": "it did not end"}
    assert played.outputs()[0][0]["text"] == "fine\n"


def test_magics_without_ipython_are_explained(played: Played) -> None:
    status, said = played.run(notebook("%matplotlib inline"))
    assert status == 1
    assert "This image has no IPython" in said


def test_variables_go_there_and_come_back_within_their_bound(played: Played, monkeypatch: pytest.MonkeyPatch) -> None:
    assert played.run(notebook("y = {'x': x + 1}"), send={"x": 1}, fetch=["y"])[0] == 0
    assert pickle.loads((played.out / "y.pickle").read_bytes()) == {"x": 2}
    assert played.result()["fetched"] == {"y": True}
    status, said = played.run(notebook("z = 1"), fetch=["y"])
    assert (status, "There is no variable y to fetch." in said) == (1, True)
    monkeypatch.setattr(packing, "MOST_FETCHED_BYTES", 10)
    status, said = played.run(notebook("y = b'x' * 100"), fetch=["y"])
    assert (status, "y is larger than 10 bytes. Write it to a file in $PAI_OUTPUT_DIR" in said) == (1, True)


def test_a_function_of_another_python_is_refused_by_name(played: Played, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(execute, "pickled", lambda value, most: (b"", False))
    monkeypatch.setattr(execute, "version", lambda: "3.1")
    status, said = played.run(notebook("f()"), send={"f": 1})
    assert status == 1
    assert "f holds functions or classes of the notebook, which were written by Python 3.1" in said
