"""What a Python of a task runs at its start when debuggers may attach."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from pai_backend.engine import debugger

IMAGE_S = "print('the sitecustomize of the image')\n"
LACKING = "raise ImportError('no module')\n"


def ran(tmp_path: Path, start: bytes = debugger.program(), **image: str) -> tuple[str, str]:
    """Standard output and error of a program in a task whose image has these modules."""
    own, others = tmp_path / "own", tmp_path / "image"
    for folder in (own, others):
        folder.mkdir()
    (own / debugger.PROGRAM).write_bytes(start)
    for name, text in image.items():
        (others / f"{name}.py").write_text(text)
    env = debugger.debugger_variables({"PYTHONPATH": str(others)}, str(own), str(tmp_path / "debugger"))
    command = [sys.executable, "-c", "print('the program')"]
    done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=120, check=True)
    return done.stdout, done.stderr


def test_without_debugpy_the_log_says_so_and_the_program_and_the_images_own_start_run(tmp_path: Path) -> None:
    out, err = ran(tmp_path, sitecustomize=IMAGE_S, debugpy=LACKING)
    assert out == "the sitecustomize of the image\nthe program\n"
    assert f"{sys.executable} has no debugpy. Run `pip install debugpy`" in err


def test_a_release_of_debugpy_that_listens_by_other_means_does_not_listen(tmp_path: Path) -> None:
    out, err = ran(tmp_path, debugger.program().replace(b"update(serve=serve", b"update(no_such=serve"))
    assert out == "the program\n"
    assert "debuggers cannot attach to process" in err
    assert not (tmp_path / "debugger" / "socket").exists()
