"""Small JSON files by which the processes of one backend and its users find each other.

Written whole or not at all, for the owner only, and removed at a clean end by the process that wrote them.
A file left by a killed process is harmless: readers check that the address answers. Standard library only.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path


def write_json(path: Path, values: Mapping[str, object]) -> None:
    """Replace the file in one step."""
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    draft = path.with_name(f".{path.name}.{os.getpid()}")
    descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        json.dump(values, file)
        file.write("\n")
    os.replace(draft, path)


def read_json(path: Path) -> dict[str, object] | None:
    """What the file says, or None when it is absent or not (yet) a JSON object."""
    try:
        values = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    return values if isinstance(values, dict) else None


@contextmanager
def runtime_file(path: Path, values: Mapping[str, object]) -> Iterator[None]:
    """Keep the file in place while the block runs; afterwards remove it if it is still ours."""
    write_json(path, values)
    try:
        yield
    finally:
        current = read_json(path)
        if current is not None and current.get("pid") == values.get("pid"):
            path.unlink(missing_ok=True)
