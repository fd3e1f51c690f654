"""Waiting for the next commit of any process.

Commits of this process wake at once. Those of others are looked for by a task that lives only while
a task waits; how it looks, and how often, is the backing's business.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging

from pai_backend.model.errors import Unavailable
from pai_backend.store.database import Database
from pai_backend.store.faults import reported

_log = logging.getLogger(__name__)


class Wake:
    """A mark that grows with every commit seen, and those who wait for it to grow."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._mark = 0
        self._grown = asyncio.Event()
        self._waiting = 0
        self._task: asyncio.Task[None] | None = None
        self._last_change = 0.0
        self._look_now = asyncio.Event()
        database.backing.listen(self.bump, self._look_now.set)

    async def mark(self) -> None:
        """The store is open: count other processes' commits from here. Raises Unavailable."""
        with reported(self._database.backing.place):
            await self._database.backing.mark()

    def bump(self) -> None:
        """Something was committed."""
        self._mark += 1
        self._last_change = asyncio.get_running_loop().time()
        grown, self._grown = self._grown, asyncio.Event()
        grown.set()

    async def wait(self, seen: int, timeout_s: float) -> int:
        """The mark, once it differs from ``seen`` or the time is up.

        Nothing is lost between two calls: what happened meanwhile has changed the mark, or is found by
        the first look of the next call.
        """
        if seen != self._mark:
            return self._mark
        grown = self._grown
        self._waiting += 1
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._look(), name="store-wake")
        try:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(timeout_s):
                    await grown.wait()
        finally:
            self._waiting -= 1
        return self._mark

    async def look(self) -> int:
        """The mark after a look for other processes' commits. Raises Unavailable."""
        backing = self._database.backing
        with reported(backing.place):
            if await backing.changed():
                self.bump()
        return self._mark

    async def _look(self) -> None:
        backing, loop = self._database.backing, asyncio.get_running_loop()
        reachable = True
        while self._waiting:
            try:
                await self.look()
                reachable = True
            except Unavailable as error:
                if reachable:  # once, not at every look
                    _log.warning("cannot look for changes: %s", error)
                reachable = False
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(backing.interval_s(loop.time() - self._last_change)):
                    await self._look_now.wait()
            self._look_now.clear()

    async def aclose(self) -> None:
        """Stop looking, and send everyone home who waits. Idempotent."""
        task, self._task = self._task, None
        if task is not None:
            task.cancel()
            await asyncio.wait([task])
        self.bump()
