"""A code tree: a directory as a list of files by their SHA-256, so that what two trees share is kept once.

``<name>.<SHA-256 of the list>.tree`` is the list, a JSON text. Contents are in ``blobs/<SHA-256>`` beside it. A
``codeDir`` that is called so is put together in a task's working directory under ``<name>``. Its name says what is in
it, so that it is the same whenever the job runs again.
"""

from __future__ import annotations

import hashlib
import json
import posixpath
import re
from collections.abc import Iterable
from dataclasses import dataclass

BLOBS = "blobs"
"""The directory of contents, beside the trees."""
TREE_BYTES = 2_000_000_000
"""The most that a tree may hold: it is copied into each task."""
MOST_ENTRIES = 50_000
MOST_LIST_BYTES = 64 << 20
"""A list of as many entries as are allowed, with the longest usual paths."""

_DIGEST = re.compile(r"[0-9a-f]{64}")
_FILE = re.compile(rf"(?P<name>[^/]+)\.(?P<digest>{_DIGEST.pattern})\.tree")


@dataclass(frozen=True)
class CodeEntry:
    """A file or symbolic link. ``path`` has ``/`` between names; ``target`` of a link stays in the tree."""

    path: str
    size: int = 0
    digest: str = ""
    executable: bool = False
    target: str = ""


def split_name(file: str) -> tuple[str, str] | None:
    """The name and digest in a tree's file name; None for any other file."""
    found = _FILE.fullmatch(file)
    return (found["name"], found["digest"]) if found else None


def written(entries: Iterable[CodeEntry]) -> tuple[bytes, str]:
    """A tree's list and its digest; the same for the same entries in any order."""
    rows = [
        {"path": entry.path, "link": entry.target}
        if entry.target
        else {"path": entry.path, "size": entry.size, "sha256": entry.digest, "executable": entry.executable}
        for entry in sorted(entries, key=lambda entry: entry.path)
    ]
    data = json.dumps({"version": 1, "entries": rows}, separators=(",", ":")).encode()
    return data, hashlib.sha256(data).hexdigest()


def read(data: bytes, digest: str) -> tuple[CodeEntry, ...]:
    """The entries of a list. Raises ValueError, with the reason, when it is damaged or leads out of the tree."""
    if hashlib.sha256(data).hexdigest() != digest:
        raise ValueError("its content is not what its name says")
    try:
        rows = json.loads(data)["entries"]
        entries = tuple(_entry(row) for row in rows)
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise ValueError("it is not a list of files") from error
    if len(entries) > MOST_ENTRIES:
        raise ValueError(f"it has more than {MOST_ENTRIES:,} files")
    taken = {entry.path for entry in entries}
    if len(taken) < len(entries):
        raise ValueError("it has a path twice")
    for entry in entries:
        _check(entry, taken)
    return entries


def _entry(row: dict[str, object]) -> CodeEntry:
    path = str(row["path"])
    if "link" in row:
        return CodeEntry(path, target=str(row["link"]) or ".")
    size, digest = row["size"], str(row["sha256"])
    if type(size) is not int or size < 0 or not _DIGEST.fullmatch(digest):
        raise ValueError
    return CodeEntry(path, size, digest, row.get("executable") is True)


def _check(entry: CodeEntry, taken: set[str]) -> None:
    parts = entry.path.split("/")
    if any(part in ("", ".", "..") or "\0" in part for part in parts):
        raise ValueError(f"{entry.path!r} is not a path in a directory")
    above = posixpath.dirname(entry.path)
    while above:
        if above in taken:
            raise ValueError(f"{above!r} is a file, and has a file in it")
        above = posixpath.dirname(above)
    if not entry.target:
        return
    # Up first and then down only: a step up behind a link would start where that leads to.
    target = entry.target.split("/")
    ups = next((number for number, part in enumerate(target) if part != ".."), len(target))
    if ups >= len(parts) or ".." in target[ups:] or entry.target.startswith("/") or "\0" in entry.target:
        raise ValueError(f"{entry.path!r} is a link that leads out of the directory")
