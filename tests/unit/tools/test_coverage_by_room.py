"""Coverage is summed by room, with a room's branches apart from its lines."""

from __future__ import annotations

from typing import Any

import pytest

from tools.coverage_by_room import room_of, rooms, table


def summary(lines: int, run: int, branches: int, taken: int) -> dict[str, Any]:
    counts = {"num_statements": lines, "covered_lines": run, "num_branches": branches, "covered_branches": taken}
    return {"summary": counts}


REPORT = {
    "files": {
        "backend/pai_backend/store/jobs.py": summary(10, 9, 4, 1),
        "backend/pai_backend/store/tasks/rows.py": summary(10, 10, 0, 0),
        "backend/pai_backend/__main__.py": summary(4, 1, 2, 2),
        "jupyter_pai/cli.py": summary(5, 5, 0, 0),
    }
}


@pytest.mark.parametrize(
    ("path", "room"),
    [
        ("backend/pai_backend/store/tasks/rows.py", "pai_backend.store"),
        ("backend/pai_backend/__main__.py", "pai_backend"),
        ("jupyter_pai/fs/direct.py", "jupyter_pai.fs"),
        ("jupyter_pai/cli.py", "jupyter_pai"),
    ],
)
def test_a_file_is_in_the_room_of_its_package(path: str, room: str) -> None:
    assert room_of(path) == room


def test_rooms_are_sums_of_their_files() -> None:
    rows = [line.split() for line in table(rooms(REPORT))]
    assert rows == [
        ["room", "lines", "run", "branches", "taken"],
        ["jupyter_pai", "5", "100.0", "%", "0", "-"],
        ["pai_backend", "4", "25.0", "%", "2", "100.0", "%"],
        ["pai_backend.store", "20", "95.0", "%", "4", "25.0", "%"],
        ["all", "29", "86.2", "%", "6", "50.0", "%"],
    ]
