"""``upload`` and ``cp``: which way between two places, and what is printed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from jupyter_pai.fs.places import Elsewhere, Here, OfBackend, Place, below, wrong
from jupyter_pai.fs.sources import Found, sources
from jupyter_pai.fs.upload import Uploaded, total_bytes
from pai_backend.model.text import Text

if TYPE_CHECKING:
    from jupyter_pai.sync import Client

Connect = Callable[[], "Client"]


class Bar(Protocol):
    """Shows how far it is."""

    def begin(self, total: int | None) -> None:
        """Bytes to come; None when not known."""
        ...

    def advance(self, size: int) -> None:
        """More bytes are there."""
        ...

    def say(self, text: str) -> None:
        """A line to know meanwhile."""
        ...


@dataclass(frozen=True)
class Transfer:
    """What was done: ``same`` files were there already. None where the storage did it and does not tell."""

    target: str
    files: int | None
    same: int
    size: int | None


def upload(source: Path, target: Place, exclude: Sequence[str], connect: Connect, bar: Bar) -> Transfer:
    """Upload a file or directory. Raises ClientError."""
    if isinstance(target, Here):
        raise wrong(
            Text("{path} is a path of this machine.", path=target.path),
            Text("Name pai://USER/… or a URI, or use `cp`."),
        )
    found = sources(source, exclude, bar.say)
    alone = len(found.files) == 1 and not found.files[0].relative
    bar.begin(total_bytes(found.files))
    if isinstance(target, OfBackend):
        shown, done = _to_backend(found, target, source.name if alone else "", connect(), bar)
    else:
        shown, done = _to_storage(found, target, source.name if alone else "", bar)
    return Transfer(shown, done.sent, done.same, done.size)


def _to_backend(found: Found, target: OfBackend, name: str, client: Client, bar: Bar) -> tuple[str, Uploaded]:
    from jupyter_pai.fs.backend_files import BackendFiles
    from jupyter_pai.fs.upload import upload

    files = BackendFiles(client.api)
    path = target.path
    if name and (target.slash or client.thread.run(files.stat(path)).directory):
        path = below(path, name)
    if not name and not found.files:
        client.thread.run(files.make_directory(path))
    return f"pai:/{path}", client.thread.run(upload(files, found, path, bar.advance))


def _to_storage(found: Found, target: Elsewhere, name: str, bar: Bar) -> tuple[str, Uploaded]:
    from jupyter_pai.fs.direct import DirectStorage

    direct, uri = DirectStorage(target.uri), target.uri
    if name:
        info = direct.stat()
        if target.slash or (info is not None and info.directory):
            uri = below(uri, name)
            direct = DirectStorage(uri)
    elif not found.files:
        direct.make_directory()
    return uri, direct.upload(found, bar.advance)


def copy(source: Place, target: Place, connect: Connect, bar: Bar) -> Transfer:
    """Copy a file or directory between two places. Raises ClientError."""
    if isinstance(source, Here):
        if isinstance(target, Here):
            raise wrong(Text("Both are paths of this machine."), Text("Use your system's cp."))
        return upload(source.path, target, (), connect, bar)
    bar.begin(None)
    if isinstance(target, Here):
        return _download(source, _into(target, _name(source)), connect, bar)
    if isinstance(source, OfBackend) and isinstance(target, OfBackend):
        return _within_backend(source, target, connect())
    if isinstance(source, Elsewhere) and isinstance(target, Elsewhere):
        return _within_storage(source, target)
    raise wrong(Text("These are two storages."), Text("Copy to a directory of this machine, and from there."))


def _within_backend(source: OfBackend, target: OfBackend, client: Client) -> Transfer:
    from jupyter_pai.fs.backend_files import BackendFiles

    files = BackendFiles(client.api)
    path = target.path
    if target.slash or client.thread.run(files.stat(path)).directory:
        path = below(path, _name(source))
    client.thread.run(files.copy(source.path, path))
    return Transfer(f"pai:/{path}", None, 0, None)


def _within_storage(source: Elsewhere, target: Elsewhere) -> Transfer:
    from jupyter_pai.fs.direct import DirectStorage

    origin, end = DirectStorage(source.uri), DirectStorage(target.uri)
    if not origin.same_storage(end):
        raise wrong(Text("These are two storages."), Text("Copy to a directory of this machine, and from there."))
    info = end.stat()
    if target.slash or (info is not None and info.directory):
        target = replace(target, uri=below(target.uri, _name(source)))
        end = DirectStorage(target.uri)
    origin.copy_to(end)
    return Transfer(target.uri, None, 0, None)


def _download(source: OfBackend | Elsewhere, target: Path, connect: Connect, bar: Bar) -> Transfer:
    if isinstance(source, OfBackend):
        from jupyter_pai.fs.backend_files import BackendFiles
        from jupyter_pai.fs.download import download

        client = connect()
        count = client.thread.run(download(BackendFiles(client.api), source.path, target, bar.advance))
    else:
        from jupyter_pai.fs.direct import DirectStorage

        count = DirectStorage(source.uri).download(target, bar.advance)
    return Transfer(str(target), count, 0, None)


def _into(target: Here, name: str) -> Path:
    """``target`` itself, or the name in it when it is a directory."""
    return target.path / name if name and (target.slash or target.path.is_dir()) else target.path


def _name(place: OfBackend | Elsewhere) -> str:
    path = place.path if isinstance(place, OfBackend) else place.uri.partition("://")[2].partition("/")[2]
    return path.rstrip("/").rpartition("/")[2]
