"""Copying a job's inputs into a working directory.

Rules of the file. A copy has its final name only when it is complete, so a final name that is there already is
a finished copy of an earlier try and stays. What an earlier try left half done is removed first.
Everything here blocks.
"""

from __future__ import annotations

import errno
import hashlib
import os
import posixpath
import shutil
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from pai_backend.model.code_tree import BLOBS, split_name
from pai_backend.storage.faults import StorageFault, explained
from pai_backend.storage.filesystems import filesystem, path_in
from pai_backend.storage.tree import (
    EntryKind,
    Tree,
    TreeEntry,
    bounded,
    code_entries,
    local_entries,
    opened,
    remote_entries,
)
from pai_backend.storage.uris import StorageLocation, parse

if TYPE_CHECKING:
    from fsspec import AbstractFileSystem

CHUNK_BYTES = 1 << 20
AT_ONCE = 8  # files read from a remote storage side by side: each costs round trips, not bandwidth
READ_ONLY, READ_ONLY_PROGRAM = 0o444, 0o555

Say = Callable[[str], None]


@dataclass(frozen=True)
class Input:
    """A directory or file to copy: from where, under which base name, and how much of it at most."""

    place: StorageLocation
    name: str
    max_bytes: int


def copy_all(wanted: Sequence[tuple[str, str, int]], work_dir: str, user: str, say: Say) -> None:
    """Copy inputs, given as (URI, name, most bytes), in this order. Raises StorageFault; checks all names first."""
    inputs = [Input(parse(uri), name, max_bytes) for uri, name, max_bytes in wanted]
    _check_names(inputs)
    for item in inputs:
        copy_in(item, Path(work_dir), user, say)


def _check_names(inputs: Sequence[Input]) -> None:
    partial = {_partial(item.name) for item in inputs}
    for number, item in enumerate(inputs):
        if item.name in ("", ".", "..", *partial) or "/" in item.name or "\0" in item.name:
            raise StorageFault(f"{item.place.shown} cannot be copied under the name {item.name!r}", "name a directory")
        if item.name in [other.name for other in inputs[:number]]:
            raise StorageFault(
                f"two inputs would be called {item.name!r} in the working directory", "rename one of the directories"
            )


def _partial(name: str) -> str:
    return f".{name}.part"


def copy_in(item: Input, work_dir: Path, user: str, say: Say) -> None:
    """Copy an input under its name; does nothing when it is there already. Raises StorageFault.

    A copy of a directory is read-only. A code tree is the task's own, and may be written to.
    """
    final, partial = work_dir / item.name, work_dir / _partial(item.name)
    try:
        discard(partial)
        if final.exists():
            say(f"{item.name} is in place already")
            return
        system = None if item.place.local else filesystem(item.place, user=user)
        is_tree = split_name(posixpath.basename(item.place.path)) is not None
        tree, copy = (_code if is_tree else _source)(item, system)
        say(f"copying {item.place.shown} to {item.name}: {tree.files:,} files, {tree.size:,} bytes")
        _make(tree, partial, copy, at_once=1 if system is None else AT_ONCE, read_only=not is_tree)
        os.rename(partial, final)
        if final.is_dir() and not is_tree:
            final.chmod(READ_ONLY_PROGRAM)
        say(f"{item.name} is in place")
    except Exception as error:  # noqa: BLE001 - each library has errors of its own
        raise _at_either_end(error, item.place, partial) from None
    finally:
        discard(partial)


def _at_either_end(error: Exception, place: StorageLocation, partial: Path) -> StorageFault:
    """The fault, at the place read from or at the working directory, whichever the error is about."""
    name, number = getattr(error, "filename", None), getattr(error, "errno", None)
    if number in (errno.ENOSPC, errno.EDQUOT) or (isinstance(name, str | Path) and str(name).startswith(str(partial))):
        return explained(error, StorageLocation("file", "", str(partial.parent)))
    return explained(error, place)


Copy = Callable[[TreeEntry, Path], None]


def _source(item: Input, system: AbstractFileSystem | None) -> tuple[Tree, Copy]:
    """What to copy, and how one file of it is copied."""
    if system is None:
        root = Path(os.path.realpath(item.place.path))
        tree = bounded(local_entries(item.place), item.place, item.max_bytes)
        return tree, lambda entry, target: _copy_local(root / entry.path if entry.path else root, entry, target)
    path = path_in(system, item.place)
    tree = bounded(remote_entries(system, path, item.place), item.place, item.max_bytes)
    return tree, lambda entry, target: _copy_remote(system, path, entry, target)


def _code(item: Input, system: AbstractFileSystem | None) -> tuple[Tree, Copy]:
    """The same of a code tree, whose contents are beside its list."""
    folder, name = posixpath.split(item.place.path if system is None else path_in(system, item.place))
    tree, digests = code_entries(item.place, system, posixpath.join(folder, name), item.max_bytes)

    def copy(entry: TreeEntry, target: Path) -> None:
        digest = digests[entry.path]
        blob = posixpath.join(folder, BLOBS, digest)
        with opened(system, blob) as reader:
            _write(reader, entry, target, digest)

    return tree, copy


def _make(tree: Tree, partial: Path, copy: Copy, at_once: int, *, read_only: bool = True) -> None:
    """Make ``partial`` a copy of the tree, and its directories read-only too."""
    if [entry.path for entry in tree.entries] == [""]:
        copy(tree.entries[0], partial)
        return
    partial.mkdir()
    with ThreadPoolExecutor(at_once, thread_name_prefix="copy") as pool:
        copies = []
        for entry in tree.entries:
            target = partial / entry.path
            if entry.kind is EntryKind.DIRECTORY:
                target.mkdir()
            elif entry.kind is EntryKind.LINK:
                target.symlink_to(entry.target)
            else:
                copies.append(pool.submit(copy, entry, target))
        try:
            for done in copies:
                done.result()
        except BaseException:
            pool.shutdown(cancel_futures=True)
            raise
    for entry in reversed(tree.entries):
        if read_only and entry.kind is EntryKind.DIRECTORY:
            (partial / entry.path).chmod(READ_ONLY_PROGRAM)


def _copy_local(source: Path, entry: TreeEntry, target: Path) -> None:
    with opened(None, str(source)) as reader:
        _write(reader, entry, target)


def _copy_remote(system: AbstractFileSystem, root: str, entry: TreeEntry, target: Path) -> None:
    path = f"{root.rstrip('/')}/{entry.path}" if entry.path else root
    with opened(system, path) as reader:
        _write(reader, entry, target)


def _write(reader: BinaryIO, entry: TreeEntry, target: Path, digest: str = "") -> None:
    """Copy exactly as many bytes as were listed, and with ``digest`` (SHA-256) exactly these. Raises StorageFault."""
    left, sha256 = entry.size, hashlib.sha256()
    with open(target, "xb") as writer:
        while left and (data := reader.read(min(CHUNK_BYTES, left))):
            writer.write(data)
            sha256.update(data)
            left -= len(data)
    if left or reader.read(1) or (digest and sha256.hexdigest() != digest):
        raise StorageFault(
            f"{entry.path or target.name} changed while it was copied", "submit again when it no longer changes"
        )
    if not digest:
        target.chmod(READ_ONLY_PROGRAM if entry.executable else READ_ONLY)
    elif entry.executable:
        target.chmod(0o755)


def discard(path: Path) -> None:
    """Remove a file or a tree, read-only parts too; nothing happens when it is not there. Raises OSError."""
    if path.is_symlink() or path.is_file():
        path.unlink()
    elif path.is_dir():
        for folder, _, _ in os.walk(path):
            os.chmod(folder, 0o700)
        shutil.rmtree(path)
