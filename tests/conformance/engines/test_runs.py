"""Commands, notebooks and cells as jobs, by the user's own programs."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import nbformat

from tests.conformance.engines.room import JOB_S, Room

CELLS = """\
from jupyter_pai import load_ipython_extension
from IPython.core.interactiveshell import InteractiveShell

shell = InteractiveShell.instance()
load_ipython_extension(shell)
shell.user_ns["data"] = [1, 2, 3]
shell.run_cell_magic("pai", "run --send data --fetch total", "print('summing')\\ntotal = sum(data)")
print("total is", shell.user_ns["total"])
"""


def test_commands_notebooks_and_cells_run_without_a_document(room: Room, tmp_path: Path) -> None:
    env = {
        **os.environ,
        "PAI_URL": room.backend.url,
        "PAI_TOKEN": room.backend.token,
        "PAI_IMAGE": room.image,
        "XDG_CACHE_HOME": str(tmp_path / "cache"),
        "IPYTHONDIR": str(tmp_path / "ipython"),
    }

    def run(*words: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-P", *words],
            env=env,
            cwd=tmp_path,
            capture_output=True,
            text=True,
            timeout=2 * JOB_S,
            check=False,
        )

    pai = ("-m", "jupyter_pai.cli")
    (tmp_path / "code").mkdir()
    (tmp_path / "code" / "answer.py").write_text("print('the answer'); raise SystemExit(7)")
    done = run(*pai, "run", "--memory", "100M", "--code", "code", "--", "python3", "answer.py")
    assert (done.returncode, done.stdout.splitlines()[-1:]) == (7, ["the answer"]), done.stderr

    cells = [nbformat.v4.new_code_cell(each) for each in ("lr = 1", "print('rate', lr)", "1 / 0")]
    cells[0].metadata["tags"] = ["parameters"]
    nbformat.write(nbformat.v4.new_notebook(cells=cells), tmp_path / "train.ipynb")
    done = run(*pai, "run-notebook", "train.ipynb", "--memory", "200M", "-p", "lr=0.5")
    assert "Cell 4 of 4: ZeroDivisionError: division by zero" in done.stderr
    ran = json.loads((tmp_path / "train.out.ipynb").read_text())
    assert ran["cells"][2]["outputs"][0]["text"] == "rate 0.5\n"
    assert (tmp_path / "train.out.html").is_file()

    done = run("-c", CELLS)
    assert "summing\n" in done.stdout, done.stderr
    assert done.stdout.endswith("total is 6\n")
