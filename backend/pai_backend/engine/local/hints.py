"""The FIFO by which shims say "look at this task" to the process that keeps it open."""

from __future__ import annotations

import asyncio
import os
import stat
from collections.abc import Callable
from pathlib import Path
from types import TracebackType

_READ_BYTES = 65536


class HintFifo:
    """Calls ``heard(uid)`` on the running event loop for each line that arrives, while it is entered.

    It is opened for both directions, so that it does not end when the last writer leaves. Hints may be
    lost (a full FIFO, no reader): a process that relies on them also scans.
    """

    def __init__(self, path: Path, heard: Callable[[str], None]) -> None:
        self._path = path
        self._heard = heard
        self._rest = b""
        self._fd = -1

    def __enter__(self) -> HintFifo:
        """Open it, making it when it is not there. Raises OSError."""
        try:
            os.mkfifo(self._path, 0o600)
        except FileExistsError:
            if not stat.S_ISFIFO(os.stat(self._path).st_mode):
                raise
        self._fd = os.open(self._path, os.O_RDWR | os.O_NONBLOCK)
        asyncio.get_running_loop().add_reader(self._fd, self._read)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """Stop listening."""
        asyncio.get_running_loop().remove_reader(self._fd)
        os.close(self._fd)

    def _read(self) -> None:
        try:
            data = os.read(self._fd, _READ_BYTES)
        except BlockingIOError:
            return
        *lines, self._rest = (self._rest + data).split(b"\n")
        for line in lines:
            self._heard(line.decode("ascii", "replace"))
