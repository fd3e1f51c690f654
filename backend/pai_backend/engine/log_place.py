"""Which directory the logs of tasks are in: a mark in it, by which a process with another directory knows that.

Logs are files of the machine, or of the volume, of the process that writes them. An ``api`` with a directory of its own
would answer that a task wrote nothing. So the directory has a mark, the database lists the marks of those who write,
and :class:`LogPlace` compares.
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Awaitable, Callable, Collection
from pathlib import Path

from pai_backend.platform import secret_files

MARK = "log-volume"
"""Name of the file with the mark."""

Marks = Callable[[], Awaitable[Collection[str]]]
"""The marks of all directories that logs of this database were written to."""


class LogPlace:
    """The directory of this process. Its methods wait for the disk in a thread."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory

    @property
    def path(self) -> Path:
        """The directory."""
        return self._directory

    async def marked(self) -> str:
        """The mark, made if there is none: for a process that writes logs here. Raises OSError."""
        return await asyncio.to_thread(self._marked)

    def _marked(self) -> str:
        self._directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        secret_files.make_once(self._directory / MARK, f"{secrets.token_hex(8)}\n")
        return self._read()

    def _read(self) -> str:
        try:
            return (self._directory / MARK).read_text("ascii").strip()
        except (FileNotFoundError, NotADirectoryError):
            return ""

    async def is_elsewhere(self, marks: Marks) -> bool:
        """Whether logs may be in a directory that this process does not have. Raises OSError, Unavailable."""
        written = set(await marks())
        return bool(written - {await asyncio.to_thread(self._read)})
