"""Each row of the tables in docs/ssh-clients.md names tests, and these exist."""

from __future__ import annotations

import re
from pathlib import Path

from tests.docs.pages import read

TESTS = Path(__file__).parents[1]


def test_every_row_names_tests_that_exist() -> None:
    rows = [line for line in read("docs/ssh-clients.md").splitlines() if line.startswith("| ")]
    named = [re.findall(r"`(test_\w+)`", row) for row in rows if not re.search(r"\| test \|$", row)]
    assert len(named) > 20
    assert all(named), [row for row, names in zip(rows, named, strict=False) if not names]
    sources = (path.read_text(encoding="utf-8") for path in TESTS.rglob("test_*.py"))
    there = {name for source in sources for name in re.findall(r"def (test_\w+)\(", source)}
    assert not {name for names in named for name in names} - there
