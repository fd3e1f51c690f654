"""One look at what uses a job: what was written of its use, its Jupyter servers and its GPUs."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from datetime import datetime

from pai_backend.controller.jupyters import Activity, Server, Unread, activity, servers
from pai_backend.engine.base import Engine, EngineError, GpuMeter
from pai_backend.lifecycle.idleness import Sight, running_since
from pai_backend.model.idle import Source
from pai_backend.model.ids import JobUid
from pai_backend.model.job import Job, Phase, Task

TOGETHER = 64
"""Tasks that are asked at the same time."""
GPU_FLOOR_PERCENT = 5
"""Less work of a GPU is no use: a desktop or a monitoring agent on it shows 1 to 2."""
METER_S = 5.0


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

    async def look(self, job: Job, written: Mapping[Source, datetime]) -> Sight:
        """What uses the job now; ``written`` are the uses that others have written."""
        running = [task for task in job.tasks if task.phase is Phase.RUNNING]
        made = await self._token(job.uid)
        asked = [server for task in running for server in servers(job, task, made)]
        measured = [task for task in running if task.placement is not None and task.placement.gpus]
        said, worked = await asyncio.gather(
            asyncio.gather(*(self._ask(server) for server in asked)),
            asyncio.gather(*(self._measure(task) for task in measured)),
        )
        counted, working, unread = dict(written), set[Source](), dict[Source, str]()
        heard = {server.name: one for server, one in zip(asked, said, strict=True) if isinstance(one, Activity)}
        if any(one.busy for one in heard.values()):
            working.add(Source.KERNELS)
        if silent := [str(one) for one in said if isinstance(one, Unread)]:
            unread[Source.KERNELS] = silent[0]
        else:  # the kernels tell what the page cannot: whether somebody works
            counted.pop(Source.PAGE, None)
        if any(isinstance(one, int) and one >= GPU_FLOOR_PERCENT for one in worked):
            working.add(Source.GPU)
        if dark := [str(one) for one in worked if isinstance(one, EngineError)]:
            unread[Source.GPU] = dark[0]
        marks = {name: one.mark for name, one in heard.items()}
        since = running_since(job)
        return Sight(self._clock(), self._since, since, counted, frozenset(working), marks, unread)

    async def _ask(self, server: Server) -> Activity | Unread:
        async with self._room:
            try:
                return await activity(self._engine, server)
            except Unread as unread:
                return unread

    async def _measure(self, task: Task) -> int | EngineError:
        assert task.placement is not None
        if not isinstance(self._engine, GpuMeter):
            return EngineError("this engine does not tell")
        async with self._room:
            try:
                async with asyncio.timeout(METER_S):
                    return await self._engine.gpu_use(task.placement)
            except EngineError as error:
                return error
            except TimeoutError:
                return EngineError("the engine does not answer")
