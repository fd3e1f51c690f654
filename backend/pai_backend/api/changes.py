"""One waiter on the store for all streams of a process, however many clients follow.

A follower remembers the number it saw, reads the store, and waits for a greater number. A change that comes
between the reading and the waiting has already raised the number, so none is missed.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging

from pai_backend.model.errors import Unavailable
from pai_backend.store.base import Store

log = logging.getLogger(__name__)

LOOK_ANYWAY_S = 15.0  # the safety net: followers read again after this long without news
RETRY_S = 1.0  # pause while the database is away


class Changes:
    """Wakes all followers when anything was committed. Waits on the store only while someone follows."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._number = 0
        self._followers = 0
        self._news = asyncio.Event()
        self._waiter: asyncio.Task[None] | None = None

    @property
    def number(self) -> int:
        """Grows with every change noticed. Read it before reading the store."""
        return self._number

    @property
    def followers(self) -> int:
        """How many wait now; for metrics."""
        return self._followers

    async def wait(self, seen: int) -> None:
        """Return once ``number`` is greater than ``seen``, at the latest after the safety net's time.

        Raises what the waiting on the store died of, if it did: a follower must not hang for ever.
        """
        self._followers += 1
        try:
            while self._number <= seen:
                if self._waiter is None or self._waiter.done():
                    self._raise_if_broken()
                    self._waiter = asyncio.create_task(self._watch())
                await self._news.wait()
        finally:
            self._followers -= 1

    def _raise_if_broken(self) -> None:
        waiter, self._waiter = self._waiter, None
        if waiter is not None and not waiter.cancelled():
            waiter.result()

    async def aclose(self) -> None:
        """Stop waiting on the store."""
        if self._waiter is not None:
            self._waiter.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._waiter

    async def _watch(self) -> None:
        """Follow the store until a change finds nobody following."""
        mark = -1
        try:
            while self._followers:
                try:
                    mark = await self._store.wait_change(mark, LOOK_ANYWAY_S)
                except Unavailable as error:
                    log.warning("streams wait for the database: %s", error)
                    await asyncio.sleep(RETRY_S)
                self._wake()
        finally:
            self._wake()

    def _wake(self) -> None:
        news, self._news = self._news, asyncio.Event()
        self._number += 1
        news.set()
