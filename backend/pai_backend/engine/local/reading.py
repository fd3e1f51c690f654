"""Reading the records of a task, and its lock: for engine and agent. The shim only writes, and without ``json``."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from pai_backend.engine.local import layout
from pai_backend.engine.local.layout import KEPT, take_lock
from pai_backend.engine.local.shim import container_folder


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


def has_begun(directory: Path) -> bool:
    """Whether the command of a task runs whose start is recorded: in a container that is a little later."""
    container = directory / layout.CONTAINER
    return not container.is_dir() or (container / container_folder.BEGUN).exists()


def is_preparing(directory: Path) -> bool:
    """Whether what comes before the command has begun: inputs are fetched, or the image."""
    return (directory / layout.STAGING).exists() or _pulling(directory)


def fetching(directory: Path) -> str:
    """What a task waits for before its command runs: base names, as URIs may hold passwords."""
    if _pulling(directory):
        return f"pulling {(read_record(directory / layout.PLAN) or {}).get('image')}"
    wanted = read_record(directory / layout.STAGE) or {}
    names = [str(item["name"]) for item in wanted.get("inputs", ())]
    return f"fetching {', '.join(names)}" if names else "making its output directory"


def _pulling(directory: Path) -> bool:
    return (directory / layout.CONTAINER / container_folder.PULLING).exists()


@contextmanager
def locked(directory: Path) -> Iterator[bool]:
    """The task's lock, if it is free; yields whether it is held."""
    try:
        fd = take_lock(directory / layout.LOCK)
    except FileNotFoundError:  # the directory has vanished
        fd = None
    try:
        yield fd is not None
    finally:
        if fd is not None:
            os.close(fd)
