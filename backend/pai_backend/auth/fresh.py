"""A value of the database that many ask for: one read serves all questions of a second."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable
from typing import Generic, TypeVar

from pai_backend.platform.shared_read import SharedRead

T = TypeVar("T")

FRESH_S = 1.0
"""Seconds for which one read counts. What another process changes is in force within 2 s (docs/security.md)."""
AHEAD_S = 0.5
"""Age in seconds from which it is read again while the old value still counts, so that no request waits."""


class Fresh(Generic[T]):
    """The value as the database had it at most a second ago, or after the last :meth:`forget`."""

    def __init__(self, read: Callable[[], Awaitable[T]], clock: Callable[[], float] = time.monotonic) -> None:
        self._read, self._clock = read, clock
        self._reads = SharedRead(self._read_now, clock)
        self._kept: tuple[float, T] | None = None
        self._changes = 0

    def forget(self) -> None:
        """Read again before the next answer: this process has changed the value."""
        self._changes += 1
        self._kept = None

    async def get(self) -> T:
        """The value. Raises what the read raises."""
        kept, now = self._kept, self._clock()
        if kept is None or now - kept[0] >= FRESH_S:
            return await self._reads.since(now - FRESH_S)
        if now - kept[0] >= AHEAD_S:
            self._reads.begin(now - AHEAD_S)  # if it fails, that is told when the old value counts no longer
        return kept[1]

    async def _read_now(self) -> T:
        while True:
            changes, begun = self._changes, self._clock()
            value = await self._read()
            if changes == self._changes:  # else what was read may be older than the change
                self._kept = begun, value
                return value
