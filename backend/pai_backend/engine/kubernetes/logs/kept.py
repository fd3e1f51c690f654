"""A task's output in files of ours: what was read of it so far, and where its kubelet is to be asked for more.

A directory holds the output as segments, named and bounded as the local engine's are; ``position``, replaced in place
after each piece; ``safe``, a position up to which all is on the disk; and ``complete`` once nothing more will come. A
backend that is killed between a piece and its position drops the piece, which the kubelet still has; a machine that
loses power goes back to ``safe``.

All methods block for a moment on the disk; call them in a thread.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from pai_backend.engine.kubernetes.logs.lines import Position
from pai_backend.engine.local.logfiles import Segment, segments, times_before
from pai_backend.engine.local.shim.capture import KEPT_SEGMENTS, TIME_RECORD, segment_name, times_name
from pai_backend.engine.providers import COMPLETE

LOG_BYTES: Final = 256 * 2**20  # of a segment, as the local engine has it; settings may say otherwise
STREAM: Final = "all"  # a kubelet gives both streams as one
_POSITION, _SAFE, _LOCK = "position", "safe", "lock"
_RECORD: Final = re.compile(rb"end=(\d{20}) nth=(\d{10}) inside=(\d{20}) stamp=([0-9TZ:.+-]*) *\n")
_FLAGS: Final = os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC


class InUse(Exception):
    """Another process is writing this log."""


@dataclass(frozen=True)
class Extent:
    """What is kept: bytes from ``base`` up to the position; ``complete``: and nothing more comes."""

    base: int
    position: Position
    complete: bool


class KeptLog:
    """The files of one task. ``limit``: bytes of a segment before the next one is begun."""

    def __init__(self, directory: Path, limit: int) -> None:
        self.directory = directory
        self._limit = limit
        self._timed_ms = 0  # the last time that was kept by this one

    def look(self) -> Extent | None:
        """What is kept; None when nothing ever was."""
        complete = (self.directory / COMPLETE).exists()  # first: nothing changes once it is there
        position = self._position()
        if position is None:
            return None
        kept = segments(self.directory, STREAM)
        return Extent(kept[0].base if kept else position.end, position, complete)

    @contextlib.contextmanager
    def writing(self) -> Iterator[Position]:
        """Be the only one who writes; the position to go on from. Raises InUse, OSError."""
        self.directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        lock = os.open(self.directory / _LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise InUse(f"{self.directory} is being written by another process") from None
            yield self._recovered()
        finally:
            os.close(lock)

    def append(self, data: bytes, after: Position, times: Sequence[tuple[int, int]] = ()) -> None:
        """Keep some more output, which ends at ``after``, and its times: offsets and milliseconds since 1970.

        Raises OSError when the disk does not take it.
        """
        base = after.end - len(data)
        kept = segments(self.directory, STREAM)
        last = kept[-1] if kept else None
        if last is None or last.size >= self._limit:
            last = Segment(base, 0)
            if self._timed_ms and (not times or times[0][0] > base):
                times = [(base, self._timed_ms), *times]
        self._keep_times(last.base, times)
        _write(self.directory / segment_name(STREAM, last.base), data, base - last.base)
        _write(self.directory / _POSITION, _record(after), 0)
        for old in kept[: max(0, len(kept) + (last.size == 0) - KEPT_SEGMENTS)]:
            (self.directory / segment_name(STREAM, old.base)).unlink(missing_ok=True)
            (self.directory / times_name(STREAM, old.base)).unlink(missing_ok=True)

    def _keep_times(self, base: int, times: Sequence[tuple[int, int]]) -> None:
        if times:
            path = self.directory / times_name(STREAM, base)
            at = path.stat().st_size if path.exists() else 0
            _write(path, b"".join(TIME_RECORD.pack(*each) for each in times), at)
            self._timed_ms = times[-1][1]

    def secure(self, position: Position) -> None:
        """Have everything up to here on the disk, also after a power cut. Raises OSError."""
        for segment in segments(self.directory, STREAM)[-KEPT_SEGMENTS:]:
            _sync(self.directory / segment_name(STREAM, segment.base))
        draft = self.directory / f"{_SAFE}.draft"
        _write(draft, _record(position), 0)
        _sync(draft)
        draft.replace(self.directory / _SAFE)
        _sync(self.directory)

    def complete(self, position: Position) -> None:
        """Nothing more will come. Durable on return. Raises OSError."""
        _write(self.directory / _POSITION, _record(position), 0)
        self.secure(position)
        _write(self.directory / COMPLETE, b"", 0)
        _sync(self.directory)

    def _position(self) -> Position | None:
        """The last position that what is there agrees with; None when nothing was ever kept."""
        found = [_read(self.directory / name) for name in (_POSITION, _SAFE)]
        kept = segments(self.directory, STREAM)  # afterwards: it only grows while it is written
        end = kept[-1].end if kept else 0
        return next((each for each in found if each is not None and each.end <= end), None)

    def _recovered(self) -> Position:
        """Drop what was written after the last position, so that the two agree."""
        position = self._position() or Position()
        for segment in segments(self.directory, STREAM):
            path = self.directory / segment_name(STREAM, segment.base)
            if segment.base > position.end or (segment.base == position.end and segment.base > 0):
                path.unlink()
                (self.directory / times_name(STREAM, segment.base)).unlink(missing_ok=True)
            elif segment.end > position.end:
                os.truncate(path, position.end - segment.base)
            _cut_times(self.directory / times_name(STREAM, segment.base), position.end)
        _write(self.directory / _POSITION, _record(position), 0)
        return position


def _cut_times(path: Path, end: int) -> None:
    """Forget the times of bytes from ``end`` on, and one that was written in part."""
    with contextlib.suppress(FileNotFoundError):
        file = os.open(path, os.O_RDWR | os.O_CLOEXEC)
        try:
            os.ftruncate(file, times_before(file, end) * TIME_RECORD.size)
        finally:
            os.close(file)


def _record(position: Position) -> bytes:
    stamp = position.stamp.decode("ascii")
    text = f"end={position.end:020d} nth={position.nth:010d} inside={position.inside:020d} stamp={stamp:40s}\n"
    return text.encode("ascii")


def _read(path: Path) -> Position | None:
    try:
        found = _RECORD.fullmatch(path.read_bytes())
    except FileNotFoundError:
        return None
    return Position(int(found[1]), found[4], int(found[2]), int(found[3])) if found is not None else None


def _write(path: Path, data: bytes, at: int) -> None:
    """Write all of it at a place of the file: by one call where the disk takes it, which no kill can divide."""
    file = os.open(path, _FLAGS, 0o600)
    try:
        view = memoryview(data)
        while view:
            written = os.pwrite(file, view, at)
            at, view = at + written, view[written:]
    finally:
        os.close(file)


def _sync(path: Path) -> None:
    file = os.open(path, os.O_RDONLY)
    try:
        os.fsync(file)
    finally:
        os.close(file)
