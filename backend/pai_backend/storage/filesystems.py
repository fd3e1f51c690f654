"""fsspec file systems, opened with what a place, a user and the configuration say.

Start here for anything that is not a path of this machine; those need no fsspec and are handled by ``os``.

This is the only module that uses methods of fsspec that are for its implementations: they take a URI apart without
opening anything, and know no chains (``zip::file:///``). A release without them is used by ``url_to_fs`` (ADR 0032).
"""

from __future__ import annotations

import getpass
import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from pai_backend.storage.faults import StorageFault, explained
from pai_backend.storage.uris import LOCAL, StorageLocation

if TYPE_CHECKING:
    from fsspec import AbstractFileSystem

HDFS_USER = "HADOOP_USER_NAME"
"""Environment variable that names the user to HDFS without Kerberos; hdfs-native knows no other way."""


HDFS_OPTIONS = {"dfs.client.failover.max.attempts": "4"}
"""hdfs-native's 15 make it ask a NameNode that is down for three minutes; with 4 it is about ten seconds."""


def filesystem(place: StorageLocation, options: Mapping[str, Any] | None = None, user: str = "") -> AbstractFileSystem:
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
        if place.scheme in ("hdfs", "viewfs"):
            given = HDFS_OPTIONS | given
        parses = _can_parse(kind)
        named = _named(kind, place) if parses else {}
        says_who = {"user", "kerberos", "token"} & (given.keys() | named.keys()) or "@" in place.authority
        if place.scheme == "webhdfs" and not says_who:
            named["user"] = user or os.environ.get(HDFS_USER) or getpass.getuser()  # as hdfs:// does by itself
        return kind(**given, **named) if parses else _by_url_to_fs(place, given | named)[0]
    except Exception as error:  # noqa: BLE001 - each library has errors of its own
        raise explained(error, place, secret_texts(options)) from None


def path_in(system: AbstractFileSystem, place: StorageLocation) -> str:
    """How the file system itself calls ``place``."""
    if place.scheme == LOCAL:
        return place.path
    if not _can_parse(type(system)):
        return _by_url_to_fs(place, system.storage_options)[1]
    path: str = system._strip_protocol(place.uri)
    return path


def _named(kind: type[AbstractFileSystem], place: StorageLocation) -> dict[str, Any]:
    """What a URI says of the storage and of who asks: options of its file system."""
    found = kind._get_kwargs_from_urls(place.uri).items()
    return {key: value for key, value in found if key != "path" and value is not None}


def _can_parse(kind: type[AbstractFileSystem]) -> bool:
    """Whether the installed fsspec has the two methods that are used here; the log says once if it has not."""
    if kind not in _parses:
        _parses[kind] = _has_both(kind)
    return _parses[kind]


_parses: dict[type[AbstractFileSystem], bool] = {}


def _has_both(kind: type[AbstractFileSystem]) -> bool:
    found = all(callable(getattr(kind, name, None)) for name in ("_get_kwargs_from_urls", "_strip_protocol"))
    if not found:
        import logging  # a task's staging waits for every import

        text = "this fsspec takes no URIs apart as releases before it did: %s is opened by url_to_fs (ADR 0032)"
        logging.getLogger(__name__).warning(text, kind.__name__)
    return found


def _by_url_to_fs(place: StorageLocation, options: Mapping[str, Any]) -> tuple[AbstractFileSystem, str]:
    """The file system and its name for a place, as fsspec documents it.

    Raises StorageFault for a path with ``::``, which would be a chain.
    """
    from fsspec.core import url_to_fs

    if "::" in place.uri:
        raise StorageFault("with this release of fsspec a path may hold no '::'", "name another path")
    found: tuple[AbstractFileSystem, str] = url_to_fs(place.uri, **options)
    return found


def act_as(user: str) -> None:
    """Let HDFS know this process as ``user``, unless its environment names a user already."""
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
