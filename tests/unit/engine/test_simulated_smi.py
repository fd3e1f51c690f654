"""The simulated nvidia-smi, called as a task's PATH calls it."""

from __future__ import annotations

import subprocess
import sys

import pytest

from pai_backend.engine.local import simulated_smi


def smi(*arguments: str) -> subprocess.CompletedProcess[str]:
    """Run it for two TITANX."""
    command = [sys.executable, "-I", "-S", simulated_smi.__file__, "TITANX", "0,3", "12288", *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)


def test_the_table_names_each_gpu_and_says_simulated() -> None:
    done = smi()
    assert done.returncode == 0
    assert "SIMULATED" in done.stdout.splitlines()[1]
    assert [line.split()[1] for line in done.stdout.splitlines() if "TITANX" in line] == ["0", "3"]
    assert len({len(line) for line in done.stdout.splitlines()}) == 1


def test_the_list_has_a_line_for_each_gpu() -> None:
    lines = smi("-L").stdout.splitlines()
    assert [line.split(":")[0] for line in lines] == ["GPU 0", "GPU 3"]
    assert all("SIMULATED" in line for line in lines)


@pytest.mark.parametrize(
    ("form", "expected"),
    [
        (
            "csv",
            "name, index, memory.total [MiB]\nTITANX (SIMULATED), 0, 12288 MiB\nTITANX (SIMULATED), 3, 12288 MiB\n",
        ),
        ("csv,noheader", "TITANX (SIMULATED), 0, 12288 MiB\nTITANX (SIMULATED), 3, 12288 MiB\n"),
        ("csv,noheader,nounits", "TITANX (SIMULATED), 0, 12288\nTITANX (SIMULATED), 3, 12288\n"),
    ],
)
def test_queries_answer_in_csv(form: str, expected: str) -> None:
    assert smi("--query-gpu=name,index,memory.total", f"--format={form}").stdout == expected


@pytest.mark.parametrize("arguments", [["--query-gpu=ecc.mode", "--format=csv"], ["dmon"], ["--query-gpu=name"]])
def test_what_is_not_simulated_is_refused_in_words(arguments: list[str]) -> None:
    done = smi(*arguments)
    assert (done.returncode, done.stdout) == (2, "")
    assert "SIMULATED" in done.stderr
