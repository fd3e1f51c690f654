"""The page on security: its rows are those that are attacked, and the tests and benches that it names are there."""

from __future__ import annotations

import re
from pathlib import Path

from bench.__main__ import BENCHES

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs/security.md").read_text("utf-8")
ATTACKS = ROOT / "tests/attack"
BENCH = "python -m bench "


def _rows() -> list[tuple[int, list[str]]]:
    found = (re.match(r"\| (\d+) \|.*\| ([^|]*) \|$", line) for line in PAGE.splitlines())
    return [(int(row[1]), re.findall(r"`([^`]+)`", row[2])) for row in found if row]


def test_every_test_that_the_page_names_is_there() -> None:
    assert len(_rows()) > 30
    for row, named in _rows():
        tests = [name for name in named if not name.startswith(BENCH)]
        paths = [ROOT / name if "/" in name else ATTACKS / name for name in tests]
        assert paths, f"row {row} names no test"
        assert [path for path in paths if not path.is_file()] == []
        assert {name.removeprefix(BENCH) for name in named if name not in tests} <= BENCHES.keys()


def test_the_rows_that_are_attacked_are_those_of_the_page() -> None:
    attacked = {
        (int(number), path.name)
        for path in ATTACKS.glob("test_*.py")
        for number in re.findall(r"pytest\.mark\.attack\(\s*(\d+),", path.read_text("utf-8"))
    }
    told = {(row, name) for row, named in _rows() for name in named if "/" not in name and not name.startswith(BENCH)}
    assert told == attacked
