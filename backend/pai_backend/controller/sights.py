"""One look at what uses a job: what was written of its use, its Jupyter servers and its GPUs."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from datetime import datetime, timedelta

from pai_backend.controller.gpu_looks import GpuLooks
from pai_backend.controller.jupyters import Activity, Server, Unread, activity, servers
from pai_backend.engine.base import Engine
from pai_backend.lifecycle.idleness import Sight, running_since
from pai_backend.model.idle import Source
from pai_backend.model.ids import JobUid
from pai_backend.model.job import Job, Phase

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

    async def look(self, job: Job, written: Mapping[Source, datetime]) -> Sight:
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
        counted, working, unread = dict(written), set[Source](), dict[Source, str]()
        heard = {server.name: one for server, one in zip(asked, said, strict=True) if isinstance(one, Activity)}
        if any(one.busy for one in heard.values()):
            working.add(Source.KERNELS)
        if silent := [str(one) for one in said if isinstance(one, Unread)]:
            unread[Source.KERNELS] = silent[0]
        else:  # the kernels tell what the page cannot: whether somebody works
            counted.pop(Source.PAGE, None)
        if gpus.works:
            working.add(Source.GPU)
        if gpus.unread:
            unread[Source.GPU] = gpus.unread
        marks = {name: one.mark for name, one in heard.items()}
        since = running_since(job)
        return Sight(self._clock(), self._since, since, counted, frozenset(working), marks, unread)

    def forget(self, job: JobUid) -> None:
        """The job is looked at no more."""
        self._gpus.forget(job)

    async def _ask(self, server: Server) -> Activity | Unread:
        async with self._room:
            try:
                return await activity(self._engine, server)
            except Unread as unread:
                return unread
