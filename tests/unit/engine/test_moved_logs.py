"""Logs of a task whose directory is moved, as it is when the task is forgotten, while they are read."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pai_backend.engine.base import LogStream
from pai_backend.engine.local import layout
from pai_backend.engine.local.engine import LocalEngine
from pai_backend.engine.local.nodes import simulated_node
from pai_backend.engine.local.shim.capture import Capture
from pai_backend.model.ids import JobUid, TaskUid, task_uid

UID = task_uid(JobUid("j0123456789abcdef"), 0, 0, 0)


@pytest.fixture
def engine(tmp_path: Path) -> LocalEngine:
    made = LocalEngine(tmp_path, [simulated_node("carol", "TITANX", 1, cpus=1, memory_mb=100)])
    for folder in (layout.TASKS, layout.DONE):
        (tmp_path / folder).mkdir(exist_ok=True)
    directory = tmp_path / layout.TASKS / UID
    directory.mkdir()
    capture = Capture(str(directory), 4)
    for data in (b"abcd", b"efgh", b"ij"):
        capture.add("stdout", data)
    capture.close()
    (directory / layout.EXIT).write_text("{}")
    return made


def move_at(call: int, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the task's directory be moved just before the call of that number that looks into it."""
    left = call

    def counted(function: Callable[..., Any]) -> Callable[..., Any]:
        def instead(path: Any, *args: Any, **options: Any) -> Any:
            nonlocal left
            if UID in os.fspath(path):
                left -= 1
                if left == 0:
                    os.rename(root / layout.TASKS / UID, root / layout.DONE / UID)
            return function(path, *args, **options)

        return instead

    for name in ("listdir", "stat", "open"):
        monkeypatch.setattr(os, name, counted(getattr(os, name)))


async def whole(engine: LocalEngine, uid: TaskUid, offset: int) -> bytes:
    return b"".join([chunk async for chunk in engine.logs(uid, LogStream.ALL, offset, False)])


@pytest.mark.asyncio
@pytest.mark.parametrize("offset", [0, -3, -99])
@pytest.mark.parametrize("call", range(1, 16))
async def test_a_log_is_whole_at_whatever_instant_its_directory_is_moved(
    engine: LocalEngine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: int, offset: int
) -> None:
    move_at(call, tmp_path, monkeypatch)
    assert await whole(engine, UID, offset) == (b"hij" if offset == -3 else b"efghij")


@pytest.mark.asyncio
@pytest.mark.parametrize("call", range(1, 12))
async def test_its_extent_is_known_at_whatever_instant_it_is_moved(
    engine: LocalEngine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: int
) -> None:
    move_at(call, tmp_path, monkeypatch)
    assert await engine.log_extent(UID, LogStream.ALL) == (4, 10)
