"""What stays of finished tasks: their logs and working directories go, the oldest first, by age, number and bytes.

How a task ended stays: by that its uid never starts again, and a restored database learns of its end.
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

from pai_backend.engine.local import layout
from pai_backend.model.ids import TaskUid, job_of

log = logging.getLogger(__name__)

SWEEP_S: Final = 60.0
STAYS: Final = frozenset({layout.EXIT, layout.STARTED})
"""Files of a finished task that are never removed, under 1 KB together."""
UNUSED_S: Final = 3600.0
"""A record of a job without live tasks is removed when it is that old: the next attempt writes another."""


@dataclass(frozen=True)
class Keep:
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


def expired(found: Sequence[Finished], keep: Keep, now: float) -> list[Finished]:
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


class Retention:
    """Of one engine's root. :meth:`sweep` blocks on the disk."""

    def __init__(self, root: Path, keep: Keep) -> None:
        self._root = root
        self._keep = keep
        self._sizes: dict[str, int] = {}  # of tasks that are over: their files change no more

    async def run(self) -> None:
        """Sweep every minute, for ever. A disk that refuses is told of and tried again."""
        while True:
            try:
                await asyncio.to_thread(self.sweep)
            except OSError as error:
                log.warning("finished tasks cannot be removed now: %s", error)
            await asyncio.sleep(SWEEP_S)

    def sweep(self) -> int:
        """Remove what is not kept; returns how many tasks lost their logs and files. Raises OSError."""
        gone = expired(list(self._finished()), self._keep, time.time())
        for each in gone:
            self._clear(self._root / layout.DONE / each.name)
            self._sizes.pop(each.name, None)
        self._drop_records()
        if gone:
            log.info("logs and files of %d finished tasks were removed", len(gone))
        return len(gone)

    def _finished(self) -> Iterator[Finished]:
        done = self._root / layout.DONE
        try:
            names = os.listdir(done)
        except FileNotFoundError:
            return
        for name in names:
            with suppress(FileNotFoundError, NotADirectoryError):
                if set(os.listdir(done / name)) <= STAYS:
                    continue
                if name not in self._sizes:
                    self._sizes[name] = _size(done / name)
                yield Finished(name, (done / name / layout.EXIT).stat().st_mtime, self._sizes[name])

    @staticmethod
    def _clear(directory: Path) -> None:
        """Remove everything but how it ended; may be cut off and done again."""
        for name in os.listdir(directory):
            path = directory / name
            if name in STAYS:
                continue
            if path.is_dir() and not path.is_symlink():
                _remove_tree(path)
            else:
                path.unlink(missing_ok=True)

    def _drop_records(self) -> None:
        """Remove records of jobs that have no live task: nobody takes them back from there."""
        folder = self._root / layout.JOBS
        with suppress(FileNotFoundError):
            records = list(folder.iterdir())
            live = {job_of(TaskUid(name)) for name in os.listdir(self._root / layout.TASKS)}
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
    """Remove a directory, also below directories that a task or its inputs have made read-only."""
    for folder, names, _ in os.walk(path):
        for each in (folder, *(os.path.join(folder, name) for name in names)):
            with suppress(OSError):
                if stat.S_ISDIR(os.lstat(each).st_mode):
                    os.chmod(each, 0o700)
    shutil.rmtree(path)
