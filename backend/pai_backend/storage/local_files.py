"""A directory of this machine as the default file system.

Rules of the file. Every name is opened relative to its open directory and never through a symbolic link, so that no
link, by any author and however fast it is swapped, leads a request out of the root or into another user's
directory. What is written has another name until it is complete.
"""

from __future__ import annotations

import errno
import heapq
import io
import os
import shutil
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from pai_backend.storage.areas import MAX_DEPTH, copy_name, is_partial, partial_name
from pai_backend.storage.faults import Absent, NoRoom, NotAllowed, StorageFault
from pai_backend.storage.files import (
    CHUNK_BYTES,
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

_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW
_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK  # a FIFO is not waited for
_HIDDEN = frozenset({errno.ENOENT, errno.EACCES, errno.EPERM, errno.ELOOP, errno.EMLINK, errno.ENOTDIR})
_NO_LINK = frozenset({errno.ELOOP, errno.EMLINK, errno.ENOTDIR})


class LocalFiles:
    """The files below ``root``, which is made when it is first written to. See ``files.Files`` for the promises."""

    def __init__(self, root: Path, *, owners: bool = False) -> None:
        """With ``owners`` what is made belongs to the account that its directory belongs to; for root alone."""
        self._root = root
        self._owners = owners

    def stat(self, path: Parts) -> FileInfo:
        """What is there."""
        with _faults(path):
            if not path:
                return FileInfo("", True, 0, time_of(os.stat(self._root).st_mtime))
            with self._folder(path[:-1]) as folder:
                return _info(path[-1], os.stat(path[-1], dir_fd=folder, follow_symlinks=False), path)

    def listing(self, path: Parts, after: str, limit: int) -> list[FileInfo]:
        """Entries by name; links and special files are left out."""
        with _faults(path), self._folder(path) as folder, os.scandir(folder) as found:
            names = heapq.nsmallest(limit, (e.name for e in found if e.name > after and _is_listed(e)))
            return list(_infos(folder, names, path))

    def read(self, path: Parts) -> Readable:
        """A file, open."""
        with _faults(path), self._folder(path[:-1]) as folder:
            file = io.FileIO(os.open(path[-1] if path else ".", _FILE, dir_fd=folder), "r")
            mode = os.fstat(file.fileno()).st_mode
            if not stat.S_ISREG(mode):
                file.close()
                raise PathConflict(
                    f"{shown(path)} is {'a directory' if stat.S_ISDIR(mode) else 'no file'}", "name a file"
                )
            return file

    def kept(self, path: Parts) -> int:
        """Bytes of an unfinished upload."""
        try:
            with _faults(path), self._folder(path[:-1]) as folder:
                return os.stat(partial_name(path[-1]), dir_fd=folder, follow_symlinks=False).st_size
        except StorageFault:
            return 0

    def upload(self, path: Parts, offset: int) -> Upload:
        """Begin or go on."""
        with _faults(path), self._folder(path[:-1], make=True) as folder:
            self._refuse_directory(path, folder)
            name, keep = partial_name(path[-1]), os.dup(folder)

            def publish(_descriptor: int) -> None:
                with _faults(path):
                    os.rename(name, path[-1], src_dir_fd=keep, dst_dir_fd=keep)
                    os.fsync(keep)

            try:
                descriptor = os.open(name, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o644, dir_fd=folder)
                if self._owners:
                    _hand_on(descriptor, folder)
                part = PartFile(descriptor, path, offset, publish, lambda: os.unlink(name, dir_fd=keep))
            except BaseException:
                os.close(keep)
                raise
            return _Upload(part, path, keep)

    def make_directory(self, path: Parts) -> None:
        """With all above it."""
        with _faults(path), self._folder(path, make=True):
            return

    def remove(self, path: Parts, *, recursive: bool) -> None:
        """A file, an empty directory, or with ``recursive`` a whole one; links in it are removed, not followed."""
        with _faults(path), self._folder(path[:-1]) as folder:
            with suppress(FileNotFoundError):
                os.unlink(partial_name(path[-1]), dir_fd=folder)
                if not _there(path[-1], folder):
                    return
            mode = os.stat(path[-1], dir_fd=folder, follow_symlinks=False).st_mode
            if not stat.S_ISDIR(mode):
                os.unlink(path[-1], dir_fd=folder)
            elif recursive:
                _refuse_depth(folder, path[-1], path)
                shutil.rmtree(path[-1], dir_fd=folder)
            else:
                os.rmdir(path[-1], dir_fd=folder)

    def copy(self, source: Parts, target: Parts, max_entries: int, max_bytes: int | None = None) -> None:
        """Copy under the name of an upload, then rename."""
        left = _Left(max_entries, max_bytes)
        with _faults(source), self._folder(source[:-1]) as origin, self._folder(target[:-1], make=True) as folder:
            self._refuse_directory(target, folder)
            name = copy_name(target[-1])
            _refuse_depth(origin, source[-1], source)
            try:
                _copy_entry(origin, source[-1], folder, name, source, left, owners=self._owners)
                with _faults(target):
                    os.rename(name, target[-1], src_dir_fd=folder, dst_dir_fd=folder)
            except BaseException:
                _discard(folder, name)
                raise

    def usage(self, path: Parts) -> int:
        """Bytes of all files below, but not where nested very deeply; one with several names counts each time."""
        try:
            with _faults(path), self._folder(path) as folder:
                return _usage(folder, 2 * MAX_DEPTH)
        except Absent:
            return 0

    @contextmanager
    def _folder(self, path: Parts, *, make: bool = False) -> Iterator[int]:
        """The directory at ``path``, open."""
        if make:
            self._root.mkdir(mode=0o700, parents=True, exist_ok=True)
        folder = os.open(self._root, os.O_RDONLY | os.O_DIRECTORY)  # the root itself may be reached through links
        try:
            for name in path:
                made = make and self._make(name, folder)
                inner = os.open(name, _DIRECTORY, dir_fd=folder)
                try:
                    if made and self._owners:
                        _hand_on(inner, folder)
                finally:
                    os.close(folder)
                    folder = inner
            yield folder
        finally:
            os.close(folder)

    @staticmethod
    def _make(name: str, folder: int) -> bool:
        """Make a directory; False when there is something of that name."""
        try:
            os.mkdir(name, 0o755, dir_fd=folder)
        except FileExistsError:
            return False
        return True

    @staticmethod
    def _refuse_directory(path: Parts, folder: int) -> None:
        with suppress(FileNotFoundError):
            if stat.S_ISDIR(os.stat(path[-1], dir_fd=folder, follow_symlinks=False).st_mode):
                raise PathConflict(f"{shown(path)} is a directory", "name a file, or remove the directory first")


class _Upload:
    """A part file and the directory that it is in, closed together; errors in our words."""

    def __init__(self, part: PartFile, path: Parts, folder: int) -> None:
        self._part, self._path, self._folder = part, path, folder

    @property
    def size(self) -> int:
        return self._part.size

    def write(self, data: bytes) -> None:
        with _faults(self._path):
            self._part.write(data)

    def finish(self, sha256: str) -> None:
        with _faults(self._path):
            self._part.finish(sha256)

    def close(self) -> None:
        self._part.close()
        if self._folder >= 0:
            os.close(self._folder)
            self._folder = -1


@contextmanager
def _faults(path: Parts) -> Iterator[None]:
    """The system's errors as faults at ``path``."""
    try:
        yield
    except (FileNotFoundError, IsADirectoryError) as error:
        if isinstance(error, IsADirectoryError):
            raise PathConflict(f"{shown(path)} is a directory", "name a file") from None
        raise absent(path) from None
    except PermissionError:
        raise NotAllowed(f"the backend has no permission for {shown(path)}", "ask the administrator") from None
    except OSError as error:
        if error.errno in _NO_LINK:
            message = f"{shown(path)} leads through a file or a symbolic link"
            raise PathConflict(message, "name a path of directories; links are not followed here") from None
        if error.errno == errno.ENOTEMPTY:
            raise PathConflict(
                f"{shown(path)} is not empty", "remove it with all its content, unfinished uploads too"
            ) from None
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise NoRoom("no room is left in the default file system", "remove what is not needed") from None
        raise StorageFault(f"{shown(path)}: {error.strerror}", "check the path") from None


def _there(name: str, folder: int) -> bool:
    try:
        os.stat(name, dir_fd=folder, follow_symlinks=False)
    except FileNotFoundError:
        return False
    return True


def _is_listed(entry: os.DirEntry[str]) -> bool:
    regular = entry.is_dir(follow_symlinks=False) or entry.is_file(follow_symlinks=False)
    return regular and not is_partial(entry.name) and entry.name.isprintable()


def _infos(folder: int, names: list[str], path: Parts) -> Iterator[FileInfo]:
    for name in names:
        with suppress(FileNotFoundError):  # removed meanwhile
            yield _info(name, os.stat(name, dir_fd=folder, follow_symlinks=False), (*path, name))


def _info(name: str, status: os.stat_result, path: Parts) -> FileInfo:
    directory = stat.S_ISDIR(status.st_mode)
    if not directory and not stat.S_ISREG(status.st_mode):
        raise PathConflict(f"{shown(path)} is a symbolic link or a special file", "name a file or a directory")
    return FileInfo(name, directory, 0 if directory else status.st_size, time_of(status.st_mtime))


def _usage(folder: int, left: int) -> int:
    """What a task hides, by its mode or by a link in its place, is left out. Raises OSError for any other fault:
    files that could not be counted must not leave room for others.
    """
    total = 0
    with os.scandir(folder) as found:
        for entry in found:
            try:
                if not entry.is_dir(follow_symlinks=False):
                    total += entry.stat(follow_symlinks=False).st_size
                    continue
                inner = os.open(entry.name, _DIRECTORY, dir_fd=folder) if left else -1
            except OSError as error:
                if error.errno not in _HIDDEN:
                    raise
                continue
            if left:
                try:
                    total += _usage(inner, left - 1)
                finally:
                    os.close(inner)
    return total


def _refuse_depth(folder: int, name: str, path: Parts, left: int = 2 * MAX_DEPTH) -> None:
    """Refuse a tree that a task has nested so deeply that walking it would take all open files of this process."""
    if left == 0:
        raise StorageFault(f"{shown(path[:1])} holds directories nested too deeply", "let a task work on them")
    try:
        inner = os.open(name, _DIRECTORY, dir_fd=folder)
    except NotADirectoryError:
        return
    try:
        with os.scandir(inner) as found:
            for child in [entry.name for entry in found if entry.is_dir(follow_symlinks=False)]:
                _refuse_depth(inner, child, path, left - 1)
    finally:
        os.close(inner)


def _hand_on(made: int, folder: int) -> None:
    """Give what we just made to whom its directory belongs to; below one that all accounts write to it is as that.
    Below another one of ours it is for administrators.

    What is not ours, or has another name, too, is left alone: an account may have put it in the place of ours.
    """
    above, about = os.fstat(folder), os.fstat(made)
    if about.st_uid != os.geteuid() or (stat.S_ISREG(about.st_mode) and about.st_nlink != 1):
        return
    shared = above.st_mode & stat.S_ISVTX
    if shared and stat.S_ISDIR(about.st_mode):
        os.fchmod(made, stat.S_IMODE(above.st_mode))
    if above.st_uid != about.st_uid:
        os.fchown(made, above.st_uid, above.st_gid)
    elif not shared:
        os.fchmod(made, stat.S_IMODE(about.st_mode) & 0o700)


@dataclass
class _Left:
    """What may still be copied. ``bytes``: None without a limit."""

    entries: int
    bytes: int | None


def _copy_entry(origin: int, name: str, folder: int, new: str, path: Parts, left: _Left, *, owners: bool) -> None:
    """Copy one entry from an open directory into another, and what is in it; ``left`` is counted down."""
    left.entries -= 1
    if left.entries < 0:
        raise StorageFault("the directory holds too many files to be copied at once", "copy parts of it")
    mode = os.stat(name, dir_fd=origin, follow_symlinks=False).st_mode
    if stat.S_ISREG(mode):
        with (
            open(os.open(name, _FILE, dir_fd=origin), "rb") as reader,
            open(os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o644, dir_fd=folder), "wb") as writer,
        ):
            if owners:
                _hand_on(writer.fileno(), folder)
            while data := reader.read(CHUNK_BYTES):
                if left.bytes is not None:
                    left.bytes -= len(data)
                    if left.bytes < 0:
                        raise grown(path)
                writer.write(data)
        return
    if not stat.S_ISDIR(mode):
        raise PathConflict(f"{shown(path)} holds a symbolic link or special file ({name})", "remove it first")
    os.mkdir(new, 0o755, dir_fd=folder)
    inner = os.open(name, _DIRECTORY, dir_fd=origin)
    try:
        copied = os.open(new, _DIRECTORY, dir_fd=folder)
        try:
            if owners:
                _hand_on(copied, folder)
            for child in sorted(os.listdir(inner)):
                _copy_entry(inner, child, copied, child, (*path, child), left, owners=owners)
        finally:
            os.close(copied)
    finally:
        os.close(inner)


def _discard(folder: int, name: str) -> None:
    """Remove a copy that was not finished."""
    try:
        os.unlink(name, dir_fd=folder)
    except FileNotFoundError:
        return
    except (IsADirectoryError, PermissionError):  # unlink(2) of a directory: EISDIR on Linux, EPERM elsewhere
        shutil.rmtree(name, dir_fd=folder)
