"""The default file system as the API serves it: names in, entries and bytes out, whatever it is made of.

Paths are tuples of names as ``areas.parts_of`` makes them. Every call blocks, and raises StorageFault for what a
user can put right: Absent, NotAllowed, PathConflict, Away.
"""

from __future__ import annotations

import hashlib
import io
import os
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Protocol

from pai_backend.storage.faults import Absent, StorageFault

Parts = tuple[str, ...]
CHUNK_BYTES = 1 << 20


class PathConflict(StorageFault):
    """What is there does not fit what is asked: a directory where a file should be, another upload, an offset."""


@dataclass(frozen=True)
class FileInfo:
    """A file or directory."""

    name: str
    directory: bool
    size: int  # bytes; 0 for a directory
    modified: datetime | None


class Readable(Protocol):
    """An open file."""

    def read(self, size: int, /) -> bytes | None:
        """At most ``size`` bytes; none at the end."""
        ...

    def seek(self, offset: int, /) -> int:
        """Go to a byte."""
        ...

    def close(self) -> None:
        """Close it."""
        ...


class Upload(Protocol):
    """A file on its way in, of which ``size`` bytes are kept already. No other request can open it meanwhile."""

    @property
    def size(self) -> int:
        """Bytes kept so far."""
        ...

    def write(self, data: bytes) -> None:
        """Append."""
        ...

    def finish(self, sha256: str) -> None:
        """Give the file its name, atomically, replacing a file of that name; ``sha256`` may be empty.

        Raises PathConflict, and forgets what is kept, when the bytes have another digest.
        """
        ...

    def close(self) -> None:
        """Close it; what is kept stays for a later try. Harmless after :meth:`finish`."""
        ...


class Files(Protocol):
    """A tree of files below one root."""

    def stat(self, path: Parts) -> FileInfo:
        """What is there. Raises Absent."""
        ...

    def listing(self, path: Parts, after: str, limit: int) -> list[FileInfo]:
        """The first ``limit`` entries of a directory with names behind ``after``, by name."""
        ...

    def read(self, path: Parts) -> Readable:
        """A file, open to read and seek. Raises Absent; PathConflict for a directory."""
        ...

    def kept(self, path: Parts) -> int:
        """Bytes of an unfinished upload of this file; 0 when there is none."""
        ...

    def upload(self, path: Parts, offset: int) -> Upload:
        """Begin, or go on from ``offset``, and drop what is kept behind it. Directories above are made.

        Raises PathConflict when fewer bytes are kept, or when it is being uploaded by another request now.
        """
        ...

    def make_directory(self, path: Parts) -> None:
        """With all above it; nothing happens when it is there. Raises PathConflict for a file."""
        ...

    def remove(self, path: Parts, *, recursive: bool) -> None:
        """Remove a file or directory, and what is kept of an unfinished upload of it.

        Raises Absent when there is neither; PathConflict for a directory that is not empty.
        """
        ...

    def copy(self, source: Parts, target: Parts, max_entries: int, max_bytes: int | None = None) -> None:
        """Copy a file or a directory; it appears whole. Raises PathConflict when the target is a directory.

        Also raises PathConflict when there is more than ``max_bytes``: it has grown since it was measured.
        """
        ...

    def usage(self, path: Parts) -> int:
        """Bytes of all files below; 0 when it is not there."""
        ...


def grown(path: Parts) -> PathConflict:
    """More is there than was counted before it was copied."""
    return PathConflict(f"{shown(path)} has grown while it was copied", "copy it again")


def shown(path: Parts) -> str:
    """A path in messages."""
    return "/" + "/".join(path)


def absent(path: Parts) -> Absent:
    """Nothing is there."""
    return Absent(f"{shown(path)} does not exist", "`pai fs ls` lists the files")


def time_of(seconds: float) -> datetime | None:
    """A file's time; None for one that no calendar has, which any user can set."""
    try:
        return datetime.fromtimestamp(seconds, UTC)
    except (OverflowError, ValueError, OSError):
        return None


class PartFile:
    """The bytes of an upload in a local file that is locked while it is written.

    ``publish`` takes the open descriptor of the complete file and gives it its name; ``drop`` removes the file.
    """

    def __init__(
        self, descriptor: int, path: Parts, offset: int, publish: Callable[[int], None], drop: Callable[[], None]
    ) -> None:
        """Take over ``descriptor``. Raises PathConflict, and closes it, for a wrong offset or a locked file."""
        import fcntl  # clients on other systems read this module for its types

        self._path, self._publish, self._drop = path, publish, drop
        self._file = io.FileIO(descriptor, "r+")
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            kept = os.fstat(descriptor).st_size
            if offset > kept:
                raise PathConflict(f"only {kept} bytes of {shown(path)} are here", f"go on from offset {kept}")
            os.ftruncate(descriptor, offset)
            self._file.seek(offset)
            self.size = offset
        except BlockingIOError:
            self._file.close()
            raise PathConflict(
                f"{shown(path)} is being uploaded by another request", "wait until it has ended"
            ) from None
        except BaseException:
            self._file.close()
            raise

    def write(self, data: bytes) -> None:
        """Append."""
        left = memoryview(data)
        while left:
            left = left[self._file.write(left) :]
        self.size += len(data)

    def finish(self, sha256: str) -> None:
        """Check and publish; see :class:`Upload`."""
        if sha256 and self._digest() != sha256:
            self._drop()
            self.close()
            raise PathConflict(f"{shown(self._path)} arrived damaged: its SHA-256 differs", "upload it again")
        os.fsync(self._file.fileno())
        self._publish(self._file.fileno())
        self.close()

    def _digest(self) -> str:
        self._file.seek(0)
        return hashlib.file_digest(self._file, "sha256").hexdigest()

    def close(self) -> None:
        """Release the lock and close the file."""
        self._file.close()
