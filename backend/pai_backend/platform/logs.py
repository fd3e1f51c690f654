"""Where log lines go: standard error, or the file that standard error already is, rotated by size.

With a log file, the supervisor opens it as the process's standard error, so that even an interpreter's last
words are in it; the handler here renames it when it is too long and puts a new file on the same descriptor.
Standard library only: the supervisor uses it too.
"""

from __future__ import annotations

import contextlib
import json
import logging
import os
import re
import sys
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

OLD_FILES = 3
_FORMAT = "%(asctime)s.%(msecs)03dZ %(levelname)s %(name)s: %(message)s"
# Libraries that say at info what only their authors want to know.
_QUIET = ("tornado.access", "asyncssh", "sqlalchemy", "alembic")
# Quotes what strangers send: the body of one request may be read as the head of the next, with the password in it.
_QUOTING = "tornado.general"
ALIKE_BYTES = 200_000  # of lines of one kind that are written in a minute, about; strangers cause a handful of kinds
_TRACEBACK_BYTES = 4_096
_KINDS = 1_000  # that are counted; more than there are calls that log
_MINUTE_S = 60.0


class Flood(logging.Filter):
    """Lets through so much of one kind of lines in a minute; how many were left out is told with the next one.

    Strangers cause lines as often as they like, and a disk is finite.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        super().__init__()
        self._clock = clock
        self._spent: dict[tuple[str, str, int], tuple[float, int, int]] = {}

    def filter(self, record: logging.LogRecord) -> bool:
        """Called by logging for each line."""
        kind, now = (record.name, record.pathname, record.lineno), self._clock()
        since, spent, left_out = self._spent.get(kind, (now, 0, 0))
        if now - since >= _MINUTE_S:
            if left_out:
                record.msg, record.args = f"{record.getMessage()} ({left_out} lines of this kind left out)", ()
            since, spent, left_out = now, 0, 0
        if len(self._spent) >= _KINDS and kind not in self._spent:
            self._spent.clear()
        passes = spent < ALIKE_BYTES
        if passes:
            spent += 100 + len(record.getMessage()) + (_TRACEBACK_BYTES if record.exc_info else 0)
        self._spent[kind] = (since, spent, left_out + (not passes))
        return passes


_JOB = re.compile(r"\bj[0-9a-f]{16}\b")
_REQUEST = re.compile(r"\[([\w.-]{8,64})\]$")  # as the API ends its lines


class JsonLines(logging.Formatter):
    """A line as one JSON object: ``time``, ``level``, ``logger``, ``message``; ``job``, ``request``, ``error`` if any.

    ``job`` is the first uid that the message names, ``request`` the id with which a line of the API ends.
    """

    def format(self, record: logging.LogRecord) -> str:
        """Called by logging for each line."""
        message = record.getMessage()
        at = datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds")
        line = {"time": at, "level": record.levelname.lower(), "logger": record.name, "message": message}
        if job := _JOB.search(message):
            line["job"] = job[0]
        if record.name.startswith("pai_backend.api") and (request := _REQUEST.search(message)):
            line["request"] = request[1]
        if record.exc_info:
            line["error"] = self.formatException(record.exc_info)
        return json.dumps(line, ensure_ascii=False)


class RotatingStderr(logging.StreamHandler):  # type: ignore[type-arg]
    """Writes to standard error, which is the file ``path``, and rotates that file."""

    def __init__(self, path: Path, limit_bytes: int) -> None:
        super().__init__(sys.stderr)
        self._path, self._limit = path, limit_bytes

    def emit(self, record: logging.LogRecord) -> None:
        """Write one line; rotate first when the file has reached its limit and another one can be opened."""
        with contextlib.suppress(OSError):  # no descriptor is free, or the disk is full: the file goes on as it is
            if os.fstat(2).st_size >= self._limit:
                spare = open_log(self._path.with_name(f"{self._path.name}.next"))
                rotate(self._path)
                os.replace(f"{self._path}.next", self._path)
                _redirect_to(spare)
        super().emit(record)


def open_log(path: Path) -> int:
    """A descriptor that appends to the log file, made with mode 0600."""
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    return os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)


def redirect(path: Path) -> None:
    """Let standard output and standard error be the log file."""
    _redirect_to(open_log(path))


def _redirect_to(descriptor: int) -> None:
    os.dup2(descriptor, 1)
    os.dup2(descriptor, 2)
    os.close(descriptor)


def rotate(path: Path) -> None:
    """``x.log`` becomes ``x.log.1``, ``x.log.1`` becomes ``x.log.2`` and so on; the oldest goes."""
    for number in range(OLD_FILES, 0, -1):
        older = Path(f"{path}.{number - 1}") if number > 1 else path
        if older.exists():
            older.replace(f"{path}.{number}")


def configure(level: str, path: Path | None, limit_bytes: int, *, as_json: bool = False) -> None:
    """Send all logging to standard error, in UTC; ``path`` is the file it is, if it is one."""
    handler = RotatingStderr(path, limit_bytes) if path is not None else logging.StreamHandler(sys.stderr)
    formatter = logging.Formatter(_FORMAT, datefmt="%Y-%m-%dT%H:%M:%S")
    formatter.converter = time.gmtime
    handler.setFormatter(JsonLines() if as_json else formatter)
    if level != "debug":
        handler.addFilter(Flood())
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(level.upper())
    logging.getLogger(_QUOTING).setLevel(logging.WARNING)
    if level != "debug":
        for name in _QUIET:
            logging.getLogger(name).setLevel(logging.WARNING)
