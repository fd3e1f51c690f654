"""Print the coverage of lines and branches, room by room, from what ``coverage json`` wrote: a picture, no target."""

from __future__ import annotations

import json
import sys
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

SHELLS = ("backend/pai_backend/", "jupyter_pai/")


@dataclass
class Room:
    """What was counted in one room."""

    lines: int = 0
    lines_run: int = 0
    branches: int = 0
    branches_taken: int = 0

    def add(self, summary: Mapping[str, Any]) -> None:
        """Add the summary of a file."""
        self.lines += summary["num_statements"]
        self.lines_run += summary["covered_lines"]
        self.branches += summary["num_branches"]
        self.branches_taken += summary["covered_branches"]


def room_of(path: str) -> str:
    """``pai_backend.store`` for a file of that room; the package itself for its loose files."""
    [shell] = [each for each in SHELLS if path.startswith(each)]
    first, *rest = path.removeprefix(shell).split("/")
    package = shell.strip("/").rpartition("/")[2]
    return f"{package}.{first}" if rest else package


def rooms(report: Mapping[str, Any]) -> dict[str, Room]:
    """All rooms by name, sorted, of a report in JSON."""
    found: defaultdict[str, Room] = defaultdict(Room)
    for path, file in report["files"].items():
        found[room_of(path)].add(file["summary"])
    return dict(sorted(found.items()))


def table(found: Mapping[str, Room]) -> Iterator[str]:
    """The lines of the table, with a sum."""
    total = Room()
    yield f"{'room':<28}{'lines':>8}{'run':>8}{'branches':>10}{'taken':>8}"
    for name, room in found.items():
        yield _row(name, room)
        for key, value in vars(room).items():
            setattr(total, key, getattr(total, key) + value)
    yield _row("all", total)


def _row(name: str, room: Room) -> str:
    lines, branches = _share(room.lines_run, room.lines), _share(room.branches_taken, room.branches)
    return f"{name:<28}{room.lines:>8}{lines:>8}{room.branches:>10}{branches:>8}"


def _share(part: int, whole: int) -> str:
    return f"{100 * part / whole:.1f} %" if whole else "-"


if __name__ == "__main__":
    print("\n".join(table(rooms(json.loads(Path(sys.argv[1]).read_text())))))
