"""The disk of a cluster: memory, where there is enough.

Removing a cluster of two nodes took 28 s on a busy machine whose disk discards what is deleted, and 1 s from memory.
And an overlay cannot lie on the overlay that is the disk of a container, but on memory it can.
"""

from __future__ import annotations

import asyncio
import shutil
from pathlib import Path

from tests.kubernetes.cluster.commands import run

SIZE_GIB = 8
_WORTH_GIB = 12  # of memory that is free


async def create(directory: Path) -> None:
    """Put a disk of memory on an empty directory, if this machine has the memory. Only what is written takes any."""
    if _free_gib() >= _WORTH_GIB:
        await run("mount", "-t", "tmpfs", "-o", f"size={SIZE_GIB}g,mode=700", "jupyter-pai-cluster", directory)


async def remove(directory: Path) -> None:
    """Remove the directory and the disk on it, whether there is one or not."""
    if await asyncio.to_thread(directory.is_mount):
        # Lazily: a process that was killed a moment ago may not have let go of its files.
        await run("umount", "--lazy", directory)
    await asyncio.to_thread(shutil.rmtree, directory)


def _free_gib() -> float:
    for line in Path("/proc/meminfo").read_text().splitlines():
        name, amount, *_ = line.split()
        if name == "MemAvailable:":
            return int(amount) / 2**20
    return 0.0
