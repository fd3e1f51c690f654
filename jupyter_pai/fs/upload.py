"""Uploading files to the backend, several side by side, each going on where it was left.

Nothing is remembered here between runs. What the backend has kept of a file is asked for, and whether that was the
same file is decided by the SHA-256 of all of it, which the backend checks before the file gets its name.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import BinaryIO

from jupyter_pai.errors import BackendAway, ClientError
from jupyter_pai.fs.backend_files import BackendFiles, RemoteFile
from jupyter_pai.fs.places import below, wrong
from jupyter_pai.fs.sources import Found, LocalFile, unreadable
from pai_backend.model.text import Text

AT_ONCE = 8
PART_BYTES = 8 * 1024 * 1024
TRIES, FIRST_PAUSE_S = 6, 0.5  # pauses double: a backend that is restarted is back within these 15 s
CONFLICTS = 3
MARGIN_S = 2.0  # that a clock in whole seconds, compared with another, may be off

NOTHING = RemoteFile(exists=False, directory=False, size=0, modified=0.0, kept=0)

Progress = Callable[[int], None]
"""Told how many bytes more are there; fewer than none when some must be sent again."""


@dataclass(frozen=True)
class Uploaded:
    """What an upload did."""

    sent: int  # files
    same: int  # files that were there already
    size: int  # bytes of all of them


async def upload(files: BackendFiles, found: Found, target: str, progress: Progress) -> Uploaded:
    """Upload everything to ``target``, a path of the default file system. Raises ClientError at the first failure."""
    for folder in found.empty:
        await files.make_directory(below(target, folder))
    waiting = list(reversed(found.files))
    known = _Known(files)
    same = 0

    async def worker() -> None:
        nonlocal same
        while waiting:
            source = waiting.pop()
            path = below(target, source.relative) if source.relative else target
            sent = await _upload_file(files, known, source, path, progress)  # not in one line: ``same`` is shared
            same += not sent

    try:
        async with asyncio.TaskGroup() as group:
            for _ in range(min(AT_ONCE, len(found.files))):
                group.create_task(worker())
    except BaseExceptionGroup as failures:
        raise _first(failures) from None
    total = sum(source.size for source in found.files)
    return Uploaded(len(found.files) - same, same, total)


def _first(failures: BaseExceptionGroup[BaseException]) -> BaseException:
    first: BaseException = failures
    while isinstance(first, BaseExceptionGroup):
        first = first.exceptions[0]
    return first


class _Known:
    """What is there already. Directories are listed once: asking for every small file would double the requests."""

    def __init__(self, files: BackendFiles) -> None:
        self._files = files
        self._listings: dict[str, asyncio.Task[dict[str, RemoteFile]]] = {}

    async def at(self, path: str, source: LocalFile, *, fresh: bool) -> RemoteFile:
        """What is at ``path``; of a file that takes several parts also how much is kept."""
        folder, _, name = path.rpartition("/")
        if fresh or not source.relative or source.size > PART_BYTES:
            return await self._files.stat(path)
        if folder not in self._listings:
            self._listings[folder] = asyncio.create_task(self._files.inside(folder))
        return (await asyncio.shield(self._listings[folder])).get(name, NOTHING)


async def _upload_file(files: BackendFiles, known: _Known, source: LocalFile, path: str, progress: Progress) -> bool:
    """Upload one file, again when the backend goes away meanwhile; False when it is there already."""
    counted = 0

    def count(size: int) -> None:
        nonlocal counted
        counted += size
        progress(size)

    pause, conflicts = FIRST_PAUSE_S, 0
    for left in reversed(range(TRIES)):
        try:
            there = await known.at(path, source, fresh=left < TRIES - 1)
            if _is_same(there, source):
                count(source.size)
                return False
            await _send(files, source, path, 0 if conflicts else min(there.kept, source.size), count)
            return True
        except BackendAway:
            if not left:
                raise
        except ClientError as error:
            # What was kept is of another file, or an upload that was killed has not released it yet.
            conflicts += 1
            if error.code != "ConflictFileError" or conflicts == CONFLICTS or there.directory:
                raise
        count(-counted)
        await asyncio.sleep(pause)
        pause *= 2
    return True


def _is_same(there: RemoteFile, source: LocalFile) -> bool:
    """Whether the file was uploaded since it was changed last, as far as size and times tell.

    A path that names a file by its digest has one content for ever.
    """
    unchanged = bool(source.sha256) and there.size == source.size
    unchanged |= there.size == source.size and there.modified >= source.modified + MARGIN_S
    return there.exists and not there.directory and unchanged


async def _send(files: BackendFiles, source: LocalFile, path: str, offset: int, progress: Progress) -> None:
    digest = hashlib.sha256()
    try:
        with await asyncio.to_thread(source.path.open, "rb") as file:
            for begin in range(0, offset, PART_BYTES):
                head = await _part(file, source, min(PART_BYTES, offset - begin))
                digest.update(head)
            progress(offset)
            while True:
                data = await _part(file, source, min(PART_BYTES, source.size - offset))
                digest.update(data)
                last = offset + len(data) == source.size
                sha256 = source.sha256 or digest.hexdigest() if last else ""
                await files.write(path, data, offset=offset, size=source.size, sha256=sha256)
                offset += len(data)
                progress(len(data))
                if last:
                    return
    except OSError as error:
        raise unreadable(source.path, error) from error


async def _part(file: BinaryIO, source: LocalFile, size: int) -> bytes:
    data = await asyncio.to_thread(file.read, size)
    if len(data) < size:
        raise wrong(
            Text("{path} became shorter while it was uploaded.", path=source.path),
            Text("Upload again when no program writes to it."),
        )
    return data


def total_bytes(files: Sequence[LocalFile]) -> int:
    """Bytes of all files, for a progress bar."""
    return sum(file.size for file in files)
