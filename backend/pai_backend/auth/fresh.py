"""A value of the database that many ask for: one read serves all questions of a second."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import Generic, TypeVar

T = TypeVar("T")

FRESH_S = 1.0
"""Seconds for which one read counts. What another process changes is in force within 2 s (docs/security.md)."""
AHEAD_S = 0.5
"""Age in seconds from which it is read again while the old value still counts, so that no request waits."""


class Fresh(Generic[T]):
    """The value as the database had it at most a second ago, or after the last :meth:`forget`."""

    def __init__(self, read: Callable[[], Awaitable[T]], clock: Callable[[], float] = time.monotonic) -> None:
        self._read, self._clock = read, clock
        self._lock = asyncio.Lock()
        self._kept: tuple[float, T] | None = None
        self._changes = 0
        self._ahead: asyncio.Task[T] | None = None

    def forget(self) -> None:
        """Read again before the next answer: this process has changed the value."""
        self._changes += 1
        self._kept = None

    async def get(self) -> T:
        """The value. Raises what the read raises."""
        kept = self._kept
        age = self._clock() - kept[0] if kept is not None else FRESH_S
        if kept is None or age >= FRESH_S:
            return await self._at_least(FRESH_S)
        if age >= AHEAD_S and self._ahead is None:
            self._ahead = asyncio.create_task(self._at_least(AHEAD_S))
            self._ahead.add_done_callback(self._was_read)
        return kept[1]

    async def _at_least(self, fresh_s: float) -> T:
        async with self._lock:
            kept = self._kept
            if kept is None or self._clock() - kept[0] >= fresh_s:
                kept = await self._read_now()
            return kept[1]

    def _was_read(self, reading: asyncio.Task[T]) -> None:
        self._ahead = None
        if not reading.cancelled():
            reading.exception()  # it is read again, and told, when the old value counts no longer

    async def _read_now(self) -> tuple[float, T]:
        while True:
            changes, begun = self._changes, self._clock()
            kept = (begun, await self._read())
            if changes == self._changes:  # else what was read may be older than the change
                self._kept = kept
                return kept
