"""Which users an administrator has locked out, as the database had it at most a second ago."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Collection

from pai_backend.model.errors import LockedOut

FRESH_S = 1.0
"""Seconds for which one read counts. Another process's lock-out is in force within 2 s (docs/security.md)."""


class Lockouts:
    """Asked at every request, so one read serves all requests of a second."""

    def __init__(self, read: Callable[[], Awaitable[Collection[str]]], clock: Callable[[], float] = time.monotonic):
        self._read, self._clock = read, clock
        self._lock = asyncio.Lock()
        self._read_at = float("-inf")
        self._users: frozenset[str] = frozenset()

    def forget(self) -> None:
        """Read again before the next answer: this process has changed a lock-out."""
        self._read_at = float("-inf")

    async def require_free(self, user: str) -> None:
        """Raise LockedOut for a user who is locked out, and what the store raises."""
        if self._clock() - self._read_at >= FRESH_S:
            async with self._lock:
                if (now := self._clock()) - self._read_at >= FRESH_S:
                    self._users, self._read_at = frozenset(await self._read()), now
        if user in self._users:
            raise LockedOut(
                f"The user {user} is locked out.",
                hint="Ask an administrator, who can end this with `pai keys let-in USER`.",
            )
