"""How a place in a storage is written: an absolute path of this machine, or ``scheme://authority/path``.

Nothing here looks whether anything is there. A place may hold a password (``webhdfs://user:password@host/``),
so messages are made with :attr:`Place.shown`, never with the text that was given.
"""

from __future__ import annotations

import posixpath
import re
from typing import NamedTuple

from pai_backend.storage.faults import StorageFault

LOCAL = "file"
_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*)://([^/?#]*)(.*)", re.DOTALL)
_HIDDEN = "******"


class StorageLocation(NamedTuple):
    """A file or directory of some storage. ``repr`` and ``shown`` hold no password.

    (A dataclass would cost every staging of a task 10 ms of imports.)
    """

    scheme: str
    authority: str
    path: str

    def __repr__(self) -> str:
        return f"Place({self.shown!r})"

    @property
    def local(self) -> bool:
        """Whether it is a path of this machine."""
        return self.scheme == LOCAL

    @property
    def name(self) -> str:
        """The base name, by which a copy is called; empty for a root."""
        return posixpath.basename(self.path.rstrip("/"))

    @property
    def uri(self) -> str:
        """The text that fsspec takes; a plain path for this machine. May hold a password."""
        return self.path if self.local else f"{self.scheme}://{self.authority}{self.path}"

    @property
    def shown(self) -> str:
        """The text for messages: passwords and what follows a ``?`` are masked."""
        if self.local:
            return self.path
        user, at, host = self.authority.rpartition("@")
        name, colon, _ = user.partition(":")
        path, question, _ = self.path.partition("?")
        masked = f"{name}{colon and ':' + _HIDDEN}{at}{host}"
        return f"{self.scheme}://{masked}{path}{question and '?' + _HIDDEN}"

    @property
    def secrets(self) -> tuple[str, ...]:
        """Texts of it that no message may hold; a path of this machine has none, whatever is in its name."""
        if self.local:
            return ()
        user, _, _ = self.authority.rpartition("@")
        _, _, password = user.partition(":")
        _, _, query = self.path.partition("?")
        return tuple(text for text in (password, query) if text)

    def below(self, relative: str) -> StorageLocation:
        """The place ``relative`` below this one; ``relative`` must be free of ``..`` (see ``paths``)."""
        path = f"{self.path.rstrip('/')}/{relative.lstrip('/')}" if relative.strip("/") else self.path
        return StorageLocation(self.scheme, self.authority, path)


def parse(text: str) -> StorageLocation:
    """The place that ``text`` names. Raises StorageFault when it names none.

    A URI is taken as written, as fsspec does: nothing in it is percent-decoded. fsspec's chains
    (``zip::file:///…``) are no places of ours.
    """
    if not text.strip():
        raise StorageFault("a path or URI is empty", "name an absolute path or a URI such as hdfs://host:port/path")
    if any(ord(char) < 32 or ord(char) == 127 for char in text):
        raise StorageFault("a path or URI holds a control character", "remove it")
    if text.startswith("/"):
        return _local(text)
    found = _SCHEME.fullmatch(text)
    if found is None:
        word = text if len(text) <= 200 and "@" not in text else f"{text[:8]}…"
        raise StorageFault(
            f"'{word}' is neither an absolute path nor a URI",
            "write /path for this machine, or scheme://host/path; $PAI_DEFAULT_FS_URI/path is the default storage",
        )
    scheme, authority, path = found[1].lower(), found[2], found[3]
    if scheme != LOCAL:
        return StorageLocation(scheme, authority, path or "/")
    if authority not in ("", "localhost") or not path.startswith("/"):
        raise StorageFault(f"file://{authority}{path} names another machine", "write file:///path or a plain /path")
    return _local(path)


def _local(path: str) -> StorageLocation:
    """A path of this machine; POSIX leaves the meaning of two leading slashes open, and they are never meant."""
    return StorageLocation(LOCAL, "", posixpath.normpath("/" + path.lstrip("/")))
