"""What tasks used over time: a small ring of samples for each task, in a file beside the logs.

``<logs>/use/<job uid>/<task uid>`` has one record of :data:`RECORD` bytes a sample, at most :data:`KEPT` of them; then
the oldest is overwritten. A record ends with a checksum, so a write that a crash cut short costs that sample alone,
and nothing has to be repaired or flushed. One process at a time writes: the controller. Any may read.

All methods block; use a thread.
"""

from __future__ import annotations

import logging
import os
import shutil
import struct
import zlib
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Final

from pai_backend.engine.base import TaskUse
from pai_backend.model.ids import JobUid, TaskUid, job_of, slot_of

log = logging.getLogger(__name__)

FOLDER: Final = "use"
KEPT: Final = 7 * 24 * 60
"""Samples of a task: a week of them at one a minute."""
KEEP_S: Final = 7 * 86_400.0
"""A series is removed when its last sample is that old, or with its job."""
IDLE_PERCENT: Final = 1
"""A GPU that worked less of the time is idle."""

_RECORD: Final = struct.Struct("<IHHIIII")
RECORD: Final = _RECORD.size
_BODY: Final = RECORD - 4
_NO16, _NO32 = 0xFFFF, 0xFFFFFFFF
_PARTIAL = 0x8000
"""Of the number of idle GPUs the bit that says that others did not tell."""


@dataclass(frozen=True)
class UseSample:
    """What a task used at a time: ``at`` in seconds since 1970, the rest as ``TaskUse`` has it.

    ``gpu_percent`` is the mean of the GPUs that told, ``idle_gpus`` how many of them did nothing; ``is_partial``:
    others did not tell.
    """

    at: int
    cpus: float | None = None
    memory_mb: int | None = None
    gpu_percent: float | None = None
    gpu_memory_mb: int | None = None
    idle_gpus: int | None = None
    is_partial: bool = False


def sampled(at: int, use: TaskUse) -> UseSample:
    """A use as a sample."""
    percents = [gpu.percent for gpu in use.gpus if gpu.percent is not None]
    memories = [gpu.memory_mb for gpu in use.gpus if gpu.memory_mb is not None]
    return UseSample(
        at,
        use.cpus,
        None if use.memory_mb is None else round(use.memory_mb),
        sum(percents) / len(percents) if percents else None,
        sum(memories) if memories else None,
        sum(percent < IDLE_PERCENT for percent in percents) if percents else None,
        0 < len(percents) < len(use.gpus),
    )


class UseSeries:
    """The series below one directory of logs."""

    def __init__(self, logs: Path) -> None:
        self._root = logs / FOLDER
        self._next: dict[TaskUid, int] = {}

    def append(self, uid: TaskUid, sample: UseSample) -> None:
        """Add a sample. Raises OSError."""
        path = self._path(uid)
        try:
            fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except FileNotFoundError:
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            place = self._next.get(uid)
            if place is None:
                place = _first_free(path)
            os.pwrite(fd, _packed(sample), place * RECORD)
        finally:
            os.close(fd)
        self._next[uid] = (place + 1) % KEPT

    def read(self, uid: TaskUid, since: int = 0) -> list[UseSample]:
        """The samples from ``since`` on, the oldest first; none for a task that was never sampled. Raises OSError."""
        found = [sample for _, sample in _records(self._path(uid)) if sample.at >= since]
        return sorted(found, key=lambda sample: sample.at)

    def runs(self, slot: str) -> list[TaskUid]:
        """The runs of a slot that were sampled, see ``model.ids.slot_of``."""
        names = (entry.name for entry in _entries(self._root / slot.split("-", 1)[0]))
        return [TaskUid(name) for name in names if slot_of(TaskUid(name)) == slot]

    def finished(self, uid: TaskUid) -> None:
        """The task gets no further samples."""
        self._next.pop(uid, None)

    def erase(self, job: JobUid) -> None:
        """Remove the series of a deleted job."""
        shutil.rmtree(self._root / job, ignore_errors=True)

    def sweep(self, now: float) -> None:
        """Remove series whose last sample is too old."""
        for folder in _entries(self._root):
            for file in _entries(folder.path):
                with suppress(FileNotFoundError):
                    if now - file.stat().st_mtime > KEEP_S:
                        os.unlink(file.path)
            with suppress(OSError):  # others are still in it
                os.rmdir(folder.path)

    def _path(self, uid: TaskUid) -> Path:
        return self._root / job_of(uid) / uid


def thinned(samples: Sequence[UseSample], points: int) -> list[UseSample]:
    """At most so many samples over the same time, each the mean of those it stands for. Pure."""
    if len(samples) <= points:
        return list(samples)
    bounds = [len(samples) * number // points for number in range(points + 1)]
    return [_mean(samples[first:last]) for first, last in pairwise(bounds)]


def _mean(samples: Sequence[UseSample]) -> UseSample:
    def mean(values: Iterator[float | None]) -> float | None:
        known = [value for value in values if value is not None]
        return sum(known) / len(known) if known else None

    def whole(values: Iterator[float | None]) -> int | None:
        found = mean(values)
        return None if found is None else round(found)

    return UseSample(
        samples[-1].at,
        mean(each.cpus for each in samples),
        whole(each.memory_mb for each in samples),
        mean(each.gpu_percent for each in samples),
        whole(each.gpu_memory_mb for each in samples),
        min((each.idle_gpus for each in samples if each.idle_gpus is not None), default=None),
        any(each.is_partial for each in samples),
    )


def _entries(path: str | Path) -> list[os.DirEntry[str]]:
    try:
        with os.scandir(path) as found:
            return list(found)
    except (FileNotFoundError, NotADirectoryError):
        return []


def _first_free(path: Path) -> int:
    """Where the next record goes: behind the newest one, which in a full ring is the oldest."""
    newest = max(_records(path), key=lambda pair: pair[1].at, default=None)
    return 0 if newest is None else (newest[0] + 1) % KEPT


def _records(path: Path) -> list[tuple[int, UseSample]]:
    """Place and content of each whole record."""
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        return []
    whole = len(data) - len(data) % RECORD
    found = []
    for place, fields in enumerate(_RECORD.iter_unpack(data[:whole])):
        *values, checksum = fields
        body = data[place * RECORD : place * RECORD + _BODY]
        if values[0] and zlib.crc32(body) == checksum:
            found.append((place, _unpacked(values)))
    return found


def _packed(sample: UseSample) -> bytes:
    percent, idle = sample.gpu_percent, sample.idle_gpus
    body = struct.pack(
        "<IHHIII",
        sample.at,
        _NO16 if percent is None else min(round(percent * 100), _NO16 - 1),
        _NO16 if idle is None else min(idle, _PARTIAL - 2) | (_PARTIAL if sample.is_partial else 0),
        _NO32 if sample.gpu_memory_mb is None else min(sample.gpu_memory_mb, _NO32 - 1),
        _NO32 if sample.cpus is None else min(round(sample.cpus * 1000), _NO32 - 1),
        _NO32 if sample.memory_mb is None else min(sample.memory_mb, _NO32 - 1),
    )
    return body + struct.pack("<I", zlib.crc32(body))


def _unpacked(values: Sequence[int]) -> UseSample:
    at, percent, idle, gpu_memory_mb, millis, memory_mb = values
    return UseSample(
        at,
        cpus=None if millis == _NO32 else millis / 1000,
        memory_mb=None if memory_mb == _NO32 else memory_mb,
        gpu_percent=None if percent == _NO16 else percent / 100,
        gpu_memory_mb=None if gpu_memory_mb == _NO32 else gpu_memory_mb,
        idle_gpus=None if idle == _NO16 else idle & ~_PARTIAL,
        is_partial=idle != _NO16 and bool(idle & _PARTIAL),
    )
