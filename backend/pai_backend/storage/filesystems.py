"""fsspec file systems, opened with what a place, a user and the configuration say.

Start here for anything that is not a path of this machine; those need no fsspec and are handled by ``os``.
"""

from __future__ import annotations

import getpass
import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from pai_backend.storage.faults import StorageFault, explained
from pai_backend.storage.uris import LOCAL, Place

if TYPE_CHECKING:
    from fsspec import AbstractFileSystem

HDFS_USER = "HADOOP_USER_NAME"
"""Environment variable that names the user to HDFS without Kerberos; hdfs-native knows no other way."""


HDFS_OPTIONS = {"dfs.client.failover.max.attempts": "4"}
"""hdfs-native's 15 make it ask a NameNode that is down for three minutes; with 4 it is about ten seconds."""


def filesystem(place: Place, options: Mapping[str, Any] | None = None, user: str = "") -> AbstractFileSystem:
    """The file system that ``place`` is in.

    ``options`` are fsspec's own for the scheme and may hold secrets. ``user`` is who asks: WebHDFS is told
    for this file system alone, ``hdfs://`` by the environment, so only a process of that user may give it.
    Raises StorageFault when no package for the scheme is installed or its server cannot be found.
    """
    given = dict(options or {})
    try:
        from fsspec import available_protocols, get_filesystem_class

        if place.scheme not in available_protocols():
            known = "use file, hdfs, webhdfs or another one that fsspec knows"
            raise StorageFault(f"no storage is called {place.scheme}://", known)
        kind = get_filesystem_class(place.scheme)
        named = {key: value for key, value in kind._get_kwargs_from_urls(place.uri).items() if key != "path"}
        if place.scheme in ("hdfs", "viewfs"):
            given = HDFS_OPTIONS | given
        if place.scheme == "webhdfs" and not {"user", "kerberos", "token"} & (given.keys() | named.keys()):
            named["user"] = user or os.environ.get(HDFS_USER) or getpass.getuser()  # as hdfs:// does by itself
        return kind(**given, **{key: value for key, value in named.items() if value is not None})
    except Exception as error:  # noqa: BLE001 - each library has errors of its own
        raise explained(error, place, secret_texts(options)) from None


def path_in(system: AbstractFileSystem, place: Place) -> str:
    """How the file system itself calls ``place``."""
    path: str = place.path if place.scheme == LOCAL else system._strip_protocol(place.uri)
    return path


def act_as(user: str) -> None:
    """Let HDFS know this process as ``user``, unless its environment names somebody already."""
    if user:
        os.environ.setdefault(HDFS_USER, user)


def secret_texts(options: Mapping[str, Any] | None) -> tuple[str, ...]:
    """All texts in options, however deep: any of them may be a key or a password."""
    found: list[str] = []
    waiting: list[object] = [options or {}]
    while waiting:
        value = waiting.pop()
        if isinstance(value, Mapping):
            waiting.extend(value.values())
        elif isinstance(value, list | tuple):
            waiting.extend(value)
        elif isinstance(value, str) and len(value) >= 4:  # a shorter one would mask ordinary words
            found.append(value)
    return tuple(found)
