"""Any fsspec file system as the default one.

Most of these can neither append nor be written in the middle. So an upload is kept in a spool directory of this
machine until it is complete, and only then sent: under another name, and renamed, where the storage can rename.
Names that object stores allow and paths do not (empty, ``..``) are left out of listings.
"""

from __future__ import annotations

import hashlib
import os
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pai_backend.storage.areas import OUTPUT, copy_name, is_partial
from pai_backend.storage.faults import Absent, NotAllowed, StorageFault, explained
from pai_backend.storage.files import (
    FileInfo,
    PartFile,
    Parts,
    PathConflict,
    Readable,
    Upload,
    absent,
    grown,
    shown,
    time_of,
)
from pai_backend.storage.filesystems import filesystem, path_in, secret_texts
from pai_backend.storage.uris import StorageLocation

if TYPE_CHECKING:
    from fsspec import AbstractFileSystem

RENAMING = frozenset({"file", "hdfs", "viewfs", "webhdfs", "memory", "sftp", "ssh", "smb", "arrow_hdfs"})
"""Schemes with a rename that is one step. Object stores have none, but a whole object appears at once there."""

FORGOTTEN_S = 7 * 86_400.0
"""How long an unfinished upload is kept that is not gone on with."""


class RemoteFiles:
    """The files below ``root``; uploads are kept in ``spool``. See ``files.Files`` for the promises."""

    def __init__(self, root: StorageLocation, options: Mapping[str, Any], spool: Path) -> None:
        self._root, self._options, self._spool = root, options, spool
        self._secrets = secret_texts(options)

    def stat(self, path: Parts) -> FileInfo:
        """What is there."""
        with self.at(path) as (system, name):
            return _info(path[-1] if path else "", system.info(name))

    def listing(self, path: Parts, after: str, limit: int) -> list[FileInfo]:
        """Entries by name."""
        with self.at(path) as (system, name):
            system.invalidate_cache()
            if system.isfile(name):
                raise PathConflict(f"{shown(path)} is a file", "name a directory")
            found = {_base(info): info for info in self._entries(system, name)}
        names = sorted(entry for entry in found if entry > after and _is_listed(entry))
        return [_info(entry, found[entry]) for entry in names[:limit]]

    @staticmethod
    def _entries(system: AbstractFileSystem, name: str) -> list[dict[str, Any]]:
        """What is in a directory, without the mark of itself that object stores list."""
        return [info for info in system.ls(name, detail=True) if not _same(info, name)]

    def read(self, path: Parts) -> Readable:
        """A file, open."""
        with self.at(path) as (system, name):
            if system.isdir(name):
                raise PathConflict(f"{shown(path)} is a directory", "name a file")
            return _Open(self, path, system.open(name, "rb"))

    def kept(self, path: Parts) -> int:
        """Bytes of an unfinished upload."""
        try:
            return self._spooled(path).stat().st_size
        except FileNotFoundError:
            return 0

    def upload(self, path: Parts, offset: int) -> Upload:
        """Begin or go on."""
        with self.at(path) as (system, name):
            if system.isdir(name):
                raise PathConflict(f"{shown(path)} is a directory", "name a file, or remove the directory first")
        spooled = self._spooled(path)
        self._spool.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._forget_old()
        descriptor = os.open(spooled, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600)

        def publish(_descriptor: int) -> None:
            self.send(spooled, path)
            spooled.unlink()

        return PartFile(descriptor, path, offset, publish, spooled.unlink)

    def send(self, source: Path, path: Parts) -> None:
        """Copy a complete file of this machine there; it gets its name when all of it is there."""
        with self.at(path) as (system, name):
            above = _parent(system, name)
            system.makedirs(above, exist_ok=True)
            renaming = self._root.scheme in RENAMING
            draft = f"{above.rstrip('/')}/{copy_name(path[-1])}" if renaming else name
            try:
                system.put_file(str(source), draft)
                if renaming:
                    self._rename(system, draft, name)
            except BaseException:
                if renaming:
                    with suppress(Exception):  # the upload's own error is the one to tell
                        system.rm(draft)
                raise

    def _rename(self, system: AbstractFileSystem, draft: str, name: str) -> None:
        """Put ``draft`` in the place of ``name``; HDFS does so in one step, others when nothing is in the way."""
        if self._root.scheme in ("hdfs", "viewfs"):
            system.mv(draft, name, overwrite=True)
            return
        if system.exists(name):
            system.rm(name)
        if self._root.scheme == "memory" and system.isdir(draft):
            system.mv(draft, name, recursive=True)  # it copies; the others rename
        else:
            system.mv(draft, name)
        system.invalidate_cache()
        if not system.exists(name):  # WebHDFS says "false" rather than why
            raise StorageFault("the storage did not rename the complete file", "see its log, and upload again")

    def make_directory(self, path: Parts) -> None:
        """With all above it."""
        with self.at(path) as (system, name):
            if system.isfile(name):
                raise PathConflict(f"{shown(path)} is a file", "name a directory")
            system.makedirs(name, exist_ok=True)

    def remove(self, path: Parts, *, recursive: bool) -> None:
        """A file, an empty directory, or with ``recursive`` a whole one."""
        kept = self.kept(path)
        self._spooled(path).unlink(missing_ok=True)
        with self.at(path) as (system, name):
            system.invalidate_cache()
            if kept and not system.exists(name):
                return
            if not recursive and system.isdir(name) and self._entries(system, name):
                raise PathConflict(f"{shown(path)} is not empty", "remove it with all its content")
            system.info(name)  # some libraries remove what is not there
            system.rm(name, recursive=recursive)  # and some have no rmdir

    def copy(self, source: Parts, target: Parts, max_entries: int, max_bytes: int | None = None) -> None:
        """Copy entry by entry, then rename."""
        with self.at(source) as (system, name), self.at(target) as (_, final):
            system.invalidate_cache()
            if system.isdir(final):
                raise PathConflict(f"{shown(target)} is a directory", "name a new path")
            found = system.find(name, withdirs=True, detail=True) or {name: system.info(name)}
            if len(found) > max_entries:
                raise StorageFault("the directory holds too many files to be copied at once", "copy parts of it")
            above = _parent(system, final)
            system.makedirs(above, exist_ok=True)
            renaming = self._root.scheme in RENAMING
            draft = f"{above.rstrip('/')}/{copy_name(target[-1])}" if renaming else final
            try:
                if _copy_tree(system, name, draft, found, max_bytes) is None:
                    raise grown(source)
                if renaming:
                    self._rename(system, draft, final)
            except BaseException:
                with suppress(Exception):  # the copy's own error is the one to tell
                    system.rm(draft, recursive=True)
                raise

    def usage(self, path: Parts) -> int:
        """Bytes of all files below, and of unfinished uploads, where it is the place of a quota."""
        spooled = self._spooled_bytes(path) if path == _place_of(path) else 0
        try:
            with self.at(path) as (system, name):
                return spooled + int(system.du(name, total=True))
        except Absent:
            return spooled

    def _spooled(self, path: Parts) -> Path:
        """The file that keeps an upload; its name begins with the place whose quota it counts for."""
        return self._spool / f"{_digest(_place_of(path))}-{_digest(path)}"

    def _spooled_bytes(self, place: Parts) -> int:
        total = 0
        for each in self._spool.glob(f"{_digest(place)}-*"):
            with suppress(FileNotFoundError):
                total += each.stat().st_size
        return total

    def _forget_old(self) -> None:
        """Remove uploads that were not gone on with for long: they take their user's room, and show nowhere."""
        for each in self._spool.iterdir():
            with suppress(FileNotFoundError):
                if time.time() - each.stat().st_mtime > FORGOTTEN_S:
                    each.unlink()

    @contextmanager
    def at(self, path: Parts) -> Iterator[tuple[AbstractFileSystem, str]]:
        """The file system and its own name for a path; errors in our words, with the user's name for it."""
        place = self._root.below("/".join(path))
        try:
            system = filesystem(self._root, self._options)
            yield system, path_in(system, place)
        except Exception as error:  # noqa: BLE001 - each library has errors of its own
            fault = explained(error, place, self._secrets)
            if isinstance(fault, Absent) and not isinstance(error, StorageFault):
                raise absent(path) from None
            if isinstance(fault, NotAllowed) and not isinstance(error, StorageFault):
                raise NotAllowed(f"the backend has no permission for {shown(path)}", "ask the administrator") from None
            raise fault from None


def _place_of(path: Parts) -> Parts:
    """The directory whose quota a path counts for: see ``room.FileRoom.pool``."""
    return path[: 2 if path[:1] == (OUTPUT,) else 1]


def _digest(path: Parts) -> str:
    return hashlib.sha256("/".join(path).encode()).hexdigest()[:32]


class _Open:
    """An open file of another library, with errors in our words."""

    def __init__(self, files: RemoteFiles, path: Parts, file: Any) -> None:
        self._files, self._path, self._file = files, path, file

    def read(self, size: int) -> bytes:
        with self._files.at(self._path):
            return bytes(self._file.read(size))

    def seek(self, offset: int) -> int:
        with self._files.at(self._path):
            self._file.seek(offset)  # not every library says where it is then
        return offset

    def close(self) -> None:
        with self._files.at(self._path):
            self._file.close()


def _copy_tree(
    system: AbstractFileSystem, name: str, draft: str, found: Mapping[str, Mapping[str, Any]], most: int | None
) -> int | None:
    """Copy what was found; how many bytes, None when it would be more than ``most``."""
    copied = 0
    if system.isdir(name):
        system.makedirs(draft, exist_ok=True)
    for entry in sorted(found):
        place = draft + entry[len(name.rstrip("/")) :]
        if found[entry]["type"] == "directory":
            system.makedirs(place, exist_ok=True)
        else:
            # Through this machine, as most libraries' own copying does, and some lack.
            with system.open(entry, "rb") as reader, system.open(place, "wb") as writer:
                while data := reader.read(1 << 20):
                    copied += len(data)
                    if most is not None and copied > most:
                        return None
                    writer.write(data)
    return copied


def _parent(system: AbstractFileSystem, name: str) -> str:
    """The directory above a name of the file system's own."""
    root: str = system.root_marker
    return root + name.rpartition("/")[0].lstrip(root)


def _base(info: Mapping[str, Any]) -> str:
    return str(info["name"]).rstrip("/").rpartition("/")[2]


def _same(info: Mapping[str, Any], name: str) -> bool:
    return str(info["name"]).strip("/") == name.strip("/")


def _is_listed(name: str) -> bool:
    return name not in ("", ".", "..") and name.isprintable() and not is_partial(name)


def _info(name: str, info: Mapping[str, Any]) -> FileInfo:
    directory = info["type"] == "directory"
    return FileInfo(name, directory, 0 if directory else int(info.get("size") or 0), _modified(info))


def _modified(info: Mapping[str, Any]) -> datetime | None:
    """A time as the libraries give it: milliseconds (HDFS), or a datetime under one of two names."""
    for key in ("modification_time", "modificationTime", "mtime", "LastModified", "created"):
        value = info.get(key)
        if isinstance(value, datetime):
            return value
        if isinstance(value, int | float):
            return time_of(value / 1000 if key.startswith("modification") else value)
    return None
