"""One read for all who ask the same thing at about the same time."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Generic, TypeVar

T = TypeVar("T")


class Shared(Generic[T]):
    """Answers that are never older than their questions.

    While one read is under way, whoever asks waits for the next, which begins after it: there are two at most.
    """

    def __init__(self, read: Callable[[], Awaitable[T]]) -> None:
        self._read = read
        self._last: asyncio.Task[T] | None = None  # has begun
        self._next: asyncio.Task[T] | None = None  # has not

    async def ask(self) -> T:
        """What the read gives, begun after this was called. Raises what it raises."""
        if self._next is None:
            self._next = asyncio.create_task(self._after(self._last))
        # Others may wait for it when we are cancelled.
        return await asyncio.shield(self._next)

    async def _after(self, last: asyncio.Task[T] | None) -> T:
        if last is not None:
            await asyncio.wait({last})
        self._last, self._next = self._next, None
        return await self._read()
