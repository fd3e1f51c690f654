"""Reading the records of a task. Engine and agent do; the shim, which only writes them, does without ``json``."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from pai_backend.engine.local import layout
from pai_backend.engine.local.records import KEPT


def read_record(path: Path) -> dict[str, Any] | None:
    """A record; None when it is absent or, after a crash of the machine, empty."""
    try:
        text = path.read_bytes()
    except (FileNotFoundError, NotADirectoryError):
        return None
    value: object = json.loads(text) if text.strip(b"\0 \n") else None
    return value if isinstance(value, dict) else None


def is_kept(directory: Path) -> bool:
    """Whether the task's command has failed and its SSH server stays, until it is stopped or forgotten."""
    record = read_record(directory / layout.EXIT)
    return record is not None and KEPT in record and not (directory / layout.STOP).exists()
