"""The default file system of one process: its files, its limits, and threads for what blocks.

The threads are its own: a storage that hangs uses up these and nothing else of the process.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

from pai_backend.storage.areas import OUTPUT, Area, OwnedPath
from pai_backend.storage.faults import Away
from pai_backend.storage.files import Files, Parts
from pai_backend.storage.local_files import LocalFiles
from pai_backend.storage.quota import Pool, StorageQuotas
from pai_backend.storage.reach import StorageReach, TeamMount
from pai_backend.storage.remote_files import RemoteFiles
from pai_backend.storage.uris import parse

T = TypeVar("T")
THREADS = 8
TIMEOUT_S = 120.0  # for a step of a request: opening, a megabyte, a listing
LONG_S = 3600.0  # for copies and for sending a complete upload on to a storage elsewhere


@dataclass(frozen=True)
class FileRoom:
    """Where the API reads and writes files. Quotas of 0 mean no limit."""

    files: Files
    shared: tuple[str, ...] = ()
    mounts: tuple[TeamMount, ...] = ()
    max_file_bytes: int = 107_374_182_400
    quota_bytes: int = 0
    shared_quota_bytes: int = 0
    threads: ThreadPoolExecutor = field(default_factory=lambda: ThreadPoolExecutor(THREADS, "files"))

    def __post_init__(self) -> None:
        """Counting needs the room itself, to measure."""
        object.__setattr__(self, "quotas", StorageQuotas(self._measured))

    quotas: StorageQuotas = field(init=False)

    async def do(self, work: Callable[[], T], timeout_s: float = TIMEOUT_S) -> T:
        """Run what blocks. Raises what it raises, and Away when it takes too long; it then goes on unheard."""
        running = asyncio.get_running_loop().run_in_executor(self.threads, work)
        done, _ = await asyncio.wait({running}, timeout=timeout_s)
        if not done:
            running.add_done_callback(lambda late: late.cancelled() or late.exception())
            raise Away("the default file system does not answer", "try again later")
        return running.result()

    def pool(self, user: str, where: OwnedPath, path: Parts) -> Pool:
        """What a file at that place counts for: the user's own quota, a shared directory's, or none."""
        if where.area in (Area.HOME, Area.OUTPUT):
            return Pool(((user,), (OUTPUT, user)), self.quota_bytes)
        if where.area is Area.SHARED:
            return Pool((path[:1],), self.shared_quota_bytes or self.quota_bytes)
        return Pool((path[:1],), 0)

    async def _measured(self, pool: Pool) -> int:
        """Bytes of all files of a pool. Raises StorageFault."""
        return await self.do(lambda: sum(self.files.usage(root) for root in pool.roots))

    def close(self) -> None:
        """Let the threads end; does not wait for one that hangs."""
        self.threads.shutdown(wait=False, cancel_futures=True)


def open_files(reach: StorageReach, spool: Path) -> Files:
    """The default file system. ``spool`` keeps uploads for one elsewhere until they are complete."""
    root = parse(reach.default_fs_uri)
    if root.local:
        return LocalFiles(Path(root.path), owners=reach.owners)
    return RemoteFiles(root, reach.options.get(root.scheme, {}), spool)
