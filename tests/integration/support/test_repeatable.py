"""The same commit draws the same examples: in whatever order, worker, process and with whatever seed of hashes."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from tests.support import repeatable

ROOT = Path(__file__).parents[3]
DRAWS = """
import os

from hypothesis import given, settings, strategies as st

@given(st.integers() | st.floats(allow_nan=False) | st.text() | st.binary(), st.sets(st.integers(0, 99)))
@settings(max_examples=300)
def test_draws(value, numbers):
    with open(os.environ["DRAWN"], "a") as out:
        print(repr(value), sorted(numbers), file=out)
"""


def drawn(folder: Path, hash_seed: str, before: str = "", *options: str) -> list[str]:
    """The examples of a test below a conftest.py like ours; ``before`` is run when its module is imported."""
    folder.mkdir()
    out = folder / "out"
    (folder / "conftest.py").write_text((ROOT / "tests" / "conftest.py").read_text())
    (folder / "test_draws.py").write_text(before + DRAWS)
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *options, str(folder)]
    env = os.environ | {
        "PYTHONHASHSEED": hash_seed,
        "DRAWN": str(out),
        "PYTHONPATH": f"{ROOT}{os.pathsep}{ROOT / 'backend'}",
    }
    env.pop("PYTEST_ADDOPTS", None)
    done = subprocess.run(command, cwd=folder, env=env, capture_output=True, text=True, timeout=100)
    assert done.returncode == 0, done.stdout + done.stderr
    return out.read_text().splitlines()


def test_other_seeds_and_other_modules_leave_the_examples_alone(tmp_path: Path) -> None:
    first = drawn(tmp_path / "first", "1")
    other = drawn(tmp_path / "other", "2", "import pai_backend.protocol, pai_backend.model.spec\n")
    assert first == other
    assert len(set(first)) > 200


def test_random_examples_are_other_ones_each_time(tmp_path: Path) -> None:
    random = "--hypothesis-profile=random"
    assert drawn(tmp_path / "one", "1", "", random) != drawn(tmp_path / "two", "1", "", random)


def test_no_example_is_too_slow_for_a_busy_machine() -> None:
    assert repeatable.current().deadline is None
    assert repeatable.current().derandomize
    assert repeatable.current().database is None
