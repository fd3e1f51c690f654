"""Tells of logins: in the process's log and counters at once, in the job's event log behind the logins' backs.

No login waits for its event, and a store that is away delays events. They are kept in memory until then, so a
process that is killed loses the events of its last moments; its log has had them before.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from pai_backend.access.broker import lookup
from pai_backend.access.broker.rights import Credential
from pai_backend.access.gateway.folding import Fact, Folding, What
from pai_backend.model.audit import DONE, AuditEvent
from pai_backend.model.errors import NoSuchJob, Unavailable
from pai_backend.model.ids import JobUid
from pai_backend.store.base import NewEvent

if TYPE_CHECKING:
    from pai_backend.store.sql import Store

RETRY_S = 1.0
LONGEST_WAIT_S = 5.0
MOST_WAITING = 10_000  # events that wait for a store that is away; the oldest are given up, and that is logged

log = logging.getLogger(__name__)

_Write = Callable[[], Awaitable[None]]


class Record:
    """The events of one gateway process."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._folding = Folding()
        self._writes: deque[_Write] = deque()
        self._news = asyncio.Event()
        self._ending = asyncio.Event()

    def note(self, fact: Fact) -> None:
        """Something happened at the door of a job."""
        event = self._folding.add(fact, asyncio.get_running_loop().time())
        if event is not None:
            self._put(self._append(fact.job, event))

    def used(self, credential: Credential, source: str) -> None:
        """A credential has logged in from an address."""
        now = datetime.now(UTC)
        self._put(lambda: lookup.note_use(self._store, credential, now, source))

    def _append(self, job: JobUid, event: NewEvent) -> _Write:
        now = datetime.now(UTC)
        return lambda: self._store.events.note(job, [event], now, entry_of(job, event, now))

    def _put(self, write: _Write) -> None:
        if len(self._writes) >= MOST_WAITING:
            self._writes.popleft()
            log.error("the store was unavailable for too long; a login event is dropped")
        self._writes.append(write)
        self._news.set()

    async def run(self) -> None:
        """Write until :meth:`finish` is called, then write what is left. A failing store is logged and tried again.

        Do not cancel: whether the event that is being written then was stored would be unknown.
        """
        loop = asyncio.get_running_loop()
        while not self._ending.is_set():
            due = self._folding.next_due
            await _within(LONGEST_WAIT_S if due is None else due - loop.time(), self._news)
            self._news.clear()
            self._fold(loop.time())
            if not await self._write_all():
                await _within(RETRY_S, self._ending)
                self._news.set()
        self._fold(float("inf"))
        if not await self._write_all():
            log.error("the store does not answer; %d login events are dropped", len(self._writes))

    def finish(self) -> None:
        """Let :meth:`run` end: all logins have ended."""
        self._ending.set()
        self._news.set()

    def _fold(self, now: float) -> None:
        for job, event in self._folding.due(now):
            self._put(self._append(job, event))

    async def _write_all(self) -> bool:
        while self._writes:
            write = self._writes.popleft()
            try:
                await write()
            except NoSuchJob:
                log.debug("a job was removed before a login event could be written")
            except Unavailable as exc:
                log.warning("the store does not answer (%s); login events wait", exc.message)
                self._writes.appendleft(write)
                return False
            except Exception:
                log.exception("a login event cannot be written and is dropped")
        return True


def entry_of(job: JobUid, event: NewEvent, at: datetime) -> AuditEvent | None:
    """What the audit gets of an event: of logins and refusals, not of ends."""
    if event.type == What.END:
        return None
    times = f"{event.payload['count']} times" if event.payload["count"] != 1 else ""
    told = {name: str(value) for name, value in event.payload.items()}
    return AuditEvent(
        "ssh.entered",
        at,
        user="",
        by=told["user"],
        source=told["source"],
        subject=told.get("task", ""),
        job=job,
        detail=", ".join(filter(None, (told.get("key"), told.get("client"), times))),
        result=told.get("reason", DONE),
    )


async def _within(seconds: float, event: asyncio.Event) -> None:
    """Return when the event is set, after ``LONGEST_WAIT_S`` or after ``seconds``, whichever is first."""
    try:
        async with asyncio.timeout(max(0.0, min(LONGEST_WAIT_S, seconds))):
            await event.wait()
    except TimeoutError:
        return
