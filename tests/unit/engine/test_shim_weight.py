"""What a shim may import: it is started for every task and there may be hundreds, so it must stay small.

Its modules must also all be there at its start: the installation may be replaced while the task runs.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from pai_backend.engine.local.shim import boot_file

FEW = 25  # modules of the standard library; 16 with Python 3.11
HEAVY = {"signal", "enum", "json", "re", "typing", "subprocess", "asyncio", "logging", "pathlib", "pydantic"}


def imported(tmp_path: Path) -> set[str]:
    """Modules of a shim on its way to the command, beyond what the interpreter itself has at its start."""
    (tmp_path / "exit.json").touch()
    code = f"""
import sys
before = set(sys.modules)
sys.argv = ["shim", {str(tmp_path)!r}, "1024", "life", "1", "0", ""]
text = open({boot_file()!r}).read()
try:
    exec(text, {{"__name__": "__main__", "__file__": {boot_file()!r}}})
except SystemExit as end:
    assert end.code == 0, end.code
print(*set(sys.modules) - before)
"""
    command = [sys.executable, "-I", "-S", "-c", code]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60)
    return set(done.stdout.split())


def test_a_shim_imports_little(tmp_path: Path) -> None:
    everything = imported(tmp_path)
    ours = {name for name in everything if name.startswith("pai_backend")}
    others = everything - ours
    assert not others & HEAVY
    assert len(others) <= FEW, sorted(others)
    assert ours == {
        "pai_backend",
        "pai_backend.engine",
        "pai_backend.engine.local",
        "pai_backend.engine.local.layout",
        "pai_backend.engine.local.shim",
        "pai_backend.engine.local.shim.account",
        "pai_backend.engine.local.shim.begin",
        "pai_backend.engine.local.shim.capture",
        "pai_backend.engine.local.shim.command",
    }


def test_the_agent_does_without_the_models() -> None:
    """They would double its memory."""
    code = "import sys, pai_backend.engine.local.agent; print('pydantic' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout == "False\n"
