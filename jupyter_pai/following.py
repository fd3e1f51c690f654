"""Follows one job to its end: every change of its detail, and what a task writes.

Used by ``--wait`` of the command line and magics, and by the live view of a notebook, so that all
show the same thing in the same order.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from functools import partial

from jupyter_pai.client import AsyncClient
from jupyter_pai.errors import ClientError
from jupyter_pai.streams import patiently
from jupyter_pai.wire import FINAL_STATES, tasks_of
from jupyter_pai.wire_types import JobDetail, TaskWire

DRAIN_TIMEOUT_S = 60.0
"""How long nothing of the log may arrive, after the job has ended, before the rest of it is given up."""

_NOT_STARTED = frozenset({"queued", "backing off", "pulling", "starting"})


@dataclass(frozen=True)
class Observer:
    """What to call; both come from the client's loop and must return quickly."""

    on_job: Callable[[JobDetail], None]
    on_log: Callable[[bytes], None] | None = None


def watched_task(job: JobDetail, role: str | None = None, index: int | None = None) -> TaskWire | None:
    """The task whose log is shown: the one named, or the job's first. None when there is none (yet)."""
    for task in tasks_of(job):
        if role in (None, task["role"]) and index in (None, task["index"]):
            return task
    return None


async def follow(client: AsyncClient, job: str, observer: Observer) -> JobDetail:
    """Observe a job until it has ended; returns its final detail.

    The last change is reported after the log has been reported whole. Cancelling it leaves the job
    alone. Raises NotFound, and BackendAway when the backend stays away.
    """
    first = detail = await client.job(job)
    follower = _LogFollower(client, first["uid"], observer.on_log) if observer.on_log else None
    try:
        async for detail in _changes(client, first):
            if follower is not None:
                follower.look(detail)
            if detail["state"] in FINAL_STATES:
                break
            observer.on_job(detail)
        if follower is not None:
            await follower.drain()
        observer.on_job(detail)
        return detail
    finally:
        if follower is not None:
            await follower.cancel()


async def observe(client: AsyncClient, job: str, *, log: bool) -> AsyncIterator[JobDetail | bytes]:
    """As :func:`follow`, but as a stream: details as they change and pieces of the log, the final detail last."""
    arrived: asyncio.Queue[JobDetail | bytes | None] = asyncio.Queue()

    async def run() -> None:
        try:
            await follow(client, job, Observer(arrived.put_nowait, arrived.put_nowait if log else None))
        finally:
            arrived.put_nowait(None)

    running = asyncio.create_task(run())
    try:
        while (item := await arrived.get()) is not None:
            yield item
        await running
    finally:
        running.cancel()
        await asyncio.wait([running])


async def _changes(client: AsyncClient, first: JobDetail) -> AsyncIterator[JobDetail]:
    """The detail now and after each batch of events, until a final one has been yielded."""
    yield first
    if first["state"] in FINAL_STATES:
        return
    changed = asyncio.Event()

    async def listen() -> None:
        async for _ in client.follow_events(first["uid"]):
            changed.set()

    listener = asyncio.create_task(listen())
    listener.add_done_callback(lambda _: changed.set())
    try:
        while True:
            await changed.wait()
            changed.clear()
            ended = listener.done()  # asked before reading the detail: the last event precedes the last read
            detail = await patiently(partial(client.job, first["uid"]))
            yield detail
            if detail["state"] in FINAL_STATES:
                return
            if ended:
                listener.result()  # raises what broke the stream
                return
    finally:
        listener.cancel()
        with contextlib.suppress(asyncio.CancelledError, ClientError):
            await listener


class _LogFollower:
    """Follows the watched task's log; starts over when the job has a new attempt."""

    def __init__(self, client: AsyncClient, job: str, on_log: Callable[[bytes], None]) -> None:
        self._client = client
        self._job = job
        self._on_log = on_log
        self._task: asyncio.Task[None] | None = None
        self._uid = ""
        self._pieces = 0  # that have arrived

    def look(self, detail: JobDetail) -> None:
        """Start following when the watched task has started, and again when it is another one."""
        task = watched_task(detail)
        if task is None or task["uid"] == self._uid or task["phase"] in _NOT_STARTED:
            return
        if task["phase"] == "ended" and task["startedTime"] is None:
            return  # it never ran, so it has no log
        previous, self._uid = self._task, task["uid"]
        self._task = asyncio.create_task(self._follow(previous, task))

    async def _follow(self, previous: asyncio.Task[None] | None, task: TaskWire) -> None:
        if previous is not None:
            previous.cancel()
            await asyncio.wait([previous])
        async for data in self._client.follow_log(self._job, role=task["role"], index=task["index"]):
            self._pieces += 1
            self._on_log(data)

    async def drain(self) -> None:
        """Wait until the log is whole, but not for ever: a log is less than a result."""
        while self._task is not None and not self._task.done():
            before = self._pieces
            await asyncio.wait([self._task], timeout=DRAIN_TIMEOUT_S)
            if self._pieces == before:
                return

    async def cancel(self) -> None:
        """Stop following."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])
            if not self._task.cancelled():
                self._task.exception()  # seen: a log that cannot be read must not hide how the job went
