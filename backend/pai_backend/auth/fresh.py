"""A value of the database that many ask for: one read serves all questions of a second."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import Generic, TypeVar

T = TypeVar("T")

FRESH_S = 1.0
"""Seconds for which one read counts. What another process changes is in force within 2 s (docs/security.md)."""


class Fresh(Generic[T]):
    """The value as the database had it at most a second ago, or after the last :meth:`forget`."""

    def __init__(self, read: Callable[[], Awaitable[T]], clock: Callable[[], float] = time.monotonic) -> None:
        self._read, self._clock = read, clock
        self._lock = asyncio.Lock()
        self._kept: tuple[float, T] | None = None
        self._changes = 0

    def forget(self) -> None:
        """Read again before the next answer: this process has changed the value."""
        self._changes += 1
        self._kept = None

    async def get(self) -> T:
        """The value. Raises what the read raises."""
        kept = self._kept
        if kept is None or self._clock() - kept[0] >= FRESH_S:
            async with self._lock:
                kept = self._kept
                if kept is None or self._clock() - kept[0] >= FRESH_S:
                    kept = await self._read_now()
        return kept[1]

    async def _read_now(self) -> tuple[float, T]:
        while True:
            changes, begun = self._changes, self._clock()
            kept = (begun, await self._read())
            if changes == self._changes:  # else what was read may be older than the change
                self._kept = kept
                return kept
