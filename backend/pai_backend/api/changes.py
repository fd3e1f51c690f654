"""One waiter on the store for all streams of a process, however many clients follow.

A follower remembers the number it saw, reads the store, and waits for a greater number. A change that comes
between the reading and the waiting has already raised the number, so none is missed. Who follows one job is woken when
its history goes on, and not by other jobs: the log is read once for all of them, or every change would cost as many
reads as followers exist.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections import defaultdict
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from pai_backend.model.errors import Unavailable
from pai_backend.model.ids import JobUid
from pai_backend.store.base import Sight

if TYPE_CHECKING:
    from pai_backend.store.sql import Store

log = logging.getLogger(__name__)

LOOK_ANYWAY_S = 15.0  # the safety net: followers read again after this long without news
RETRY_S = 1.0  # pause while the database is away
PAGE = 1000  # events that are read at once


class Changes:
    """Wakes all followers when anything was committed. Waits on the store only while someone follows."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._number = 0
        self._followers = 0
        self._news = asyncio.Event()
        self._waiter: asyncio.Task[None] | None = None
        self._of_jobs: dict[JobUid, set[asyncio.Event]] = defaultdict(set)
        self._position: str | None = None  # in the log of events; None while no job is followed

    @property
    def number(self) -> int:
        """Grows with every change noticed. Read it before reading the store."""
        return self._number

    @property
    def followers(self) -> int:
        """How many wait now; for metrics."""
        return self._followers

    @contextlib.contextmanager
    def of_job(self, job: JobUid) -> Iterator[JobFollower]:
        """What to wait on for news of one job. Enter it before reading the store."""
        news = asyncio.Event()
        self._of_jobs[job].add(news)
        try:
            yield JobFollower(self, news)
        finally:
            self._of_jobs[job].discard(news)
            if not self._of_jobs[job]:
                del self._of_jobs[job]

    async def wait(self, seen: int) -> None:
        """Return once ``number`` is greater than ``seen``, at the latest after the safety net's time.

        Raises what the waiting on the store died of, if it did: a follower must not hang for ever.
        """
        self._followers += 1
        try:
            while self._number <= seen:
                self._need_waiter()
                await self._news.wait()
        finally:
            self._followers -= 1

    async def wait_for(self, news: asyncio.Event) -> None:
        """Return once ``news`` is set, which is of :meth:`of_job`. Raises as :meth:`wait`."""
        self._followers += 1
        try:
            while not news.is_set():
                self._need_waiter()
                await news.wait()
        finally:
            self._followers -= 1

    def _need_waiter(self) -> None:
        if self._waiter is None or self._waiter.done():
            self._raise_if_broken()
            self._waiter = asyncio.create_task(self._watch())

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
        """Follow the store until a change finds no follower."""
        mark, self._position = -1, None
        try:
            while self._followers:
                try:
                    mark = await self._store.changes.wait(mark, LOOK_ANYWAY_S)
                    await self._wake_jobs()
                except Unavailable as error:
                    log.warning("streams wait for the database: %s", error)
                    mark, self._position = -1, None  # what was missed meanwhile is not known
                    await asyncio.sleep(RETRY_S)
                self._wake()
        finally:
            self._wake()
            self._wake_all(self._of_jobs)

    def _wake(self) -> None:
        news, self._news = self._news, asyncio.Event()
        self._number += 1
        news.set()

    async def _wake_jobs(self) -> None:
        """Wake who follows a job that has news; everybody when the log was not read until now. Raises Unavailable."""
        while self._of_jobs:
            began = self._position is None
            events, self._position = await self._store.events.recent(self._position, Sight(), PAGE)
            self._wake_all(self._of_jobs if began else {event.job for event in events})
            if len(events) < PAGE:
                return
        self._position = None

    def _wake_all(self, jobs: Iterable[JobUid]) -> None:
        for job in jobs:
            for news in self._of_jobs.get(job, ()):
                news.set()


class JobFollower:
    """Whether a job has news for one follower: take note, read the store, wait, in this order and again."""

    def __init__(self, changes: Changes, news: asyncio.Event) -> None:
        self._changes = changes
        self._news = news

    def take_note(self) -> None:
        """Whatever was committed until now is going to be read: wait for what comes after."""
        self._news.clear()

    async def wait(self) -> None:
        """Return when the job's history has gone on since :meth:`take_note`. Raises as :meth:`Changes.wait`."""
        await self._changes.wait_for(self._news)
