"""Files of the default file system: who may do what, in errors of the API."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from pai_backend.api.context import ApiContext
from pai_backend.api.wire import FileEntry, FileListing, UploadState
from pai_backend.auth.users import User
from pai_backend.model.errors import (
    FileConflict,
    Forbidden,
    InvalidParameters,
    NoEnoughQuota,
    NoSuchFile,
    NoSuchJob,
    PaiError,
    TooLarge,
    Unavailable,
)
from pai_backend.model.text import Text
from pai_backend.storage.areas import OUTPUT, Area, OwnedPath, claim, parts_of
from pai_backend.storage.faults import Absent, Away, NoRoom, NotAllowed, StorageFault
from pai_backend.storage.files import FileInfo, Parts, PathConflict, Readable, Upload, shown
from pai_backend.storage.quota import Pool
from pai_backend.storage.room import LONG_S, FileRoom

R = TypeVar("R")

CHUNK_BYTES = 1 << 20
MAX_ENTRIES_COPIED = 50_000


class FileService:
    """Reads and writes for a user."""

    def __init__(self, ctx: ApiContext, user: User) -> None:
        self._ctx = ctx
        self._user = user

    @property
    def room(self) -> FileRoom:
        """The files. Raises Unavailable where this process has none."""
        if self._ctx.files is None:
            raise Unavailable(Text("This process serves no files."), hint=Text("Ask the administrator."))
        return self._ctx.files

    async def stat(self, text: str) -> tuple[FileInfo | None, int]:
        """What is there (None: nothing), and how many bytes are kept of an unfinished upload of it."""
        path, where = await self._claimed(text)
        if not path:
            return FileInfo("", True, 0, None), 0
        info, kept = await self.do(lambda: self._look(path))
        if info is None and _is_made_when_used(where):
            info = FileInfo(path[-1], True, 0, None)
        return info, kept

    def _look(self, path: Parts) -> tuple[FileInfo | None, int]:
        kept = self.room.files.kept(path)
        try:
            return self.room.files.stat(path), kept
        except Absent:
            return None, kept

    async def listing(self, text: str, after: str, limit: int) -> FileListing:
        """Entries of a directory by name. At the top, users see what is theirs."""
        path, where = await self._claimed(text)
        if not path and not self._user.admin:
            infos = await self.do(self._top)
        else:
            try:
                infos = await self.do(lambda: self.room.files.listing(path, after, limit + 1))
            except NoSuchFile:
                if not _is_made_when_used(where):
                    raise
                infos = []
        entries = tuple(_entry(info) for info in infos[:limit])
        return FileListing(path=shown(path), data=entries, truncated=len(infos) > limit)

    def _top(self) -> list[FileInfo]:
        found = []
        for name in sorted({self._user.name, *self.room.shared}):
            try:
                found.append(self.room.files.stat((name,)))
            except StorageFault:
                continue  # it is made when something is put there
        return found

    async def open(self, text: str) -> Download:
        """A file to read. Raises NoSuchFile; FileConflict for a directory."""
        path, _ = await self._claimed(text)
        info = await self.do(lambda: self.room.files.stat(path))
        file = await self.do(lambda: self.room.files.read(path))
        return Download(self, file, info)

    async def begin(
        self, text: str, offset: int, length: int | None, sha256: str, *, may_replace: bool = True
    ) -> Receiving:
        """Take bytes of a file from ``offset`` on; ``length`` is that of the whole file, when it is known.

        Raises TooLarge, NoEnoughQuota, FileConflict before any byte is taken: also for a file of that name, unless it
        may be replaced. One that another upload completes meanwhile is replaced.
        """
        path, where = await self._claimed(text, writing=True)
        _refuse_file_at_top(path, where)
        if not may_replace and (await self.do(lambda: self._look(path)))[0] is not None:
            raise FileConflict(
                Text("{path} exists already.", path=shown(path)), hint=Text("Use another name, or remove it first.")
            )
        _check_size(length if length is not None else offset, self.room)
        pool, coming = self.room.pool(self._user.name, where, path), max(0, (length or 0) - offset)
        await self._reserve(pool, coming)
        try:
            replaces = bool(pool.bytes) and (await self.do(lambda: self._look(path)))[0] is not None
            upload = await self.do(lambda: self.room.files.upload(path, offset))
        except BaseException:
            self.room.quotas.release(pool, coming)
            raise
        return Receiving(self, upload, path, length, sha256, QuotaHold(pool, coming, replaces=replaces))

    async def _reserve(self, pool: Pool, size: int) -> None:
        """Take room in the quota, of which others then have as much less. Raises NoEnoughQuota, with nothing taken."""
        with errors():
            free = await self.room.quotas.free(pool)
        if not self.room.quotas.reserve(pool, size):
            raise no_quota(pool, free or 0)

    async def make_directory(self, text: str) -> None:
        """With all above it. Raises FileConflict for a file."""
        path, _ = await self._claimed(text, writing=True)
        await self.do(lambda: self.room.files.make_directory(path))

    async def copy(self, source_text: str, text: str) -> None:
        """Copy a file or a directory. Raises NoSuchFile, FileConflict, NoEnoughQuota."""
        source, _ = await self._claimed(source_text)
        path, where = await self._claimed(text, writing=True)
        if not source or path[: len(source)] == source:
            raise InvalidParameters(
                Text("{source} cannot be copied into itself.", source=shown(source)), hint=Text("Name another place.")
            )
        info = await self.do(lambda: self.room.files.stat(source))
        if not info.directory:
            _refuse_file_at_top(path, where)
        pool, size = self.room.pool(self._user.name, where, path), 0
        if pool.bytes:
            size = await self.do(lambda: self.room.files.usage(source) if info.directory else info.size)
        await self._reserve(pool, size)
        most = size if pool.bytes else None
        try:
            await self.do(lambda: self.room.files.copy(source, path, MAX_ENTRIES_COPIED, most), LONG_S)
        except BaseException:
            self.room.quotas.release(pool, size)
            raise
        else:
            self.room.quotas.wrote(pool, size)  # a measurement under way may have passed its place already
        finally:
            self.room.quotas.shrank(pool)  # what it replaces is gone, and what a failed copy left is not known

    async def remove(self, text: str, *, recursive: bool) -> None:
        """Raises NoSuchFile; FileConflict for a directory that is not empty."""
        path, where = await self._claimed(text, writing=True)
        await self.do(lambda: self.room.files.remove(path, recursive=recursive), LONG_S)
        self.room.quotas.shrank(self.room.pool(self._user.name, where, path))

    async def _claimed(self, text: str, *, writing: bool = False) -> tuple[Parts, OwnedPath]:
        """The path, when the user may reach it. Looks at names only, so that no answer tells what is there."""
        await self._require_here()
        with errors():
            path = parts_of(text)
            where = claim(self._user.name, self._user.admin, path, self.room.shared)
        fixed = where.top and where.area in (Area.TOP, Area.SHARED)
        if writing and fixed and not self._user.admin:
            raise Forbidden(
                Text("{path} itself cannot be changed.", path=shown(path)), hint=Text("Name something below it.")
            )
        if writing and not path:
            raise InvalidParameters(
                Text("The root of the default file system cannot be changed."), hint=Text("Name a path.")
            )
        if writing:
            await self._ctx.need_account(self._user)
        return (await self._output(path, where), where) if where.area is Area.OUTPUT else (path, where)

    async def _require_here(self) -> None:
        """Raises Unavailable where tasks and other processes have another default file system than this one.

        A directory that tasks of other machines have may be absent here: a list would be empty, and what is sent lost.
        """
        place = self._ctx.file_place
        if place is not None and await place.is_elsewhere(self._ctx.store.recovery.log_places):
            raise Unavailable(
                Text(
                    "The default file system of this backend is not in the data directory of the api "
                    "process that was asked."
                ),
                hint=Text(
                    "Ask an administrator to set storage.default_uri, or to let all api and controller "
                    "processes share one data directory (docs/operations.md, Logs and files of several "
                    "replicas)."
                ),
            )
        directory = self._ctx.task_reach.default_directory
        if directory is not None and not await self.room.do(lambda: Path(directory).is_dir()):
            raise Unavailable(
                Text(
                    "The default file system is {directory}, a volume that tasks have and the api process does not.",
                    directory=directory,
                ),
                hint=Text(
                    "Look at the files from a task, or ask an administrator to set storage.default_uri to "
                    "a storage that both reach (docs/storage.md)."
                ),
            )

    async def _output(self, path: Parts, where: OwnedPath) -> Parts:
        """Where the output of the user's own job is. Administrators reach the others' by their real paths.

        Raises Forbidden, also for jobs of others, so that no answer reveals which exist.
        """
        if not where.job:
            return path
        try:
            job = await self._ctx.store.jobs.find(f"{self._user.name}~{where.job}")
        except NoSuchJob:
            if self._user.admin:
                return path
            raise Forbidden(
                Text("/{output}/{job} is not the output of a job of yours.", output=OUTPUT, job=where.job),
                hint=Text("Use /{user}/….", user=self._user.name),
            ) from None
        return (OUTPUT, job.user, job.uid, *path[2:])

    def count(self, size: int) -> None:
        """Count bytes that were written."""
        self._ctx.metrics.file_bytes.inc(size)

    async def do(self, work: Callable[[], R], timeout_s: float | None = None) -> R:
        """Run what blocks, with its faults as errors of the API."""
        with errors():
            return await (self.room.do(work) if timeout_s is None else self.room.do(work, timeout_s))


class Download:
    """An open file on its way out."""

    def __init__(self, service: FileService, file: Readable, info: FileInfo) -> None:
        self._service, self._file, self.info = service, file, info

    async def seek(self, offset: int) -> None:
        """Begin there."""
        await self._service.do(lambda: self._file.seek(offset))

    async def next(self, limit: int) -> bytes:
        """Some bytes; none at the end."""
        return await self._service.do(lambda: self._file.read(min(limit, CHUNK_BYTES))) or b""

    async def close(self) -> None:
        """Close the file."""
        await self._service.do(self._file.close)


@dataclass
class QuotaHold:
    """What an upload has of a quota: ``size`` reserved bytes are its own, to write or to give back."""

    pool: Pool
    size: int
    replaces: bool = False
    """Whether a file of that name goes when it is complete."""


class Receiving:
    """A file on its way in: bytes are gathered to megabytes and written one after the other."""

    def __init__(
        self,
        service: FileService,
        upload: Upload,
        path: Parts,
        length: int | None,
        sha256: str,
        held: QuotaHold,
    ) -> None:
        self._service, self._upload, self._path = service, upload, path
        self._length, self._sha256, self._held = length, sha256, held
        self._waiting = bytearray()
        self._turn = asyncio.Lock()
        self._closed = False

    @property
    def completes(self) -> bool:
        """Whether the file is complete with the bytes that have come."""
        return self._length is None or self._upload.size + len(self._waiting) == self._length

    def add(self, data: bytes) -> Awaitable[None] | None:
        """Take bytes; what is returned must be awaited before more come. Raises TooLarge, NoEnoughQuota."""
        size = self._upload.size + len(self._waiting) + len(data)
        if self._length is not None and size > self._length:
            raise InvalidParameters(Text("The body is longer than `size`."), hint=Text("Correct `size`."))
        _check_size(size, self._service.room)
        self._take(len(data) + len(self._waiting) - self._held.size)
        self._waiting += data
        return self._flush() if len(self._waiting) >= CHUNK_BYTES else None

    def _take(self, more: int) -> None:
        """Reserve what is missing for the bytes that wait. Raises NoEnoughQuota."""
        if more > 0:
            if not self._service.room.quotas.reserve(self._held.pool, more):
                raise no_quota(self._held.pool, 0)
            self._held.size += more

    def _give_back(self) -> None:
        """Release what was reserved and not written."""
        left, self._held.size = self._held.size, 0
        self._service.room.quotas.release(self._held.pool, left)

    async def _flush(self) -> None:
        async with self._turn:
            if self._waiting and not self._closed:
                data = bytes(self._waiting)
                self._waiting.clear()
                with self._counted():
                    await self._service.do(lambda: self._upload.write(data))

    @contextmanager
    def _counted(self) -> Iterator[None]:
        """Count what is written inside, also when it ends with a fault: the bytes before that are kept."""
        before = self._upload.size
        try:
            yield
        except BaseException:
            self._service.room.quotas.shrank(self._held.pool)  # how much there is now is not known
            raise
        finally:
            size = self._upload.size - before
            self._service.count(size)
            self._service.room.quotas.wrote(self._held.pool, size)
            self._held.size -= size

    async def end(self) -> UploadState:
        """The request has ended: complete the file when all of it is here, else keep it. Raises FileConflict.

        Others may go on with it when this returns.
        """
        async with self._turn:
            complete = self.completes
            data, self._closed = bytes(self._waiting), True
            size = self._upload.size + len(data)
            try:
                with self._counted():
                    await self._service.do(lambda: self._end(data, complete=complete), LONG_S)
            finally:
                self._give_back()
                if self._held.replaces:
                    self._service.room.quotas.shrank(self._held.pool)
        return UploadState(path=shown(self._path), kept=0 if complete else size, complete=complete)

    def _end(self, data: bytes, *, complete: bool) -> None:
        """All that is left to do, in one go: a small file costs one turn of a thread."""
        try:
            self._upload.write(data)
            if complete:
                self._upload.finish(self._sha256)
        finally:
            self._upload.close()

    async def close(self) -> None:
        """Keep what came, and let others go on with it. Harmless after :meth:`end`, and twice."""
        try:
            await self._flush()
        finally:
            async with self._turn:
                if not self._closed:
                    self._closed = True
                    self._give_back()
                    await self._service.do(self._upload.close)


@contextmanager
def errors() -> Iterator[None]:
    """Faults of a storage as errors of the API."""
    try:
        yield
    except StorageFault as fault:
        raise _translated(fault) from None


def _translated(fault: StorageFault) -> PaiError:
    kinds: dict[type[StorageFault], type[PaiError]] = {
        Absent: NoSuchFile,
        NotAllowed: Forbidden,
        PathConflict: FileConflict,
        Away: Unavailable,
        NoRoom: NoEnoughQuota,
    }
    kind = kinds.get(type(fault), InvalidParameters)
    return kind(f"{fault.reason[:1].upper()}{fault.reason[1:]}.", hint=f"{fault.remedy[:1].upper()}{fault.remedy[1:]}.")


def _is_made_when_used(where: OwnedPath) -> bool:
    """Whether this is a directory also while nothing is there: it is made when something is put into it."""
    return where.top and where.area in (Area.TOP, Area.HOME, Area.SHARED)


def _refuse_file_at_top(path: Parts, where: OwnedPath) -> None:
    if where.top:
        raise FileConflict(
            Text("{path} can only be a directory.", path=shown(path)),
            hint=Text("Name a file in it, {path}/NAME.", path=shown(path)),
        )


def _check_size(size: int, room: FileRoom) -> None:
    if size > room.max_file_bytes:
        raise TooLarge(
            Text("A file may have {max_file_bytes} bytes at most.", max_file_bytes=room.max_file_bytes),
            hint=Text("Split it, or ask the administrator to raise storage.max_file_bytes."),
        )


def no_quota(pool: Pool, free: int) -> NoEnoughQuota:
    """What does not fit into a quota."""
    places = " and ".join(shown(root) for root in pool.roots)
    return NoEnoughQuota(
        Text(
            "{places} may hold {bytes} bytes; {free} are left for a new file besides the current uploads.",
            places=places,
            bytes=pool.bytes,
            free=free,
        ),
        hint=Text("Remove what is not needed, or ask the administrator to raise storage.quota_bytes."),
    )


def _entry(info: FileInfo) -> FileEntry:
    return FileEntry(
        name=info.name, kind="directory" if info.directory else "file", size=info.size, modified=info.modified
    )
