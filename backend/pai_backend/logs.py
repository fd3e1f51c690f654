"""Where log lines go: standard error, or the file that standard error already is, rotated by size.

With a log file, the supervisor opens it as the process's standard error, so that even an interpreter's last
words are in it; the handler here renames it when it is too long and puts a new file on the same descriptor.
Standard library only: the supervisor uses it too.
"""

from __future__ import annotations

import logging
import os
import sys
import time
from pathlib import Path

OLD_FILES = 3
_FORMAT = "%(asctime)s.%(msecs)03dZ %(levelname)s %(name)s: %(message)s"
# Libraries that say at info what only their authors want to know.
_QUIET = ("tornado.access", "asyncssh", "sqlalchemy", "alembic")


class RotatingStderr(logging.StreamHandler):  # type: ignore[type-arg]
    """Writes to standard error, which is the file ``path``, and rotates that file."""

    def __init__(self, path: Path, limit_bytes: int) -> None:
        super().__init__(sys.stderr)
        self._path, self._limit = path, limit_bytes

    def emit(self, record: logging.LogRecord) -> None:
        """Write one line; rotate first when the file has reached its limit."""
        if os.fstat(2).st_size >= self._limit:
            rotate(self._path)
            redirect(self._path)
        super().emit(record)


def open_log(path: Path) -> int:
    """A descriptor that appends to the log file, made with mode 0600."""
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    return os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)


def redirect(path: Path) -> None:
    """Let standard output and standard error be the log file."""
    descriptor = open_log(path)
    os.dup2(descriptor, 1)
    os.dup2(descriptor, 2)
    os.close(descriptor)


def rotate(path: Path) -> None:
    """``x.log`` becomes ``x.log.1``, ``x.log.1`` becomes ``x.log.2`` and so on; the oldest goes."""
    for number in range(OLD_FILES, 0, -1):
        older = Path(f"{path}.{number - 1}") if number > 1 else path
        if older.exists():
            older.replace(f"{path}.{number}")


def configure(level: str, path: Path | None, limit_bytes: int) -> None:
    """Send all logging to standard error, in UTC; ``path`` is the file it is, if it is one."""
    handler = RotatingStderr(path, limit_bytes) if path is not None else logging.StreamHandler(sys.stderr)
    formatter = logging.Formatter(_FORMAT, datefmt="%Y-%m-%dT%H:%M:%S")
    formatter.converter = time.gmtime
    handler.setFormatter(formatter)
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(level.upper())
    if level != "debug":
        for name in _QUIET:
            logging.getLogger(name).setLevel(logging.WARNING)
