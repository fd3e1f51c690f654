"""What a quota counts, exactly, while many uploads are under way in one process. Knows no files.

Bytes are reserved before they are written: those that fit are taken one caller after another, so that uploads side by
side never have more together than each alone might. What a measurement cannot have seen yet is counted on top of it.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from time import monotonic

from pai_backend.storage.files import Parts

KEPT_S = 30.0
"""How old a measurement may be when an upload begins: it is a walk through all files of the pool."""


@dataclass(frozen=True)
class Pool:
    """Directories that one quota is for: a user's own and that of their jobs' outputs, or a shared one."""

    roots: tuple[Parts, ...]
    bytes: int
    """What they may hold together; 0: no limit."""


Measure = Callable[[Pool], Awaitable[int]]
"""Bytes in a pool's directories now."""


@dataclass
class _Count:
    """What is known of a pool."""

    at: float = -KEPT_S
    measured: int = 0
    written: int = 0
    """Bytes ever written here since the process began."""
    counted: int = 0
    """How many of these the measurement must have seen: those from before it began."""
    reserved: int = 0
    shrinkings: int = 0
    """How often something was removed; a measurement that it came into is not kept."""
    measuring: asyncio.Lock = field(default_factory=asyncio.Lock)

    @property
    def taken(self) -> int:
        """Bytes that are there, or will be. Those that were written during the measurement may count twice."""
        return self.measured + (self.written - self.counted) + self.reserved


class StorageQuotas:
    """The pools of one process."""

    def __init__(self, measure: Measure) -> None:
        self._measure = measure
        self._counts: dict[tuple[Parts, ...], _Count] = defaultdict(_Count)

    async def free(self, pool: Pool) -> int | None:
        """Bytes that still fit; None without a limit. Measures the pool where that was long ago."""
        if not pool.bytes:
            return None
        count = self._counts[pool.roots]
        async with count.measuring:
            if monotonic() - count.at >= KEPT_S:
                before, shrinkings = count.written, count.shrinkings
                size = await self._measure(pool)
                count.measured, count.counted = size, before
                count.at = monotonic() if shrinkings == count.shrinkings else -KEPT_S
        return max(0, pool.bytes - count.taken)

    def reserve(self, pool: Pool, size: int) -> bool:
        """Take that many bytes if they fit; after :meth:`free`. They are the caller's to write or release."""
        count = self._counts[pool.roots]
        if pool.bytes and count.taken + size > pool.bytes:
            return False
        count.reserved += size
        return True

    def wrote(self, pool: Pool, size: int) -> None:
        """Reserved bytes are files now."""
        count = self._counts[pool.roots]
        count.reserved -= size
        count.written += size

    def release(self, pool: Pool, size: int) -> None:
        """Reserved bytes are not going to be written."""
        self._counts[pool.roots].reserved -= size

    def shrank(self, pool: Pool) -> None:
        """Something was removed or replaced, or is not known to be there: measure before the next upload."""
        count = self._counts[pool.roots]
        count.at, count.shrinkings = -KEPT_S, count.shrinkings + 1
