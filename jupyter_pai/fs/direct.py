"""Files of a storage that is reached from here, without the backend: ``hdfs://``, ``webhdfs://``, ``s3://``, …

With the rights of who runs this: HDFS is told the login name (or ``HADOOP_USER_NAME``), other libraries find
credentials where they always do. Blocks; for the command line and for threads.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from jupyter_pai.errors import BackendAway, ClientError
from jupyter_pai.fs.places import wrong
from jupyter_pai.fs.sources import Found, LocalFile
from jupyter_pai.fs.upload import MARGIN_S, Uploaded
from jupyter_pai.wire_types import FileEntry
from pai_backend.model.text import Text

if TYPE_CHECKING:
    from pai_backend.storage.files import FileInfo, Parts
    from pai_backend.storage.remote_files import RemoteFiles

MAX_ENTRIES = 1_000_000
CHUNK_BYTES = 1 << 20
Progress = Callable[[int], None]


class DirectStorage:
    """One storage, by any URI of it. Raises ClientError."""

    def __init__(self, uri: str) -> None:
        with _errors():
            from pai_backend.storage.remote_files import RemoteFiles
            from pai_backend.storage.uris import StorageLocation, parse

            self._place = parse(uri)
            root = StorageLocation(self._place.scheme, self._place.authority, "/")
            self._files: RemoteFiles = RemoteFiles(root, {}, Path())  # sends whole files, so it needs no spool

    def same_storage(self, other: DirectStorage) -> bool:
        """Whether a copy from one to the other needs no way through here."""
        return (self._place.scheme, self._place.authority) == (other._place.scheme, other._place.authority)

    @property
    def path(self) -> Parts:
        """The names in the URI's path."""
        with _errors():
            from pai_backend.storage.areas import parts_of

            return parts_of(self._place.path)

    def stat(self) -> FileInfo | None:
        """What is there; None for nothing."""
        return self._stat(self.path)

    def _stat(self, path: Parts) -> FileInfo | None:
        from pai_backend.storage.faults import Absent

        with _errors():
            try:
                return self._files.stat(path)
            except Absent:
                return None

    def listing(self) -> list[FileEntry]:
        """Entries of a directory by name, or the file itself."""
        info = self.stat()
        with _errors():
            alone = info is not None and not info.directory
            infos = [info] if alone and info else self._files.listing(self.path, "", MAX_ENTRIES)
        return [_entry(info) for info in infos]

    def read(self) -> Iterator[bytes]:
        """A file's bytes."""
        return self._read(self.path)

    def _read(self, path: Parts) -> Iterator[bytes]:
        with _errors():
            file = self._files.read(path)
            try:
                while data := file.read(CHUNK_BYTES):
                    yield data
            finally:
                file.close()

    def make_directory(self) -> None:
        """With all above it."""
        with _errors():
            self._files.make_directory(self.path)

    def remove(self, *, recursive: bool) -> None:
        """A file, an empty directory, or a whole one."""
        with _errors():
            self._files.remove(self.path, recursive=recursive)

    def copy_to(self, target: DirectStorage) -> None:
        """Within this storage."""
        with _errors():
            self._files.copy(self.path, target.path, MAX_ENTRIES)

    def upload(self, found: Found, progress: Progress) -> Uploaded:
        """Upload everything to this URI. A file that is there already, in full, is left as it is."""
        same, base = 0, self.path
        for folder in found.empty:
            with _errors():
                self._files.make_directory((*base, *folder.split("/")))
        for source in found.files:
            path = (*base, *source.relative.split("/")) if source.relative else base
            if self._is_same(path, source):
                same += 1
            else:
                with _errors():
                    self._files.send(source.path, path)
            progress(source.size)
        return Uploaded(len(found.files) - same, same, sum(source.size for source in found.files))

    def _is_same(self, path: Parts, source: LocalFile) -> bool:
        info = self._stat(path)
        if info is None or info.directory or info.modified is None:
            return False
        return info.size == source.size and info.modified.timestamp() >= source.modified + MARGIN_S

    def download(self, target: Path, progress: Progress) -> int:
        """Copy a file or directory to ``target``; the number of files."""
        info = self.stat()
        if info is None:
            raise ClientError(
                Text("{shown} does not exist.", shown=self._place.shown),
                code="NoFileError",
                hint="`pai fs ls` lists the files.",
            )
        try:
            return self._download(self.path, info, target, progress)
        except OSError as error:
            message = Text(
                "{filename} cannot be written: {strerror}.", filename=error.filename or target, strerror=error.strerror
            )
            raise wrong(message, Text("Choose another place.")) from error

    def _download(self, path: Parts, info: FileInfo, target: Path, progress: Progress) -> int:
        if info.directory:
            target.mkdir(parents=True, exist_ok=True)
            with _errors():
                infos: Sequence[FileInfo] = self._files.listing(path, "", MAX_ENTRIES)
            return sum(self._download((*path, inner.name), inner, target / inner.name, progress) for inner in infos)
        draft = target.with_name(f".{target.name}.part")
        try:
            with draft.open("wb") as file:
                for data in self._read(path):
                    file.write(data)
                    progress(len(data))
            draft.replace(target)
        finally:
            draft.unlink(missing_ok=True)
        return 1


def _entry(info: FileInfo) -> FileEntry:
    modified = info.modified.isoformat() if info.modified is not None else None
    return {
        "name": info.name,
        "kind": "directory" if info.directory else "file",
        "size": info.size,
        "modified": modified,
    }


@contextmanager
def _errors() -> Iterator[None]:
    """Faults of a storage as errors of the command line."""
    from pai_backend.storage.faults import Absent, Away, NotAllowed, StorageFault

    try:
        yield
    except Away as fault:
        raise BackendAway(_sentence(fault.reason), hint=_sentence(fault.remedy)) from None
    except StorageFault as fault:
        codes = {Absent: "NoFileError", NotAllowed: "ForbiddenUserError"}
        code = codes.get(type(fault), "InvalidParametersError")
        raise ClientError(_sentence(fault.reason), code=code, hint=_sentence(fault.remedy)) from None


def _sentence(text: str) -> str:
    return f"{text[:1].upper()}{text[1:]}."
