"""Being the one controller: the stored lease with its epoch, and on one machine a file lock.

The epoch fences writes, so a paused controller that wakes up late can change nothing. The file lock
only makes taking over quick: who holds it knows that the holder before is dead and need not wait for
the lease to run out.
"""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import os
from collections.abc import Callable
from datetime import datetime
from pathlib import Path

from pai_backend.model.errors import Unavailable
from pai_backend.store.base import Fenced, Store

POLL_S = 0.2
"""How often a waiting controller tries again; bounds the time nobody decides after a crash."""


class LeaseKeeper:
    """Acquires, renews and gives up the controller lease."""

    def __init__(
        self, store: Store, holder: str, ttl_s: float, lock: Path | None, clock: Callable[[], datetime]
    ) -> None:
        self._store = store
        self._holder = holder
        self._ttl_s = ttl_s
        self._lock = lock
        self._clock = clock
        self._lock_fd: int | None = None
        self._epoch: int | None = None

    async def acquire(self) -> int:
        """Wait until this is the controller; returns the epoch that fences its writes."""
        while not self._take_lock():  # noqa: ASYNC110 - a file lock tells nobody when it comes free
            await asyncio.sleep(POLL_S)
        while True:
            lease = await self._store.acquire_lease(
                self._holder, self._ttl_s, self._clock(), force=self._lock_fd is not None
            )
            if lease is not None:
                self._epoch = lease.epoch
                return lease.epoch
            await asyncio.sleep(POLL_S)

    async def keep(self, epoch: int) -> None:
        """Renew for ever. Raises Fenced when another one has taken over."""
        while True:
            await asyncio.sleep(self._ttl_s / 3)
            await self._store.renew_lease(epoch, self._ttl_s, self._clock())

    async def give_up(self) -> None:
        """Let the next one take over at once: end the lease and drop the lock."""
        if self._epoch is not None:
            epoch, self._epoch = self._epoch, None
            with contextlib.suppress(Fenced, Unavailable):  # then it is another's already, or runs out by itself
                await self._store.renew_lease(epoch, 0.0, self._clock())
        if self._lock_fd is not None:
            os.close(self._lock_fd)
            self._lock_fd = None

    def _take_lock(self) -> bool:
        """Whether the lock file is ours (or none is asked for); never blocks."""
        if self._lock is None or self._lock_fd is not None:
            return True
        fd = os.open(self._lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(fd)
            return False
        self._lock_fd = fd
        return True
