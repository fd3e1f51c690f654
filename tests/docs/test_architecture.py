"""The map of the code shows what is there: every room, and modules that exist."""

from __future__ import annotations

import re

from tests.docs.pages import ROOT, read

PAGE = read("docs/architecture.md")
BACKEND = ROOT / "backend" / "pai_backend"
ROWS = re.findall(r"^\| `(\w+)` \| .* \| (.*) \|$", PAGE, re.MULTILINE)
"""Rooms, and where to start reading in each."""


def test_the_table_has_a_row_for_every_room() -> None:
    rooms = sorted(entry.parent.name for entry in BACKEND.glob("*/__init__.py"))
    assert sorted(room for room, _ in ROWS) == rooms


def test_where_to_start_reading_exists() -> None:
    named = [BACKEND / room / name for room, start in ROWS for name in re.findall(r"`([^`]+)`", start)]
    assert named
    assert [str(path) for path in named if not path.exists()] == []


def test_modules_in_running_text_exist() -> None:
    table = "\n".join(line for line in PAGE.splitlines() if line.startswith("|"))
    named = set(re.findall(r"`(\w+/[\w/]+\.py)`", PAGE)) - set(re.findall(r"`([^`]+)`", table))
    assert "store/sealing.py" in named
    assert [name for name in sorted(named) if not ((BACKEND / name).exists() or (ROOT / name).exists())] == []
