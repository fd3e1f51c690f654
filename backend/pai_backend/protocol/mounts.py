"""Team storages that a v2 document mounts, by ``extras.storages`` or by the older plugin."""

from __future__ import annotations

import posixpath
from collections.abc import Iterable
from dataclasses import dataclass

from pai_backend.model.spec import StorageMount
from pai_backend.model.text import Text
from pai_backend.protocol.fields import Path
from pai_backend.protocol.tree import shown
from pai_backend.protocol.v2_prerequisites import Reading


@dataclass(frozen=True)
class Mount:
    """A storage and where the document names it."""

    storage: StorageMount
    path: Path
    at: int


def mount(name: str, mount_path: str | None, path: Path, at: int, reading: Reading) -> Mount | None:
    """The storage ``name``, mounted at /mnt/``name`` when no path is given; None when the path is faulty.

    A path is absolute and takes no detours, so that nothing is mounted over what the image needs by accident.
    """
    wanted = (mount_path or f"/mnt/{name}").rstrip("/")
    if wanted.startswith("/") and posixpath.normpath(wanted) == wanted:
        return Mount(StorageMount(name=name, mount_path=wanted), path, at)
    if reading.reader.room_for_fault():
        message = Text("storage {name} would not be mounted at an absolute path without detours", name=shown(name))
        reading.reader.fault(path, at, message, Text("Write a mountPath like /mnt/data."))
    return None


def distinct(mounts: Iterable[Mount], reading: Reading) -> tuple[StorageMount, ...]:
    """The storages, each once; two at one place are a fault."""
    seen: dict[str, StorageMount] = {}
    for one in mounts:
        first = seen.setdefault(one.storage.mount_path, one.storage)
        if first != one.storage and reading.reader.room_for_fault():
            message = Text(
                "the storages {first} and {storage} are mounted at one place",
                first=shown(first.name),
                storage=shown(one.storage.name),
            )
            reading.reader.fault(one.path, one.at, message, Text("Give each its own mountPath."))
    return tuple(seen.values())
