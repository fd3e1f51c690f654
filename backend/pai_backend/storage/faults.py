"""What can go wrong with a storage, said in one line: place, reason, remedy."""

from __future__ import annotations

import errno
import os
import re
from collections.abc import Iterable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pai_backend.storage.uris import StorageLocation

_LONGEST = 300  # characters of another library's message that we pass on
_REFUSED = re.compile(r"Permission denied: user=[^,\n]*, access=[A-Z_]+, inode=\\?\"[^\"\\\n]*")
_STACK = re.compile(r"(?:\\n|\n)\s*(?:\\t|\t)at .*", re.DOTALL)  # Java's; hdfs-native passes it on with escapes
_AWAY = {
    "the connection failed": "",
    "connection refused": "connection refused",
    "timed out": "",
    "timeout": "",
    "name or service not known": "the host name is not known",
    "unreachable": "",
    "all datanodes failed": "the DataNodes that have it are away",  # hdfs-native
    "failed to complete file in time": "no DataNode takes the data",  # hdfs-native
    "could only be written to 0 of": "no DataNode takes the data",  # NameNode
    "failed to find datanode": "no DataNode takes the data",  # NameNode, over WebHDFS
}
"""What the libraries say when a server is away, and what we say instead where theirs is no help."""

_A_FILE = re.compile(r"ParentNotDirectory|[Nn]ot a directory|FileAlreadyExists")
_ABSENT = re.compile(r"FileNotFoundException|does not exist|No such file", re.IGNORECASE)


class StorageFault(Exception):
    """Something about a storage that a user or administrator can put right; holds no secret."""

    def __init__(self, reason: str, remedy: str = "") -> None:
        super().__init__(reason)
        self.reason = reason
        self.remedy = remedy

    def line(self) -> str:
        """Reason and remedy in one line."""
        text = f"{self.reason}; {self.remedy}" if self.remedy else self.reason
        return " ".join(text.split())


class Absent(StorageFault):
    """Nothing is at that place."""


class NotAllowed(StorageFault):
    """The storage refuses this user."""


class NoRoom(StorageFault):
    """The storage is full."""


class Away(StorageFault):
    """The storage does not answer now; trying again later may help."""


def explained(error: BaseException, place: StorageLocation, secrets: Iterable[str] = ()) -> StorageFault:
    """``error`` of a library as a fault at ``place``, without the secrets of the place and the ones given."""
    if isinstance(error, StorageFault):
        return error
    if isinstance(error, ImportError):
        return StorageFault(
            f"{place.shown} cannot be used: the package for {place.scheme}:// is not installed",
            f"install it where this runs: {installing(place.scheme)}",
        )
    said, status = _said(error, (*place.secrets, *secrets)), _status(error)
    refused = _REFUSED.search(said)
    if isinstance(error, PermissionError) or refused or status in (401, 403):
        reason = ' ({}")'.format(refused[0].replace("\\", "")) if refused else ""
        return NotAllowed(f"no permission for {place.shown}{reason}", "ask its owner for access, or name another place")
    if isinstance(error, FileNotFoundError) or status == 404 or _ABSENT.search(said):
        return Absent(f"{place.shown} does not exist", "upload it (`pai upload PATH URI`) or correct the document")
    if isinstance(error, NotADirectoryError | FileExistsError) or _A_FILE.search(said):
        return StorageFault(f"{place.shown} is a file, or is below one", "name a directory")
    if isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT):
        return NoRoom(f"no room is left at {place.shown}", "remove what is not needed")
    away = next((needle for needle in _AWAY if needle in said.lower()), None)
    if isinstance(error, ConnectionError | TimeoutError) or away is not None:
        said = (away and _AWAY[away]) or said
        return Away(f"{place.shown} does not answer: {said}", "check host and port, and that it runs")
    return StorageFault(f"{place.shown} cannot be used: {said}", "check the path")


def installing(scheme: str) -> str:
    """The command that installs what a scheme needs."""
    if scheme in ("hdfs", "viewfs", "webhdfs"):
        return "pip install hdfs-native requests"
    return f"pip install 'fsspec[{scheme}]' (see fsspec's list of extras for {scheme}://)"


def masked(text: str, secrets: Iterable[str]) -> str:
    """``text`` with every secret replaced, the longest first, so that none leaves a part of itself."""
    for secret in sorted((secret for secret in secrets if secret), key=len, reverse=True):
        text = text.replace(secret, "******")
    return text


def _said(error: BaseException, secrets: Iterable[str]) -> str:
    """The first line of an error's own words; for the system's errors their usual wording."""
    if isinstance(error, OSError) and error.errno is not None and type(error).__module__ == "builtins":
        return os.strerror(error.errno)
    if type(error).__module__.startswith("requests") and getattr(error, "response", None) is None:
        return "the connection failed"  # its own text has the URL, which may hold a token
    text = _STACK.sub("", masked(_of_answer(error) or str(error), secrets))
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    text = lines[0] if lines else type(error).__name__
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"


def _status(error: BaseException) -> int:
    """The HTTP status of an error of ``requests``; 0 for others."""
    status = getattr(getattr(error, "response", None), "status_code", 0)
    return status if isinstance(status, int) else 0


def _of_answer(error: BaseException) -> str:
    """What WebHDFS says in the body of a refusal; the error itself has only the URL, which may hold a token."""
    answer = getattr(error, "response", None)
    if answer is None:
        return ""
    try:
        return str(answer.json()["RemoteException"]["message"])
    except (ValueError, KeyError, TypeError):
        return f"HTTP {_status(error)}"
