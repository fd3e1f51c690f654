"""Reading a task's captured output by lasting offsets, while it grows and is rotated.

All functions block for a moment on the disk; call them in a thread.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from pai_backend.engine.local.shim.capture import TIME_RECORD, segment_name, times_name

CHUNK_BYTES = 65536


@dataclass(frozen=True)
class Segment:
    """One file of a log: the offset of its first byte and its size now."""

    base: int
    size: int

    @property
    def end(self) -> int:
        """The offset after its last byte."""
        return self.base + self.size


def segments(directory: Path, stream: str) -> list[Segment]:
    """The kept segments of a stream, oldest first; none when there is no output or no directory."""
    prefix, suffix = f"{stream}-", ".log"
    found = []
    try:
        names = os.listdir(directory)
    except FileNotFoundError:
        return []
    for name in names:
        middle = name.removeprefix(prefix).removesuffix(suffix)
        if name == f"{prefix}{middle}{suffix}" and middle.isdigit():
            try:
                found.append(Segment(int(middle), os.stat(directory / name).st_size))
            except FileNotFoundError:
                if not directory.is_dir():  # it was moved: what was found of it is not all
                    return []
                continue  # rotated away just now
    return sorted(found, key=lambda segment: segment.base)


def resolve_offset(kept: list[Segment], offset: int) -> int:
    """The first byte to read for a wished ``offset``: negative counts from the end, lost bytes are skipped."""
    if not kept:
        return max(offset, 0)
    wished = kept[-1].end + offset if offset < 0 else offset
    return max(wished, kept[0].base)


class LogReader:
    """A position in one stream of one task."""

    def __init__(self, stream: str, offset: int) -> None:
        self._stream = stream
        self._offset = offset
        self._resolved = False

    def read(self, directory: Path) -> bytes:
        """The next bytes, at most CHUNK_BYTES; empty when nothing more is there now."""
        kept = segments(directory, self._stream)
        if not self._resolved and (kept or self._offset >= 0):
            self._offset = resolve_offset(kept, self._offset)
            self._resolved = True
        for segment in kept:
            if segment.end > self._offset:
                start = max(self._offset, segment.base)
                data = self._read_from(directory, segment, start)
                if data:
                    self._offset = start + len(data)
                    return data
        return b""

    def _read_from(self, directory: Path, segment: Segment, start: int) -> bytes:
        try:
            fd = os.open(directory / segment_name(self._stream, segment.base), os.O_RDONLY)
        except FileNotFoundError:  # rotated or moved away since it was listed
            return b""
        try:
            return os.pread(fd, CHUNK_BYTES, start - segment.base)
        finally:
            os.close(fd)


def times(directory: Path, stream: str, start: int, end: int) -> list[tuple[int, int]]:
    """When the bytes from ``start`` up to ``end`` came: offsets and milliseconds since 1970, in their order.

    The first is that of byte ``start``, if it is known. There may be one for each byte.
    """
    found: list[tuple[int, int]] = []
    for segment in segments(directory, stream):
        if segment.base < end and segment.end > start:
            found += _times_of(directory / times_name(stream, segment.base), max(start, segment.base), end)
    return found


def _times_of(path: Path, start: int, end: int) -> list[tuple[int, int]]:
    try:
        file = os.open(path, os.O_RDONLY)
    except FileNotFoundError:  # of an earlier version, or rotated away just now
        return []
    try:
        first, last = max(0, times_before(file, start + 1) - 1), times_before(file, end)
        size = TIME_RECORD.size
        data = os.pread(file, size * max(0, last - first), first * size)
    finally:
        os.close(file)
    records = TIME_RECORD.iter_unpack(data[: len(data) // size * size])
    return [(max(offset, start), at) for offset, at in records if max(offset, start) < end]


def times_before(file: int, offset: int) -> int:
    """How many records of a file of times are about bytes before ``offset``."""
    size = TIME_RECORD.size
    low, high = 0, os.fstat(file).st_size // size
    while low < high:
        middle = (low + high) // 2
        if TIME_RECORD.unpack(os.pread(file, size, middle * size))[0] < offset:
            low = middle + 1
        else:
            high = middle
    return low
