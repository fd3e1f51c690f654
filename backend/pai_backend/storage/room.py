"""The default file system of one process: its files, its limits, and threads for what blocks.

The threads are its own: a storage that hangs uses up these and nothing else of the process.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from time import monotonic
from typing import TypeVar

from pai_backend.storage.faults import Away
from pai_backend.storage.files import Files, Parts
from pai_backend.storage.local_files import LocalFiles
from pai_backend.storage.reach import Mount, Reach
from pai_backend.storage.remote_files import RemoteFiles
from pai_backend.storage.uris import parse

T = TypeVar("T")
THREADS = 8
TIMEOUT_S = 120.0  # for a step of a request: opening, a megabyte, a listing
LONG_S = 3600.0  # for copies and for sending a complete upload on to a storage elsewhere
USAGE_KEPT_S = 30.0  # a directory's size is asked for by every part of an upload, and is a walk through all of it


@dataclass(frozen=True)
class FileRoom:
    """Where the API reads and writes files. ``quota_bytes`` 0 means no limit."""

    files: Files
    shared: tuple[str, ...] = ()
    mounts: tuple[Mount, ...] = ()
    max_file_bytes: int = 107_374_182_400
    quota_bytes: int = 0
    threads: ThreadPoolExecutor = field(default_factory=lambda: ThreadPoolExecutor(THREADS, "files"))
    usage: dict[Parts, tuple[float, int]] = field(default_factory=dict)

    async def do(self, work: Callable[[], T], timeout_s: float = TIMEOUT_S) -> T:
        """Run what blocks. Raises what it raises, and Away when it takes too long; it then goes on unheard."""
        running = asyncio.get_running_loop().run_in_executor(self.threads, work)
        done, _ = await asyncio.wait({running}, timeout=timeout_s)
        if not done:
            running.add_done_callback(lambda late: late.cancelled() or late.exception())
            raise Away("the default file system does not answer", "try again later")
        return running.result()

    async def used(self, home: Parts) -> int:
        """Bytes in a user's directory, at most half a minute old."""
        at, size = self.usage.get(home, (-USAGE_KEPT_S, 0))
        if monotonic() - at >= USAGE_KEPT_S:
            size = await self.do(lambda: self.files.usage(home))
            self.usage[home] = monotonic(), size
        return size

    def grew(self, home: Parts, size: int) -> None:
        """Count bytes that came since the directory was measured."""
        at, before = self.usage.get(home, (-USAGE_KEPT_S, 0))
        self.usage[home] = at, before + size

    def close(self) -> None:
        """Let the threads end; does not wait for one that hangs."""
        self.threads.shutdown(wait=False, cancel_futures=True)


def open_files(reach: Reach, spool: Path) -> Files:
    """The default file system. ``spool`` keeps uploads for one elsewhere until they are complete."""
    root = parse(reach.default_fs_uri)
    if root.local:
        return LocalFiles(Path(root.path))
    return RemoteFiles(root, reach.options.get(root.scheme, {}), spool)
