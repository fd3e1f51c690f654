"""What a directory holds, listed before anything is copied, so that too much is refused at once.

A symbolic link of this machine's file system stays a link when it leads to something in the directory itself.
One that leads outside is refused: a copy of the directory would otherwise hold a file that the user did not put there,
and a copy of the link would lead somewhere else on another machine.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, Any, BinaryIO, cast

from pai_backend.model import code_tree
from pai_backend.storage.faults import StorageFault
from pai_backend.storage.uris import StorageLocation

if TYPE_CHECKING:
    from fsspec import AbstractFileSystem

MAX_ENTRIES = 50_000
"""Files, links and directories of one input; OpenPAI's 200 MB at 4 KB each, the block of a usual disk."""


class EntryKind(Enum):
    """What an entry is; there is nothing else in a tree."""

    FILE = "file"
    DIRECTORY = "directory"
    LINK = "link"


@dataclass(frozen=True)
class TreeEntry:
    """One thing in a tree. ``path`` is relative with ``/`` between names; empty when the tree is one file."""

    path: str
    kind: EntryKind
    size: int = 0  # bytes of a file
    executable: bool = False
    target: str = ""  # of a link, relative to the directory it is in


@dataclass(frozen=True)
class Tree:
    """A listed tree: directories stand before what is in them."""

    entries: tuple[TreeEntry, ...]

    @property
    def files(self) -> int:
        """How many files it has."""
        return sum(entry.kind is EntryKind.FILE for entry in self.entries)

    @property
    def size(self) -> int:
        """Bytes of all its files."""
        return sum(entry.size for entry in self.entries)


def bounded(
    entries: Iterator[TreeEntry], place: StorageLocation, max_bytes: int, max_entries: int = MAX_ENTRIES
) -> Tree:
    """All of ``entries``. Raises StorageFault at the first one that is too much."""
    kept: list[TreeEntry] = []
    size = 0
    for entry in entries:
        kept.append(entry)
        size += entry.size
        if size > max_bytes:
            raise StorageFault(
                f"{place.shown} is larger than the {max_bytes:,} bytes that are copied into a task",
                "keep data elsewhere and read it through dataDir",
            )
        if len(kept) > max_entries:
            raise StorageFault(
                f"{place.shown} holds more than {max_entries:,} files and directories", "pack them into an archive"
            )
    return Tree(tuple(kept))


def local_entries(place: StorageLocation) -> Iterator[TreeEntry]:
    """The entries of a path of this machine. Raises OSError, and StorageFault for what cannot be copied."""
    root = os.path.realpath(place.path)  # the place itself may be named through links
    top = os.stat(root)
    if not stat.S_ISDIR(top.st_mode):
        yield _file(place, "", top)
        return
    waiting = [""]
    while waiting:
        folder = waiting.pop()
        with os.scandir(os.path.join(root, folder)) as found:
            children = sorted(found, key=lambda child: child.name)
        for child in children:
            path = f"{folder}/{child.name}" if folder else child.name
            if child.is_symlink():
                yield TreeEntry(path, EntryKind.LINK, target=_inside(place, root, path))
            elif child.is_dir(follow_symlinks=False):
                yield TreeEntry(path, EntryKind.DIRECTORY)
                waiting.append(path)
            else:
                yield _file(place, path, child.stat(follow_symlinks=False))


def _file(place: StorageLocation, path: str, status: os.stat_result) -> TreeEntry:
    if not stat.S_ISREG(status.st_mode):
        raise StorageFault(f"{_named(place, path)} is neither a file nor a directory", "remove it")
    return TreeEntry(path, EntryKind.FILE, status.st_size, bool(status.st_mode & stat.S_IXUSR))


def _inside(place: StorageLocation, root: str, path: str) -> str:
    """Where the link at ``path`` leads, from its own directory. Raises StorageFault when that is outside."""
    link = os.path.join(root, path)
    target = os.path.realpath(link)
    if os.path.commonpath([root, target]) != root:
        raise StorageFault(
            f"{_named(place, path)} is a symbolic link that leads outside of {place.shown}",
            "put a copy of what it leads to in its place, or remove it",
        )
    return os.path.relpath(target, os.path.dirname(link))


def remote_entries(system: AbstractFileSystem, path: str, place: StorageLocation) -> Iterator[TreeEntry]:
    """The entries of a directory of an fsspec file system; raises what its library raises, and StorageFault."""
    system.invalidate_cache()
    top = system.info(path)
    if top["type"] == "file":
        yield _remote_file(place, "", top)
        return
    waiting = [""]
    while waiting:
        folder = waiting.pop()
        for info in sorted(system.ls(_joined(path, folder), detail=True), key=lambda info: str(info["name"])):
            name = str(info["name"]).rstrip("/").rpartition("/")[2]
            child = f"{folder}/{name}" if folder else name
            if _same(str(info["name"]), _joined(path, folder)):
                continue  # object stores list the mark of a directory in the directory
            if name in ("", ".", "..") or "\0" in name:
                raise StorageFault(f"{place.shown} holds a file that cannot be called {name!r} here", "rename it")
            if info["type"] == "directory":
                yield TreeEntry(child, EntryKind.DIRECTORY)
                waiting.append(child)
            else:
                yield _remote_file(place, child, info)


def opened(system: AbstractFileSystem | None, path: str) -> BinaryIO:
    """A file to read, of ``system`` or else of this machine. Raises OSError, or what the library of ``system`` raises.

    Neither a link nor a FIFO that took a file's place since it was listed is followed or waited for.
    """
    if system is not None:
        return cast(BinaryIO, system.open(path, "rb"))
    return open(os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK), "rb")


def code_entries(
    place: StorageLocation, system: AbstractFileSystem | None, path: str, max_bytes: int
) -> tuple[Tree, dict[str, str]]:
    """What a code tree holds, and the SHA-256 of each file by its path.

    Raises StorageFault for a list that is damaged or leads out of the tree, and what reading it raises.
    """
    _, digest = code_tree.split_name(path.rpartition("/")[2]) or ("", "")
    with opened(system, path) as file:
        data = file.read(code_tree.MOST_LIST_BYTES + 1)
    try:
        listed = code_tree.read(data, digest)
    except ValueError as error:
        raise StorageFault(f"{place.shown} cannot be used: {error}", "upload the directory again") from None
    folders = {folder for entry in listed for folder in _above(entry.path)}
    entries = [TreeEntry(folder, EntryKind.DIRECTORY) for folder in sorted(folders)]
    for entry in listed:
        kind = EntryKind.LINK if entry.target else EntryKind.FILE
        entries.append(TreeEntry(entry.path, kind, entry.size, entry.executable, entry.target))
    tree = bounded(iter(entries), place, max_bytes, 2 * MAX_ENTRIES)  # directories are not in the list
    return tree, {entry.path: entry.digest for entry in listed}


def _above(path: str) -> Iterator[str]:
    while path := path.rpartition("/")[0]:
        yield path


def _remote_file(place: StorageLocation, path: str, info: dict[str, Any]) -> TreeEntry:
    if info["type"] != "file":
        raise StorageFault(f"{_named(place, path)} is neither a file nor a directory", "remove it")
    if info.get("size") is None:
        raise StorageFault(f"{place.scheme}:// does not tell the size of {_named(place, path)}", "name another place")
    return TreeEntry(path, EntryKind.FILE, int(info["size"]))


def _joined(path: str, relative: str) -> str:
    return f"{path.rstrip('/')}/{relative}" if relative else path


def _same(one: str, other: str) -> bool:
    return one.strip("/") == other.strip("/")


def _named(place: StorageLocation, path: str) -> str:
    return f"{place.shown.rstrip('/')}/{path}" if path else place.shown
