"""Making a job's output directories. Every task waits for this, so it imports little."""

from __future__ import annotations

import os

from pai_backend.storage.faults import explained
from pai_backend.storage.filesystems import filesystem, path_in
from pai_backend.storage.uris import StorageLocation


def make_directory(place: StorageLocation, user: str) -> None:
    """Make a directory and those above it; one that is there stays as it is. Raises StorageFault."""
    try:
        if place.local:
            os.makedirs(place.path, exist_ok=True)
            return
        system = filesystem(place, user=user)
        path = path_in(system, place)
        system.makedirs(path, exist_ok=True)
    except Exception as error:  # noqa: BLE001 - each library has errors of its own
        raise explained(error, place) from None
