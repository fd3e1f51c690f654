"""Keeping a task's output in bounded files whose bytes have lasting offsets.

A log is a row of segments named by the offset of their first byte, ``stdout-000000000000.log`` and so
on. The newest two are kept, each of at most the configured size (plus one read). As the offset is in
the name, taking a new segment is one atomic step, and a reader never sees a log between two states.

Beside each segment a file of the same name with ``.times`` tells when its bytes came: records of a byte's offset and
its time, one a second at most, the first for the segment's first byte. A byte came at the time of the last record at or
before it.
"""

from __future__ import annotations

import os
import struct
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

STREAMS = ("stdout", "stderr", "all")
_LINE_BYTES = 4096  # how far back a last line is looked for
KEPT_SEGMENTS = 2  # the current one and the one before it
TIME_RECORD = struct.Struct("<QQ")  # an offset in the stream, and a time in milliseconds since 1970
TIME_STEP_MS = 1000


def segment_name(stream: str, base: int) -> str:
    """The file name of the segment whose first byte is byte ``base`` of the stream."""
    return f"{stream}-{base:012d}.log"


def times_name(stream: str, base: int) -> str:
    """The file name of the times of that segment's bytes."""
    return f"{stream}-{base:012d}.times"


def _milliseconds() -> int:
    return time.time_ns() // 1_000_000


def is_due(now_ms: int, last_ms: int) -> bool:
    """Whether bytes that come now need a time of their own after one at ``last_ms``; clocks may be set back."""
    return not 0 <= now_ms - last_ms < TIME_STEP_MS


class Log:
    """One growing stream on disk."""

    def __init__(self, directory: str, stream: str, limit: int) -> None:
        self._directory = directory
        self._stream = stream
        self._limit = limit
        self._bases = [0]
        self._size = 0
        self._timed_ms = 0
        self._fd = self._create(segment_name(stream, 0))
        self._times = self._create(times_name(stream, 0))

    def _create(self, name: str) -> int:
        path = os.path.join(self._directory, name)
        return os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_APPEND, 0o600)

    def write(self, data: bytes, now_ms: int) -> None:
        """Append all of ``data``, which came at ``now_ms``. Raises OSError when the disk does not take it."""
        if self._size >= self._limit:
            self._rotate()
        if self._size == 0 or is_due(now_ms, self._timed_ms):
            os.write(self._times, TIME_RECORD.pack(self._bases[-1] + self._size, now_ms))
            self._timed_ms = now_ms
        view = memoryview(data)
        while view:
            written = os.write(self._fd, view)
            self._size += written
            view = view[written:]

    def _rotate(self) -> None:
        base = self._bases[-1] + self._size
        # The times first: a reader that finds a segment finds those of its bytes.
        times = self._create(times_name(self._stream, base))
        fresh = self._create(segment_name(self._stream, base))
        os.close(self._fd)
        os.close(self._times)
        self._fd, self._times, self._size = fresh, times, 0
        self._bases.append(base)
        while len(self._bases) > KEPT_SEGMENTS:
            old = self._bases.pop(0)
            for name in (segment_name, times_name):
                os.unlink(os.path.join(self._directory, name(self._stream, old)))

    def tail(self, size: int) -> bytes:
        """The last bytes of the newest segment. Raises OSError."""
        with open(os.path.join(self._directory, segment_name(self._stream, self._bases[-1])), "rb") as file:
            file.seek(max(0, self._size - size))
            return file.read()

    def close(self) -> None:
        """Make everything durable and close. Raises OSError when the disk failed."""
        try:
            if self._size:
                os.fsync(self._fd)
        finally:
            os.close(self._fd)
            os.close(self._times)


class Capture:
    """The three logs of a task: each stream alone, and both in the order in which they arrived.

    ``clock`` tells the milliseconds since 1970.
    """

    def __init__(self, directory: str, limit: int, clock: Callable[[], int] = _milliseconds) -> None:
        self._clock = clock
        self._logs = {stream: Log(directory, stream, limit) for stream in STREAMS}
        self.error: OSError | None = None

    def add(self, stream: str, data: bytes) -> None:
        """Keep some output. After the first failure (see ``error``) output is dropped, so that no process blocks."""
        if self.error is not None:
            return
        now_ms = self._clock()
        try:
            self._logs[stream].write(data, now_ms)
            self._logs["all"].write(data, now_ms)
        except OSError as exc:
            self.error = exc

    def last_line(self, stream: str) -> str:
        """The last line of a stream that is not empty, cut to what a record holds; empty when there is none."""
        text = self._logs[stream].tail(_LINE_BYTES).decode("utf-8", "replace")
        return next((line.strip() for line in reversed(text.splitlines()) if line.strip()), "")

    def close(self) -> None:
        """Make the logs durable; a failure is remembered in ``error`` like any other."""
        for log in self._logs.values():
            try:
                log.close()
            except OSError as exc:
                self.error = self.error or exc
