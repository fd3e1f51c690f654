"""What the engine remembers of images: who ran which, when, and which it fetched itself. Files below its root.

``images/<digest of the name>.json`` is one name's record. Several processes read and write: all of it is done under a
lock of the file system, which ends with the process. All methods block.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import logging
import os
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from pai_backend.engine.local.builder import replace_file

log = logging.getLogger(__name__)

FOLDER: Final = "images"
_CHANGING: Final = "changing.lock"
_REMOVED: Final = "removed"
BUCKETS: Final = 64
"""Locks of names, each of which many names share: a lock file that was given up could not be removed safely."""


@dataclass(frozen=True)
class ImageRecord:
    """What is known of one name of an image.

    ``before``: the identity that the name had before a fetch whose result is not known yet, empty if it had none; None:
    no fetch is under way. ``identities`` are those that the engine fetched under this name. ``used_at``: seconds since
    1970.
    """

    image: str
    users: tuple[str, ...] = ()
    used_at: float = 0.0
    before: str | None = None
    identities: tuple[str, ...] = ()

    def fetched(self, identity: str) -> ImageRecord:
        """Now that the name has this identity; unchanged where that is the one it had before."""
        if self.before is None or identity in ("", self.before):
            return self
        known = tuple(dict.fromkeys((*self.identities, identity)))
        return replace(self, before=None, identities=known)

    def without(self, identity: str) -> ImageRecord | None:
        """Once that image is removed; None when the name had no other."""
        known = tuple(each for each in self.identities if each != identity)
        return replace(self, identities=known) if known else None


class ImageRecords:
    """Those of one engine's root."""

    def __init__(self, root: Path) -> None:
        self._folder = root / FOLDER

    @contextmanager
    def held(self, names: Iterable[str], *, alone: bool = False) -> Iterator[None]:
        """No image of these names is removed within it; with ``alone``, no task that uses one is made either."""
        with ExitStack() as stack:
            for bucket in sorted({int(_digest(name), 16) % BUCKETS for name in names}):
                stack.enter_context(self._locked(f"{bucket}.lock", fcntl.LOCK_EX if alone else fcntl.LOCK_SH))
            yield

    @contextmanager
    def _locked(self, name: str, how: int) -> Iterator[None]:
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        fd = os.open(self._folder / name, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(fd, how)
            yield
        finally:
            os.close(fd)

    def removals(self) -> int:
        """A number that is another one after an image was removed."""
        try:
            return (self._folder / _REMOVED).stat().st_mtime_ns
        except FileNotFoundError:
            return 0

    def note_removal(self) -> None:
        """Let :meth:`removals` change; before the removal, so that none is missed."""
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        now = max(time.time_ns(), self.removals() + 1)
        path = self._folder / _REMOVED
        path.touch(mode=0o600)
        os.utime(path, ns=(now, now))

    def all(self) -> dict[str, ImageRecord]:
        """By name. One that cannot be read is left out."""
        found = (_read(path) for path in self._folder.glob("*.json"))
        return {record.image: record for record in found if record is not None}

    def get(self, image: str) -> ImageRecord:
        """That of a name; an empty one where there is none."""
        return _read(self._path(image)) or ImageRecord(image)

    def change(self, image: str, how: Callable[[ImageRecord], ImageRecord | None]) -> None:
        """Replace the record of a name, or remove it with None. Raises OSError."""
        with self._locked(_CHANGING, fcntl.LOCK_EX):
            before = self.get(image)
            after = how(before)
            if after is None:
                self._path(image).unlink(missing_ok=True)
            elif after != before:
                replace_file(self._path(image), json.dumps(vars(after)).encode())

    def _path(self, image: str) -> Path:
        return self._folder / f"{_digest(image)}.json"


def _digest(image: str) -> str:
    return hashlib.sha256(image.encode("utf-8", "surrogateescape")).hexdigest()


def _read(path: Path) -> ImageRecord | None:
    with suppress(FileNotFoundError):
        try:
            found = json.loads(path.read_bytes())
            return ImageRecord(
                str(found["image"]),
                tuple(map(str, found["users"])),
                float(found["used_at"]),
                None if found["before"] is None else str(found["before"]),
                tuple(map(str, found["identities"])),
            )
        except (OSError, ValueError, TypeError, KeyError) as error:
            if isinstance(error, FileNotFoundError):
                raise
            log.warning("%s does not describe an image and is left out: %s", path, error)
    return None
