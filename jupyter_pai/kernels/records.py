"""What a Jupyter server must know to find its kernels in jobs again after it was restarted, in files of its own.

The files hold keys of kernels, so they are the user's alone. Servers of a user that have the same root directory do
not take each other's kernels: each locks a directory of files as long as it runs.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from jupyter_pai.connect.files import read, replace
from jupyter_pai.kernels.remote import KernelPlace

if TYPE_CHECKING:
    from jupyter_client.connect import KernelConnectionInfo

MOST_SERVERS = 64


@dataclass
class KernelRecord:
    """A kernel: its id and spec in the server, where it is, and its sessions (rows of the server's own table)."""

    kernel_id: str
    kernel_name: str
    place: KernelPlace
    key: str
    local: str
    sessions: list[dict[str, str]] = field(default_factory=list)


class KernelRecords:
    """The records of one server; the directory is locked until :meth:`close`."""

    def __init__(self, directory: Path, lock: int) -> None:
        self._directory = directory
        self._lock = lock

    @classmethod
    def of_server(cls, runtime_dir: Path, root_dir: str) -> KernelRecords:
        """The records of a server with that root directory that no other server uses now. Raises OSError."""
        try:
            import fcntl
        except ImportError:  # Windows, where kernels in jobs do not run at all
            raise OSError("this system has no locks on files") from None
        name = hashlib.sha256(root_dir.encode("utf-8", "surrogateescape")).hexdigest()[:12]
        for number in range(MOST_SERVERS):
            directory = runtime_dir / "pai-kernels" / f"{name}-{number}"
            directory.mkdir(mode=0o700, parents=True, exist_ok=True)
            lock = os.open(directory / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                os.close(lock)
                continue
            return cls(directory, lock)
        raise OSError(f"{MOST_SERVERS} Jupyter servers with the same root directory are running")

    def close(self) -> None:
        """Let another server have them."""
        os.close(self._lock)

    def note(
        self, kernel_id: str, kernel_name: str, place: KernelPlace, info: KernelConnectionInfo, local: str
    ) -> None:
        """Remember a kernel that has started."""
        key = info["key"]
        before = self.get(kernel_id)
        text = key.decode() if isinstance(key, bytes) else str(key)
        sessions = before.sessions if before is not None else []
        self._write(KernelRecord(kernel_id, kernel_name, place, text, local, sessions))

    def note_sessions(self, kernel_id: str, sessions: list[dict[str, str]]) -> None:
        """Remember which documents use a kernel, when that has changed."""
        record = self.get(kernel_id)
        if record is not None and record.sessions != sessions:
            record.sessions = sessions
            self._write(record)

    def forget(self, kernel_id: str) -> None:
        """The kernel has ended."""
        self._file(kernel_id).unlink(missing_ok=True)

    def get(self, kernel_id: str) -> KernelRecord | None:
        """The record of a kernel; None without one, or with one that a newer release has written."""
        text = read(self._file(kernel_id))
        if text is None:
            return None
        try:
            found = json.loads(text)
            return KernelRecord(**{**found, "place": KernelPlace(**found["place"])})
        except (ValueError, TypeError, KeyError):
            return None

    def __iter__(self) -> Iterator[KernelRecord]:
        for file in sorted(self._directory.glob("*.json")):
            record = self.get(file.stem)
            if record is not None:
                yield record

    def _file(self, kernel_id: str) -> Path:
        return self._directory / f"{kernel_id}.json"

    def _write(self, record: KernelRecord) -> None:
        replace(self._file(record.kernel_id), json.dumps(asdict(record)))
