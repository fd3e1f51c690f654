"""One read that serves all who ask for the same: however many wait, one is under way and at most one comes after it."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import Generic, TypeVar

T = TypeVar("T")


class SharedRead(Generic[T]):
    """Shares a read among those to whom its beginning is recent enough.

    Not a lock: those who wait for one go on one after the other, each in another turn of the loop, which takes a second
    for a hundred of them beside other work.
    """

    def __init__(self, read: Callable[[], Awaitable[T]], clock: Callable[[], float] = time.monotonic) -> None:
        self._read, self.clock = read, clock
        self._began = float("-inf")
        self._running: asyncio.Task[T] | None = None
        self._coming: asyncio.Task[T] | None = None

    @property
    def is_idle(self) -> bool:
        """Whether nothing is read, and nothing is to be."""
        return self._running is None and self._coming is None

    async def since(self, oldest: float) -> T:
        """What a read brings that began at ``oldest`` or later, by the clock. Raises what the read raises."""
        # Shielded: one who goes away must not take the answer from the others.
        return await asyncio.shield(self.begin(oldest))

    def begin(self, oldest: float) -> asyncio.Task[T]:
        """That read, which may be under way: else it begins when that has ended."""
        if self._running is not None and self._began >= oldest:
            return self._running
        if self._coming is None:
            self._coming = asyncio.create_task(self._run(self._running))
            self._coming.add_done_callback(self._ended)
        return self._coming

    async def _run(self, before: asyncio.Task[T] | None) -> T:
        if before is not None:
            await asyncio.wait([before])
        self._running, self._coming, self._began = self._coming, None, self.clock()
        return await self._read()

    def _ended(self, read: asyncio.Task[T]) -> None:
        if read is self._running:
            self._running = None
        if read is self._coming:  # cancelled before it began
            self._coming = None
        if not read.cancelled():
            read.exception()  # retrieved here too: those who asked may be gone
