"""What stays of finished tasks: their logs and working directories go, the oldest first, by age, number and bytes.

How a task ended stays until its job is deleted: by that its uid never starts again, and a restored database learns of
its end.
"""

from __future__ import annotations

import asyncio
import logging
import os
import shutil
import stat
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from pai_backend.engine.base import EngineError
from pai_backend.engine.local import layout
from pai_backend.model.ids import JobUid, TaskUid, job_of

log = logging.getLogger(__name__)

SWEEP_S: Final = 60.0
STAYS: Final = frozenset({layout.EXIT, layout.STARTED})
"""Files of a finished task that are never removed, under 1 KB together."""
UNUSED_S: Final = 3600.0
"""A record of a job without live tasks is removed when it is that old: the next attempt writes another."""


@dataclass(frozen=True)
class KeepRule:
    """How much of finished tasks is kept; 0: no limit."""

    seconds: float
    tasks: int
    bytes: int


@dataclass(frozen=True)
class Finished:
    """A finished task that still has its logs and files."""

    name: str
    ended_at: float
    """Seconds since 1970."""
    bytes: int


def expired(found: Sequence[Finished], keep: KeepRule, now: float) -> list[Finished]:
    """Those that go, the oldest first: too old, or more than fit. Pure."""
    kept_bytes, kept, gone = 0, 0, []
    for each in sorted(found, key=lambda one: (one.ended_at, one.name), reverse=True):
        too_old = bool(keep.seconds) and now - each.ended_at > keep.seconds
        too_many = bool(keep.tasks) and kept >= keep.tasks
        too_large = bool(keep.bytes) and kept_bytes + each.bytes > keep.bytes
        if too_old or too_many or too_large:
            gone.append(each)
        else:
            kept, kept_bytes = kept + 1, kept_bytes + each.bytes
    return gone[::-1]


@dataclass(frozen=True)
class TaskFolders:
    """Directories of tasks, one each: what tells that a task is finished, and what of it is never removed."""

    path: Path
    end: str
    """Name of the file that is written last."""
    stays: frozenset[str] = frozenset()


def done_folder(root: Path) -> TaskFolders:
    """That of a local engine's root."""
    return TaskFolders(root / layout.DONE, layout.EXIT, STAYS)


class FolderRetention:
    """Of one folder. :meth:`sweep` blocks on the disk."""

    def __init__(self, folder: TaskFolders, keep: KeepRule) -> None:
        self._folder = folder
        self._keep = keep
        self._sizes: dict[str, int] = {}  # of tasks that are over: their files no longer change

    async def run(self) -> None:
        """Sweep every minute, for ever. A disk that refuses is logged and tried again."""
        while True:
            try:
                await asyncio.to_thread(self.sweep)
            except OSError as error:
                log.warning("finished tasks cannot be removed now: %s", error)
            await asyncio.sleep(SWEEP_S)

    def sweep(self) -> int:
        """Remove what is not kept; returns how many tasks lost their logs and files. Raises OSError."""
        found = list(self._finished())
        self._sizes = {each.name: each.bytes for each in found}
        gone = expired(found, self._keep, time.time())
        for each in gone:
            self._clear(self._folder.path / each.name)
            self._sizes.pop(each.name, None)
        if self._folder.stays:
            _drop_records(self._folder.path.parent)
        if gone:
            log.info("logs and files of %d finished tasks were removed", len(gone))
        return len(gone)

    def _finished(self) -> Iterator[Finished]:
        folder = self._folder
        try:
            names = os.listdir(folder.path)
        except FileNotFoundError:
            return
        for name in names:
            with suppress(FileNotFoundError, NotADirectoryError):
                if set(os.listdir(folder.path / name)) <= folder.stays:
                    continue
                ended_at = (folder.path / name / folder.end).stat().st_mtime
                size = self._sizes[name] if name in self._sizes else _size(folder.path / name)
                yield Finished(name, ended_at, size)

    def _clear(self, directory: Path) -> None:
        """Remove everything but what stays; may be cut off and done again."""
        with suppress(FileNotFoundError):  # its job is being deleted
            if not self._folder.stays:
                _remove_tree(directory)
                return
            for name in os.listdir(directory):
                path = directory / name
                if name in self._folder.stays:
                    continue
                if path.is_dir() and not path.is_symlink():
                    _remove_tree(path)
                else:
                    path.unlink(missing_ok=True)


def erase(root: Path, job: JobUid) -> None:
    """Remove all that a local engine keeps of a job; may be cut off and done again. Raises EngineError."""
    try:
        for name in _of_job(root / layout.TASKS, job):
            raise EngineError(f"task {name} is not forgotten yet, so its job is not erased")
        erase_folders(root / layout.DONE, job)
        (root / layout.JOBS / job).unlink(missing_ok=True)
    except OSError as error:
        raise EngineError(f"what is left of job {job} cannot be removed: {error}") from None


def erase_folders(folder: Path, job: JobUid) -> None:
    """Remove the directories of a job's tasks. Raises OSError."""
    for name in _of_job(folder, job):
        with suppress(FileNotFoundError):  # retention is at it as well
            _remove_tree(folder / name)


def _of_job(folder: Path, job: JobUid) -> list[str]:
    try:
        return [name for name in os.listdir(folder) if job_of(TaskUid(name)) == job]
    except FileNotFoundError:
        return []


def _drop_records(root: Path) -> None:
    """Remove records of jobs that have no live task: no database takes them back from there."""
    with suppress(FileNotFoundError):
        records = list((root / layout.JOBS).iterdir())
        live = {job_of(TaskUid(name)) for name in os.listdir(root / layout.TASKS)}
        for path in records:
            with suppress(FileNotFoundError):
                if path.name not in live and time.time() - path.stat().st_mtime > UNUSED_S:
                    path.unlink()


def _size(directory: Path) -> int:
    """Bytes on the disk of all files below; links are not followed."""
    total = 0
    for folder, _, files in os.walk(directory):
        for name in files:
            with suppress(OSError):
                total += os.lstat(os.path.join(folder, name)).st_blocks * 512
    return total


def _remove_tree(path: Path) -> None:
    """Remove a directory, also below directories that a task or its inputs have made read-only.

    Root need change no mode, and must not: a path here may lead through what a task swaps for a link.
    """
    for folder, names, _ in os.walk(path) if os.geteuid() else ():
        for each in (folder, *(os.path.join(folder, name) for name in names)):
            with suppress(OSError):
                if stat.S_ISDIR(os.lstat(each).st_mode):
                    os.chmod(each, 0o700)
    shutil.rmtree(path)
