"""Carrying effects out: in order for one task, side by side for different ones, again until done.

Nothing is decided here. Each effect is idempotent in the engine, so repeating one after a failure or a
crash is always right; what comes of it goes back to the loop as an event.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Awaitable, Callable
from datetime import datetime

from pai_backend.engine.base import Engine, EngineError, StartForbidden, StartRefused, TaskPlan
from pai_backend.lifecycle.effects import Effect, Forget, Refresh, Start, Stop
from pai_backend.lifecycle.engine_words import engine_said
from pai_backend.lifecycle.events import JobEvent, TaskExited, TaskForgotten, Waiting
from pai_backend.model.errors import Unavailable
from pai_backend.model.ids import JobUid, TaskUid, job_of
from pai_backend.model.job import TaskExit
from pai_backend.model.text import Text

log = logging.getLogger(__name__)

AT_ONCE = 64
"""Effects under way. An engine bounds what it asks of others itself; more than that is being planned meanwhile."""
FIRST_PAUSE_S = 0.5
LONGEST_PAUSE_S = 30.0

PlanMaker = Callable[[TaskUid], Awaitable[TaskPlan | None]]
JobInfoMaker = Callable[[TaskUid], Awaitable[str | None]]
Report = Callable[[JobUid, JobEvent], None]


class Carrier:
    """Runs effects against the engine; ``report`` takes what comes of them, from the same event loop."""

    def __init__(
        self,
        engine: Engine,
        *,
        plan: PlanMaker,
        job_info: JobInfoMaker,
        report: Report,
        clock: Callable[[], datetime],
        grace_s: float,
        at_once: int = AT_ONCE,
    ) -> None:
        self._engine = engine
        self._plan = plan
        self._job_info = job_info
        self._report = report
        self._clock = clock
        self._grace_s = grace_s
        self._slots = asyncio.Semaphore(at_once)
        self._pending: dict[TaskUid, deque[Effect]] = {}
        self._arrived: dict[TaskUid, asyncio.Event] = {}
        self._workers: dict[TaskUid, asyncio.Task[None]] = {}

    def carry(self, effects: tuple[Effect, ...]) -> None:
        """Queue effects behind those of the same task; one already queued or under way is not queued again."""
        for effect in effects:
            queue = self._pending.setdefault(effect.uid, deque())
            if effect in queue:
                continue
            if isinstance(effect, Refresh):
                _drop_older(queue)
            queue.append(effect)
            self._arrived.setdefault(effect.uid, asyncio.Event()).set()
            if effect.uid not in self._workers:
                self._workers[effect.uid] = asyncio.create_task(self._work(effect.uid))

    async def aclose(self) -> None:
        """Drop what is not done; a successor finds it open again."""
        workers = list(self._workers.values())
        for worker in workers:
            worker.cancel()
        await asyncio.gather(*workers, return_exceptions=True)

    async def _work(self, uid: TaskUid) -> None:
        queue, arrived = self._pending[uid], self._arrived[uid]
        try:
            pause = FIRST_PAUSE_S
            while queue:
                arrived.clear()
                if await self._attempt(queue[0]):
                    queue.popleft()
                    pause = FIRST_PAUSE_S
                elif len(queue) > 1:
                    queue.popleft()  # a later effect of the same task supersedes one that cannot be done
                else:
                    await self._pause(arrived, pause)
                    pause = min(pause * 2, LONGEST_PAUSE_S)
        finally:
            del self._pending[uid], self._arrived[uid], self._workers[uid]

    @staticmethod
    async def _pause(arrived: asyncio.Event, seconds: float) -> None:
        """Wait before trying again, cut short by a newer effect."""
        try:
            async with asyncio.timeout(seconds):
                await arrived.wait()
        except TimeoutError:
            return

    async def _attempt(self, effect: Effect) -> bool:
        """Try once; whether the effect is done with."""
        async with self._slots:
            try:
                match effect:
                    case Start(uid=uid):
                        plan = await self._plan(uid)
                        if plan is not None:
                            await self._engine.start(plan)
                    case Refresh(uid=uid):
                        info = await self._job_info(uid)
                        if info is not None:
                            await self._engine.refresh(uid, info)
                    case Stop(uid=uid):
                        await self._engine.stop(uid, self._grace_s)
                    case Forget(uid=uid):
                        await self._engine.forget(uid)
                        self._report(job_of(uid), TaskForgotten(uid))
            except StartRefused as refusal:
                self._report(job_of(effect.uid), TaskExited(effect.uid, self._refused(refusal)))
            except (EngineError, Unavailable, OSError) as error:
                verb = type(effect).__name__.lower()
                # An engine may repeat parts of a plan, secrets and all: that goes to the job, which is scrubbed.
                reason = type(error).__name__ if isinstance(error, EngineError) else error
                log.warning("cannot %s %s now, will try again: %s", verb, effect.uid, reason)
                if isinstance(effect, Start):
                    why = Text("the start is tried again: {why}", why=engine_said(str(error)))
                    self._report(job_of(effect.uid), Waiting(why))
                return False
        return True

    def _refused(self, refusal: StartRefused) -> TaskExit:
        reason = "start-forbidden" if isinstance(refusal, StartForbidden) else "start-failed"
        return TaskExit(code=None, reason=reason, message=str(refusal), at=self._clock())


def _drop_older(queue: deque[Effect]) -> None:
    """Take out what a newer refresh makes needless; the first in the queue may be under way and stays."""
    for effect in list(queue)[1:]:
        if isinstance(effect, Refresh):
            queue.remove(effect)
