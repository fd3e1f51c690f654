"""Copying the output of tasks into our files while they run, before their kubelets rotate it away.

Following costs a connection, and on the node one of few inotify instances (``fs.inotify.max_user_instances``): only so
many tasks are followed at once, and only those that last. Of the others the output is copied at their end. Where a node
cannot let a log be followed, it is read again every few seconds.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from typing import Final, ParamSpec, TypeVar

from pai_backend.engine.base import EngineError
from pai_backend.engine.kubernetes.failures import ApiNotFound, ApiUnauthorized, Busy, Invalid, Malformed, Unreachable
from pai_backend.engine.kubernetes.logs.kept import InUse, KeptLog
from pai_backend.engine.kubernetes.logs.kubelet import OutputSource
from pai_backend.engine.kubernetes.logs.sources import Sources
from pai_backend.model.ids import TaskUid

_log = logging.getLogger(__name__)
_Given = ParamSpec("_Given")
_Made = TypeVar("_Made")

FOLLOWED: Final = 200
BEGIN_S: Final = 5.0  # a shorter task is copied at its end: kubelets look every 10 s whether to rotate
LOOK_AGAIN_S: Final = (0.1, 5.0)  # after a break, doubling while nothing comes
SECURE_S: Final = 5.0  # of output that a power cut makes us read from the kubelet again
GONE_S: Final = 15.0
"""How long a kubelet may say that there is no such container before it is believed: it says so too while the container
runtime is being restarted."""


class Collector:
    """Copies the logs of the tasks that one process watches; ``followed`` of them at once while they run."""

    def __init__(self, sources: Sources, followed: int) -> None:
        self._sources = sources
        self._slots = asyncio.Semaphore(followed)
        self._tasks: dict[TaskUid, asyncio.Task[None]] = {}  # whose logs are being collected
        # Whose turn is still to come, in order, and before when on the loop's clock it does not: thousands may wait.
        self._waiting: dict[TaskUid, float] = {}
        self._calling: asyncio.Task[None] | None = None  # those who wait

    def begin(self, uid: TaskUid) -> None:
        """Collect the log of a task that runs, if it lasts and its turn comes. Idempotent."""
        if uid not in self._tasks and uid not in self._waiting:
            self._waiting[uid] = asyncio.get_running_loop().time() + BEGIN_S
            if self._calling is None:
                self._calling = asyncio.create_task(self._call())

    async def to_the_end(self, uid: TaskUid) -> None:
        """Collect the log until the task has ended, whether there is a turn or not; to be cancelled does not stop it.

        What is unavailable is logged: :meth:`finish` tells.
        """
        if uid not in self._tasks:
            self._waiting.pop(uid, None)
            self._spawn(uid)
        await asyncio.wait({self._tasks[uid]})

    async def finish(self, uid: TaskUid) -> None:
        """Have all of the log that there is now in our files, durably, and none of it afterwards.

        Raises ClusterErrors; EngineError when another process is writing it; OSError.
        """
        await self._stop(uid)
        try:
            await self._copy(uid, growing=False)
        except InUse as busy:
            raise EngineError(f"the log of task {uid} cannot be kept yet: {busy}") from None

    async def aclose(self) -> None:
        """Stop; what was copied stays."""
        self._waiting.clear()
        if self._calling is not None:
            self._calling.cancel()
            await asyncio.wait({self._calling})
        for uid in list(self._tasks):
            await self._stop(uid)

    async def _call(self) -> None:
        """Give turns, one after the other, until none is waiting."""
        try:
            while self._waiting:
                uid, at = next(iter(self._waiting.items()))
                await asyncio.sleep(at - asyncio.get_running_loop().time())
                await self._slots.acquire()
                if self._waiting.pop(uid, None) is None:  # it has ended meanwhile
                    self._slots.release()
                else:
                    self._spawn(uid).add_done_callback(lambda _: self._slots.release())
        finally:
            self._calling = None

    def _spawn(self, uid: TaskUid) -> asyncio.Task[None]:
        task = asyncio.create_task(self._collect(uid))
        self._tasks[uid] = task

        def over(_: asyncio.Task[None]) -> None:
            if self._tasks.get(uid) is task:
                del self._tasks[uid]

        task.add_done_callback(over)
        return task

    async def _stop(self, uid: TaskUid) -> None:
        self._waiting.pop(uid, None)
        task = self._tasks.get(uid)
        if task is not None:
            task.cancel()
            await asyncio.wait({task})

    async def _collect(self, uid: TaskUid) -> None:
        while True:
            try:
                await self._copy(uid, growing=True)
            except InUse:  # the process that watched before us has not ended yet
                await asyncio.sleep(LOOK_AGAIN_S[1])
            except (EngineError, OSError) as error:
                _log.warning("the log of task %s cannot be collected: %s", uid, error)
                return
            else:
                return

    async def _copy(self, uid: TaskUid, *, growing: bool) -> None:
        """Copy up to the task's end, with ``growing``, else what exists now. Raises InUse, ClusterErrors, OSError."""
        kept = self._sources.kept(uid)
        extent = await asyncio.to_thread(kept.look)
        if extent is not None and extent.complete:
            return
        with contextlib.ExitStack() as held:
            position = await _whole(held.enter_context, kept.writing())
            copy = _Copy(self._sources, uid, kept, await self._sources.kubelet(uid, position))
            await copy.run(growing=growing)
            await _whole(kept.complete, copy.source.position)


class _Copy:
    """One copying of a log, by the only one who writes it."""

    def __init__(self, sources: Sources, uid: TaskUid, kept: KeptLog, source: OutputSource) -> None:
        self.source = source
        self._sources = sources
        self._uid = uid
        self._kept = kept
        self._secured = time.monotonic()
        self._missing: float | None = None  # since when the kubelet says that there is no container
        self._said = ""

    async def run(self, *, growing: bool) -> None:
        """Copy to the end. Raises ClusterErrors without ``growing``, else none that may pass; OSError."""
        pause = LOOK_AGAIN_S[0]
        while True:
            try:
                over = not growing or await self._sources.is_over(self._uid)
                before = self.source.position.end
                if await self._take(self.source.rest() if over else self.source.growing()) and over:
                    return
                if self.source.position.end > before:
                    pause = LOOK_AGAIN_S[0]
            except (Unreachable, Busy, ApiUnauthorized) as error:  # asking whether it is over renews credentials
                if not growing:
                    raise
                self._tell(logging.INFO, f"is read again: {error}")
            await asyncio.sleep(pause)
            pause = min(2 * pause, LOOK_AGAIN_S[1])

    async def _take(self, pieces: AsyncGenerator[bytes, None]) -> bool:
        """Keep these; whether they are all of it, if the task is over. Raises Unreachable, Busy, OSError."""
        try:
            async with aclosing(pieces):
                async for data in pieces:
                    await _whole(self._kept.append, data, self.source.position, self.source.take_times())
                    await self._secure()
            self._missing = None
        except Invalid:
            return True  # it has not begun
        except Malformed as error:
            self._tell(logging.WARNING, f"is unavailable: {error}")
        except ApiNotFound as error:
            if self.source.read_out:
                return True  # kubelets remove a container at once when its pod is deleted, and all of it was read
            now = time.monotonic()
            self._missing = self._missing or now
            if now - self._missing < GONE_S and await self._sources.has_pod(self._uid):
                return False
            self._tell(logging.WARNING, f"has lost its end: {error}")
        return True

    async def _secure(self) -> None:
        if time.monotonic() - self._secured > SECURE_S:
            await _whole(self._kept.secure, self.source.position)
            self._secured = time.monotonic()

    def _tell(self, level: int, trouble: str) -> None:
        """Once, however often it is met in a row."""
        if trouble != self._said:
            self._said = trouble
            _log.log(level, "the log of task %s %s", self._uid, trouble)


async def _whole(act: Callable[_Given, _Made], *given: _Given.args, **named: _Given.kwargs) -> _Made:
    """Do it in a thread, to its end even when we are cancelled: files are closed afterwards."""
    work = asyncio.ensure_future(asyncio.to_thread(act, *given, **named))
    try:
        return await asyncio.shield(work)
    except asyncio.CancelledError:
        await asyncio.wait({work})
        raise
