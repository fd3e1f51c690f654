"""What the backend itself may read for a user: it has rights and credentials that the user has not.

A document can name any place. Tasks read most of them with the rights of the task; the little that the backend reads
(an authFile) must not be a way to its token, to another user's files or into the network it stands in.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Any

from pai_backend.storage.areas import Area, claim, parts_of
from pai_backend.storage.faults import NotAllowed, StorageFault
from pai_backend.storage.fetch import fetch
from pai_backend.storage.local_files import LocalFiles
from pai_backend.storage.uris import StorageLocation, parse

IDENTIFIED = frozenset({"hdfs", "webhdfs", "viewfs"})
"""Schemes that are told who asks, and decide themselves. Not whatever host a document names: WebHDFS is HTTP and
follows redirects, so that would be a way into the network of the backend."""


@dataclass(frozen=True)
class TeamMount:
    """A team storage; no ``users`` means everyone."""

    name: str
    uri: str
    users: tuple[str, ...] = ()

    def granted_to(self, user: str) -> bool:
        """Whether the user may use it."""
        return not self.users or user in self.users


@dataclass(frozen=True)
class StorageReach:
    """The storages of this backend and who may reach what of them.

    ``tasks_share_our_rights`` is true where tasks run as the backend's own user on its machine (the local engine):
    a path of this machine is then no more than any task can read anyway. ``owners`` is true where they run as accounts
    of their users there: files of the default file system then belong to these.
    """

    default_fs_uri: str = ""
    options: Mapping[str, Mapping[str, Any]] = field(default_factory=dict, repr=False)
    mounts: tuple[TeamMount, ...] = ()
    shared: tuple[str, ...] = ()
    tasks_share_our_rights: bool = False
    owners: bool = False

    async def small_file(self, uri: str, user: str, max_bytes: int, timeout_s: float) -> bytes:
        """A file that ``user`` names. Raises StorageFault; NotAllowed when we do not read it for them; Away."""
        place = parse(uri)
        if place.local and not self.tasks_share_our_rights:
            return await asyncio.to_thread(self._read_below_default, place, user, max_bytes)
        known = not place.local and self._known(place, user)
        if not known and not self.tasks_share_our_rights:
            raise NotAllowed(
                f"{place.shown} is not read by the backend", "put it into the default file system or a team storage"
            )
        options = self.options.get(place.scheme, {}) if known else {}
        return await fetch(place, user, max_bytes, options, timeout_s)

    def _known(self, place: StorageLocation, user: str) -> bool:
        """Whether the configuration names this storage, and the user may read this part of it.

        Raises NotAllowed for another user's part of the default file system.
        """
        if any(mount.granted_to(user) and _below(place, parse(mount.uri)) is not None for mount in self.mounts):
            return True
        if place.scheme in IDENTIFIED and _host(place) in self._hosts():
            return True
        inside = _below(place, parse(self.default_fs_uri)) if self.default_fs_uri else None
        return inside is not None and self._theirs(inside, user)

    def _hosts(self) -> set[str]:
        """Hosts of the configured HDFS; its two protocols are on different ports of one."""
        uris = [self.default_fs_uri, *(mount.uri for mount in self.mounts)]
        return {_host(place) for place in (parse(uri) for uri in uris if uri) if place.scheme in IDENTIFIED}

    def _theirs(self, parts: tuple[str, ...], user: str) -> bool:
        return claim(user, False, parts, self.shared).area in (Area.HOME, Area.SHARED)

    def _read_below_default(self, place: StorageLocation, user: str, max_bytes: int) -> bytes:
        """A file of this machine, by names that lead through no link."""
        root = parse(self.default_fs_uri) if self.default_fs_uri else None
        inside = _below(place, root) if root is not None else None
        if root is None or inside is None or not self._theirs(inside, user):
            raise NotAllowed(f"{place.shown} is not read by the backend", "put it into the default file system")
        file = LocalFiles(Path(root.path)).read(inside)
        try:
            data = file.read(max_bytes + 1) or b""
        finally:
            file.close()
        if len(data) > max_bytes:
            raise StorageFault(f"{place.shown} is larger than {max_bytes} bytes", "name the right file")
        return data


def _host(place: StorageLocation) -> str:
    return place.authority.rpartition("@")[2].partition(":")[0].lower()


def _below(place: StorageLocation, root: StorageLocation) -> tuple[str, ...] | None:
    """The names from ``root`` down to ``place``; None when it lies elsewhere."""
    if (place.scheme, place.authority) != (root.scheme, root.authority):
        return None
    try:
        inside = PurePosixPath(place.path).relative_to(root.path)
    except ValueError:
        return None
    return parts_of(str(inside))
