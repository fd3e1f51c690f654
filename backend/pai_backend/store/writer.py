"""Group commit: writes that arrive while another commits share the next transaction.

A commit costs a disk flush however much is in it, so sixteen clients cost one flush, not sixteen.
Every write of the store goes through here. It runs in a task of its own: a caller that is cancelled
stops waiting, and its write happens or not as a whole.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any, TypeVar

from sqlalchemy import Connection

from pai_backend.model.errors import Bug, PaiError, Unavailable
from pai_backend.store import audit, deeds
from pai_backend.store.base import CannotTakeBack, Conflict, Fenced, PortTaken
from pai_backend.store.cipher import Cipher
from pai_backend.store.database import Database
from pai_backend.store.deeds import Deed
from pai_backend.store.keyring import KeyRing

R = TypeVar("R")
T = TypeVar("T")

Change = Callable[[Connection, Sequence[R]], Sequence[T | Exception]]
"""Carries out requests of one kind, in order, and gives an outcome for each: its result or its refusal.

A refused request must not have written anything. An exception raised (not returned) undoes the whole
transaction; the requests in it are then tried again one by one, so that only the culprit suffers.
"""

LIMIT = 64
"""Requests in one transaction at most: bounds how long the first of them waits for the last."""

_REFUSALS = (PaiError, Conflict, Fenced, PortTaken, CannotTakeBack)


@dataclass(frozen=True, eq=False)
class _Entry:
    change: Change[Any, Any]
    request: object
    announce: bool
    done: asyncio.Future[Any]
    deed: Deed | None
    """What the request is for, where it is for the audit."""

    @property
    def kind(self) -> object:
        """Neighbours of one kind go to their change together; one deed's functions go with no other's."""
        return (self.change, self.deed) if self.change is _each else (self.change, None)

    def settle(self, outcome: object) -> None:
        """Hand over the outcome, unless the caller has gone."""
        if self.done.done():
            return
        if isinstance(outcome, Exception):
            self.done.set_exception(outcome)
        else:
            self.done.set_result(outcome)


class Writer:
    """The queue of writes and the task that empties it, which lives only while there is something in it."""

    def __init__(self, database: Database, ring: KeyRing, committed: Callable[[], None]) -> None:
        """``ring``: what the audit is sealed with."""
        self._database, self._ring = database, ring
        self._committed = committed
        self._queue: deque[_Entry] = deque()
        self._task: asyncio.Task[None] | None = None
        self._closed = False

    async def put(self, change: Change[R, T], request: R, *, announce: bool = True) -> T:
        """Have ``change`` carry out ``request``; returns its result once that is durable.

        Raises its refusal, or Unavailable. ``announce=False``: no follower needs to wake up for it.
        """
        if self._closed:
            raise Bug("the store is closed")
        done: asyncio.Future[T] = asyncio.get_running_loop().create_future()
        self._queue.append(_Entry(change, request, announce, done, deeds.current()))
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._drain(), name="store-writer")
        return await done

    async def run(self, change: Callable[[Connection], T], *, announce: bool = True) -> T:
        """Have one function of the connection carried out; it must raise its refusals before it writes."""
        return await self.put(_each, change, announce=announce)

    async def aclose(self) -> None:
        """Accept nothing further and wait until all that was put is durable. Idempotent."""
        self._closed = True
        if self._task is not None:
            await self._task

    async def _drain(self) -> None:
        batch: list[_Entry] = []
        try:
            while self._queue:
                batch = [self._queue.popleft() for _ in range(min(LIMIT, len(self._queue)))]
                await self._commit([entry for entry in batch if not entry.done.cancelled()])
        finally:
            # Only a cancelled task (the event loop is ending) leaves anything here unsettled.
            for entry in (*batch, *self._queue):
                entry.done.cancel()
            self._queue.clear()

    async def _commit(self, batch: Sequence[_Entry]) -> None:
        if not batch:
            return
        announce = any(entry.announce for entry in batch)
        try:
            outcomes, told = await self._ring.tried(
                lambda cipher: self._database.write(lambda conn: _apply(conn, batch, cipher), announce=announce)
            )
        except Exception as error:  # noqa: BLE001 — it is not swallowed: each caller gets it
            # Trying each alone finds a culprit; where the database itself is away it would only take longer.
            if len(batch) > 1 and not isinstance(error, Unavailable):
                for entry in batch:
                    await self._commit([entry])
                return
            for entry in batch:
                entry.settle(error)
            return
        for deed in told:
            deed.written = True
        if announce:
            self._committed()
        for entry, outcome in zip(batch, outcomes, strict=True):
            entry.settle(outcome)


def _apply(conn: Connection, batch: Sequence[_Entry], cipher: Cipher) -> tuple[list[object], list[Deed]]:
    """Outcomes of all entries in order, and the deeds whose events are written with them."""
    outcomes: list[object] = []
    with audit.noting(conn) as notes:
        for _, some in groupby(batch, key=lambda entry: entry.kind):
            entries = list(some)
            change, requests = entries[0].change, [entry.request for entry in entries]
            notes.deed = entries[0].deed if change is _each else None
            answers = change(conn, requests)
            if len(answers) != len(requests):
                raise Bug(f"{len(answers)} outcomes for {len(requests)} requests")
            for entry, answer in zip(entries, answers, strict=True):
                if entry.deed is not None and not isinstance(answer, Exception):
                    notes.done(entry.deed, answer)
            outcomes += answers
        audit.write(conn, notes.events, cipher)
    return outcomes, notes.deeds


def _each(conn: Connection, requests: Sequence[Callable[[Connection], T]]) -> list[T | Exception]:
    outcomes: list[T | Exception] = []
    for request in requests:
        try:
            outcomes.append(request(conn))
        except _REFUSALS as refusal:
            outcomes.append(refusal)
    return outcomes
