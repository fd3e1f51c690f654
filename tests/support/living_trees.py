"""Looking through a directory while others still write and remove below it."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path


def paths_below(root: Path) -> Iterator[Path]:
    """Files, directories and links below the root; what goes away meanwhile is left out.

    ``Path.rglob`` raises FileNotFoundError when a directory that it has listed is removed before it enters it.
    """
    for directory, directories, files in os.walk(root):
        yield from (Path(directory, name) for name in (*directories, *files))


def contents_below(root: Path) -> Iterator[tuple[Path, bytes]]:
    """Each file below the root with its content; what goes away meanwhile is left out."""
    for path in paths_below(root):
        with suppress(FileNotFoundError):
            if path.is_file():
                yield path, path.read_bytes()


def stdout_of(engine: Path, task: str) -> str:
    """What tasks of that uid (or pattern) wrote, as their engine keeps it; "" for nothing.

    The directory of a task goes from ``tasks`` to ``done`` and never back, so the places are looked at in that order.
    """
    for place in ("tasks", "done"):
        with suppress(FileNotFoundError):
            if logs := sorted((engine / place).glob(f"{task}/stdout-*.log")):
                return "".join(log.read_text(encoding="utf-8") for log in logs)
    return ""
