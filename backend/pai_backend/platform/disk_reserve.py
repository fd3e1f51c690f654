"""Room on the disk of the data directory for what frees a full disk: stop, delete and sign-in.

A file holds blocks while there is room. A process whose write finds the disk full gives them up and writes again. They
are taken back when there is room for twice as much, so that the reserve itself never fills a disk.

Every process of a backend has its own :class:`DiskReserve` of the one file. Standard library only.
"""

from __future__ import annotations

import errno
import logging
import os
from contextlib import suppress
from pathlib import Path
from typing import Final

log = logging.getLogger(__name__)

NAME: Final = "disk.reserve"
LOOK_S: Final = 5.0
"""Time between two looks whether there is room again."""
FULL_BYTES: Final = 1_048_576
"""With less than this a process that starts does not wait for its first write to fail."""
NO_ROOM: Final = frozenset({errno.ENOSPC, errno.EDQUOT})


class DiskReserve:
    """The reserve of a data directory. Its methods block on the disk for a moment."""

    def __init__(self, directory: Path, size: int) -> None:
        """``size``: bytes; 0 keeps nothing."""
        self._path = directory / NAME
        self._size = size

    @property
    def is_held(self) -> bool:
        """Whether it has its blocks; True for one of no size. By its length: ZFS tells of no blocks of zeros."""
        try:
            return os.stat(self._path).st_size >= self._size
        except OSError:
            return not self._size

    def free_bytes(self) -> int:
        """Bytes that the disk has for us. Raises OSError."""
        disk = os.statvfs(self._path.parent)
        return disk.f_bavail * disk.f_frsize

    def trouble(self) -> str:
        """Why stop, delete and sign-in may fail soon, in words; empty while the reserve is held."""
        if self.is_held:
            return ""
        try:
            free = f"has {self.free_bytes() // 1024} KiB free"
        except OSError as error:
            free = f"cannot be looked at: {error.strerror}"
        return (
            f"the disk of the data directory {free}, and no space is reserved for stop, delete and sign-in; free "
            "some, for instance by `pai delete` of finished jobs"
        )

    def forbids_more(self) -> bool:
        """Whether nothing new is to be taken: the reserve is in use, and the rest is for stop, delete and sign-in."""
        if self.is_held:
            return False
        try:
            return self.free_bytes() < self._size // 4
        except OSError:
            return True

    def fill(self) -> bool:
        """Take the blocks if there is room for twice as many; whether they are held now."""
        if self.is_held:
            return True
        try:
            if self.free_bytes() < 2 * self._size:
                return False
            descriptor = os.open(self._path, os.O_WRONLY | os.O_CREAT, 0o600)
            try:
                _allocate(descriptor, self._size)
            except OSError:
                os.ftruncate(descriptor, 0)
                raise
            finally:
                os.close(descriptor)
        except OSError as error:
            log.debug("the reserve cannot be taken: %s", error)
            return False
        log.info("%d MiB of the disk are reserved for stop, delete and sign-in", self._size >> 20)
        return True

    def release(self, part: int | None = None) -> bool:
        """Give the blocks up, or a part of that many bytes, because a write found the disk full; whether it had any."""
        try:
            descriptor = os.open(self._path, os.O_WRONLY)
        except OSError:
            return False
        try:
            held = os.fstat(descriptor).st_size
            os.ftruncate(descriptor, 0 if part is None else max(0, held - part))
        finally:
            os.close(descriptor)
        if held and held >= self._size:
            log.error("the disk of %s is full; the reserve is given up for what frees it", self._path.parent)
        return held > 0

    def relieves(self, error: BaseException) -> bool:
        """Whether what failed is to be tried again: the disk was full, and the reserve is given up now."""
        cause = error.__cause__
        return isinstance(cause, OSError) and cause.errno in NO_ROOM and self.release()

    def release_if_full(self) -> None:
        """For a process that starts: it has files to write before anything can be stopped or deleted."""
        with suppress(OSError):
            if self.free_bytes() < FULL_BYTES:
                self.release()

    async def keep(self) -> None:
        """Take the blocks back whenever there is room, for ever; that there is none is logged once."""
        import asyncio  # which the supervisor does without

        told = False
        while True:
            held = await asyncio.to_thread(self.fill)
            if not held and not told:
                log.error("degraded: %s", self.trouble())
            told = not held
            await asyncio.sleep(LOOK_S)


def grow(path: Path, size: int) -> None:
    """Give a file that many more bytes of blocks behind its end, zeroed, so that what is written there needs none."""
    if not hasattr(os, "posix_fallocate"):  # macOS
        return
    with suppress(OSError):
        descriptor = os.open(path, os.O_WRONLY)
        try:
            end = os.fstat(descriptor).st_size
            os.posix_fallocate(descriptor, end, size)
        finally:
            os.close(descriptor)


def _allocate(descriptor: int, size: int) -> None:
    if hasattr(os, "posix_fallocate"):
        os.posix_fallocate(descriptor, 0, size)
        return
    written = 0
    while written < size:
        written += os.pwrite(descriptor, bytes(min(1_048_576, size - written)), written)
    os.fsync(descriptor)
