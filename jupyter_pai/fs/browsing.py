"""``ls``, ``cat``, ``mkdir`` and ``rm``, whichever way the place is reached."""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING

from jupyter_pai.fs.backend_files import BackendFiles
from jupyter_pai.fs.places import Elsewhere, Here, OfBackend, place, wrong
from jupyter_pai.fs.upload import PART_BYTES
from jupyter_pai.wire_types import FileEntry
from pai_backend.model.text import Text

if TYPE_CHECKING:
    from jupyter_pai.fs.direct import DirectStorage
    from jupyter_pai.sync import Client

Connect = Callable[[], AbstractContextManager["Client"]]


def _storage(word: str) -> OfBackend | DirectStorage:
    found = place(word)
    if isinstance(found, OfBackend):
        return found
    from jupyter_pai.fs.direct import DirectStorage

    if isinstance(found, Here):
        if not word.startswith("file://"):
            raise wrong(
                Text("{word} is a path of this machine.", word=word),
                Text("Name pai://USER/…, or use your system's own program."),
            )
        return DirectStorage(found.path.as_posix())
    assert isinstance(found, Elsewhere)
    return DirectStorage(found.uri)


def entries(word: str, connect: Connect) -> list[FileEntry]:
    """What a directory holds, or the file itself. Raises ClientError."""
    where = _storage(word)
    if not isinstance(where, OfBackend):
        return where.listing()
    with connect() as client:
        files = BackendFiles(client.api)
        there = client.thread.run(files.stat(where.path))
        if there.exists and not there.directory:
            name = where.path.rpartition("/")[2]
            return [{"name": name, "kind": "file", "size": there.size, "modified": None}]
        return client.thread.run(files.listing(where.path))


def content(word: str, connect: Connect) -> Generator[bytes, None, None]:
    """A file's bytes, piece by piece. Raises ClientError."""
    where = _storage(word)
    if not isinstance(where, OfBackend):
        yield from where.read()
        return
    with connect() as client:
        files, offset, version = BackendFiles(client.api), 0, None
        if client.thread.run(files.stat(where.path)).directory:
            raise wrong(Text("{word} is a directory.", word=word), Text("Name a file."))
        while True:
            piece = client.thread.run(files.read(where.path, offset, PART_BYTES))
            if version not in (None, piece.version):
                raise wrong(Text("{word} was changed while it was read.", word=word), Text("Read it again."))
            version, offset = piece.version, offset + len(piece.data)
            yield piece.data
            if offset >= piece.size or not piece.data:
                return


def make_directory(word: str, connect: Connect) -> None:
    """With all above it. Raises ClientError."""
    where = _storage(word)
    if not isinstance(where, OfBackend):
        where.make_directory()
        return
    with connect() as client:
        client.thread.run(BackendFiles(client.api).make_directory(where.path))


def remove(word: str, connect: Connect, *, recursive: bool) -> None:
    """Raises ClientError."""
    where = _storage(word)
    if not isinstance(where, OfBackend):
        where.remove(recursive=recursive)
        return
    with connect() as client:
        client.thread.run(BackendFiles(client.api).remove(where.path, recursive=recursive))
