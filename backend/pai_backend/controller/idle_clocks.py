"""Keeps the idle clocks of jobs during one tenure: looks, warns, takes warnings back, and asks idle jobs to stop.

What is decided is decided in ``lifecycle.idleness``; here it is looked, written and told. A round of looks is written
in one transaction, and no job is looked at within it. The stop is an intent like a user's, and takes the same way.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Collection, Mapping
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from pai_backend.controller.reconciler import SAFETY_S, Reconciler
from pai_backend.controller.uses import Activity, GpuLooks, Server, Unread, activity, servers
from pai_backend.engine.base import Engine
from pai_backend.lifecycle.idleness import (
    Sight,
    Turn,
    held_sentence,
    looked,
    pause,
    running_since,
    stop_at,
    stop_sentence,
    warning_sentence,
)
from pai_backend.model.errors import Unavailable
from pai_backend.model.idle import IdleClock, UseSource
from pai_backend.model.ids import JobUid
from pai_backend.model.job import Desired, Job, Phase
from pai_backend.store.base import NewEvent

if TYPE_CHECKING:
    from pai_backend.store.sql import Store

log = logging.getLogger(__name__)

WARNING, OVER, HELD = "job.idle-warning", "job.idle-over", "job.idle-held"
"""Types of events, see docs/idle.md."""


class IdleKeeper:
    """The idle clocks of all jobs that have an idle timeout."""

    def __init__(
        self, store: Store, tenure: Reconciler, watcher: Watcher, *, epoch: int, clock: Callable[[], datetime]
    ) -> None:
        self._store = store
        self._tenure = tenure
        self._watcher = watcher
        self._epoch = epoch
        self._clock = clock
        self._clocks: dict[JobUid, IdleClock] = {}
        self._next: dict[JobUid, datetime] = {}

    async def run(self) -> None:
        """Look, for ever. Raises Fenced when another controller has taken over, Unavailable without a store."""
        while True:
            jobs = {job.uid: job for job in self._tenure.jobs.values() if _is_watched(job)}
            for gone in self._next.keys() - jobs.keys():
                del self._next[gone]
                self._clocks.pop(gone, None)
                self._watcher.forget(gone)
            now = self._clock()
            due = [job for uid, job in jobs.items() if self._is_due(job, now)]
            if due and self._tenure.knows_nodes:
                await self.look_at(due)
            await asyncio.sleep(self._rest())

    def _is_due(self, job: Job, now: datetime) -> bool:
        """Whether it is time for the next look; also when the wall clock was put back."""
        left = self._next.get(job.uid, now) - now
        return not timedelta() < left <= pause(timeout_of(job))

    def _rest(self) -> float:
        """Seconds to the next look, whether or not there is a job now."""
        now = self._clock()
        return min([SAFETY_S, *(max(0.05, (at - now).total_seconds()) for at in self._next.values())])

    async def look_at(self, due: Collection[Job]) -> None:
        """Look at these jobs, write their clocks and what is told, then ask those to stop whose time is over."""
        uids = [job.uid for job in due]
        if unknown := [uid for uid in uids if uid not in self._clocks]:
            self._clocks.update(await self._store.idling.clocks(unknown))
        written = await self._store.idling.uses(uids)
        sights = await asyncio.gather(*(self._look(job, written.get(job.uid, {})) for job in due))
        told: dict[JobUid, NewEvent] = {}
        over: list[Job] = []
        seen = {job.uid: (job, sight) for job, sight in zip(due, sights, strict=True) if sight is not None}
        for job, sight in seen.values():
            clock, turn = looked(self._clocks.get(job.uid), sight, timeout_of(job))
            self._clocks[job.uid] = clock
            self._next[job.uid] = sight.at + pause(timeout_of(job))
            if turn in (Turn.WARN, Turn.OVER, Turn.HELD):
                told[job.uid] = _told(job, clock, turn)
            elif turn is Turn.STOP:
                over.append(job)
        await self._store.idling.keep({uid: self._clocks[uid] for uid in seen}, told, self._clock(), self._epoch)
        for job in over:
            await self._stop(job)

    async def _look(self, job: Job, written: Mapping[UseSource, datetime]) -> Sight | None:
        """A look at one job; None, which counts as not watched, when it cannot be looked at for a fault of ours."""
        try:
            return await self._watcher.look(job, written)
        except Unavailable:
            raise
        except Exception:
            # An error in one job must not end the controller for all others.
            log.exception("job %s: who uses it cannot be found out", job.uid)
            self._next[job.uid] = self._clock() + pause(timeout_of(job))
            return None

    async def _stop(self, job: Job) -> None:
        reason, seen = stop_sentence(timeout_of(job)), self._clocks[job.uid].written
        if await self._store.idling.stop(job.uid, seen, reason, self._clock(), self._epoch):
            log.info("job %s is asked to stop: %s", job.uid, reason)


def timeout_of(job: Job) -> timedelta:
    """The idle timeout of a job that has one."""
    assert job.spec.idle_timeout_s is not None
    return timedelta(seconds=job.spec.idle_timeout_s)


def _is_watched(job: Job) -> bool:
    timeout, going = job.spec.idle_timeout_s, not job.state.final and job.verdict is None
    return timeout is not None and going and job.desired is Desired.START


def _told(job: Job, clock: IdleClock, turn: Turn) -> NewEvent:
    if turn is Turn.OVER:
        return NewEvent(OVER, {"by": clock.used_by.value if clock.used_by is not None else ""})
    timeout, unread = timeout_of(job), {source.value: why for source, why in clock.unread.items()}
    if turn is Turn.HELD:
        since = clock.held_since.isoformat() if clock.held_since is not None else ""
        told = {"since": since, "timeout_s": job.spec.idle_timeout_s, "unread": unread}
        return NewEvent(HELD, {**told, "text": held_sentence(clock, timeout)})
    return NewEvent(
        WARNING,
        {
            "since": clock.since.isoformat(),
            "stop_at": stop_at(clock, timeout).isoformat(),
            "timeout_s": job.spec.idle_timeout_s,
            "unread": unread,
            "text": warning_sentence(clock, timeout),
        },
    )


TOGETHER = 64
"""Jupyter servers that are asked at the same time."""


class Watcher:
    """Looks at jobs during one tenure. ``token`` gives what the tasks of a job got for their Jupyter servers."""

    def __init__(
        self, engine: Engine, token: Callable[[JobUid], Awaitable[str]], clock: Callable[[], datetime]
    ) -> None:
        self._engine = engine
        self._token = token
        self._clock = clock
        self._since = clock()
        self._room = asyncio.Semaphore(TOGETHER)
        self._gpus = GpuLooks(engine)

    async def look(self, job: Job, written: Mapping[UseSource, datetime]) -> Sight:
        """What uses a job with an idle timeout now; ``written`` are the uses that others have written."""
        assert job.spec.idle_timeout_s is not None
        timeout = timedelta(seconds=job.spec.idle_timeout_s)
        running = [task for task in job.tasks if task.phase is Phase.RUNNING]
        made = await self._token(job.uid)
        # A command may have 1 MiB, and a job thousands of tasks: what works on them stays off the loop.
        asked = await asyncio.to_thread(lambda: [server for task in running for server in servers(job, task, made)])
        measured = [task for task in running if task.placement is not None and task.placement.gpus]
        said, gpus = await asyncio.gather(
            asyncio.gather(*(self._ask(server) for server in asked)),
            self._gpus.look(job.uid, measured, timeout),
        )
        counted, working, unread = dict(written), set[UseSource](), dict[UseSource, str]()
        heard = {server.name: one for server, one in zip(asked, said, strict=True) if isinstance(one, Activity)}
        if any(one.busy for one in heard.values()):
            working.add(UseSource.KERNELS)
        if silent := [str(one) for one in said if isinstance(one, Unread)]:
            unread[UseSource.KERNELS] = silent[0]
        else:  # kernels show whether a user works; an open page does not
            counted.pop(UseSource.PAGE, None)
        if gpus.works:
            working.add(UseSource.GPU)
        if gpus.unread:
            unread[UseSource.GPU] = gpus.unread
        marks = {name: one.mark for name, one in heard.items()}
        since = running_since(job)
        return Sight(self._clock(), self._since, since, counted, frozenset(working), marks, unread)

    def forget(self, job: JobUid) -> None:
        """Stop looking at the job."""
        self._gpus.forget(job)

    async def _ask(self, server: Server) -> Activity | Unread:
        async with self._room:
            try:
                return await activity(self._engine, server)
            except Unread as unread:
                return unread
