"""What uses a job: its Jupyter servers tell of their kernels and terminals, its engine of the work of GPUs.

A kernel that computes and a terminal with input are use. An open page is not: it polls lists all day. Source:
Jupyter Server REST API, ``/api/kernels`` and ``/api/terminals`` (``last_activity``, ``execution_state``).

Of GPUs a few tasks are asked at a look, the others at the next, one that works first. What is known of a task is what
was read of it last, within a quarter of the job's ``idleTimeout``: a job of thousands of tasks costs the engine one
question a look while its first works, and no burst when all rest.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from pai_backend.access.proxy.http1 import BadMessage
from pai_backend.access.proxy.service import Dialer
from pai_backend.access.proxy.upstream import NoResponse, UpstreamRequest, Wire
from pai_backend.engine.base import Engine, EngineError, GpuMeter, GpuUse
from pai_backend.launch.jupyter import find_jupyter, serves_jupyter, upstream_token
from pai_backend.launch.plan import environment
from pai_backend.lifecycle.idleness import gpus_at_a_look, looks_believed, looks_between
from pai_backend.model.ids import JobUid, TaskUid
from pai_backend.model.job import Job, Task
from pai_backend.model.text import Text, listed

ANSWER_S = 5.0
"""Seconds for one server to answer; one that computes hard answers late."""
ANSWER_BYTES = 1 << 20

_NAMED = re.compile("jupyter|notebook|nbclassic|lab", re.IGNORECASE)
"""What the command or a label of every Jupyter server has in it that :func:`serves_jupyter` knows."""


class Unread(Exception):
    """It could not be learnt; the message says why, in a few words for users."""


@dataclass(frozen=True)
class Server:
    """A Jupyter server of a task, as far as its command and its ports tell. ``token``: empty for none."""

    name: str
    task: Task
    port: int
    token: str | None
    base_url: str | None


@dataclass(frozen=True)
class Activity:
    """Whether a kernel computes, and the server's own time of the last activity; empty when there was none yet."""

    busy: bool
    mark: str


def servers(job: Job, task: Task, made: str) -> Iterator[Server]:
    """The Jupyter servers of a running task; ``made`` is the token that its tasks are given."""
    command = job.spec.role(task.role).command
    labels = task.placement.ports if task.placement is not None else {}
    if not any(_NAMED.search(text) for text in (command, *labels)):  # a job may have a thousand tasks
        return
    env = environment(job, task)
    for label, ports in labels.items():
        if not ports or not serves_jupyter(command, env, label=label, port=ports[0]):
            continue
        found = find_jupyter(command, env)
        token = upstream_token(command, env, label=label, port=ports[0], made=made)
        if token is None and found is not None:
            token = found.token
        yield Server(f"{task.uid}/{label}", task, ports[0], token, found.base_url if found is not None else "/")


async def activity(engine: Dialer, server: Server) -> Activity:
    """What a server says now. Raises Unread."""
    if server.token is None or server.base_url is None:
        raise Unread(Text("the token or address of its Jupyter server is only known to its command"))
    try:
        async with asyncio.timeout(ANSWER_S):
            kernels = await _get(engine, server, "api/kernels")
            terminals = await _get(engine, server, "api/terminals", may_miss=True)
        last = [_time(each.get("last_activity")) for each in (*kernels, *terminals)]
    except (EngineError, OSError, TimeoutError, NoResponse) as error:
        raise Unread(Text("the Jupyter server of task {task} does not answer", task=server.task.name)) from error
    except (ValueError, RecursionError, BadMessage) as error:
        raise Unread(
            Text("the Jupyter server of task {task} gives an unexpected answer", task=server.task.name)
        ) from error
    return Activity(any(each.get("execution_state") == "busy" for each in kernels), max(last, default=""))


async def _get(engine: Dialer, server: Server, path: str, *, may_miss: bool = False) -> list[dict[str, object]]:
    """A list that the server gives; empty if it ``may_miss`` and does. Raises Unread when the server refuses us,
    ValueError for anything else, such as the page of a service that is no Jupyter at all.
    """
    assert server.task.placement is not None
    request = UpstreamRequest(Wire(await engine.dial(server.task.placement, server.task.uid, server.port)))
    fields = [(b"Host", f"localhost:{server.port}".encode()), (b"Accept", b"application/json")]
    if server.token:
        fields.append((b"Authorization", f"token {server.token}".encode()))
    try:
        await request.head("GET", f"{server.base_url}{path}".encode(), fields)
        await request.end()
        response = await request.response()
        body = b""
        async for chunk in request.chunks():
            body += chunk
            if len(body) > ANSWER_BYTES:
                raise ValueError("too long")
    finally:
        request.close()
    if response.status == 404:
        if may_miss:  # a server without terminals
            return []
        raise ValueError("no Jupyter")
    if response.status != 200:
        raise Unread(Text("the Jupyter server of task {task} rejects its known token", task=server.task.name))
    listed = json.loads(body)
    if not isinstance(listed, list) or not all(isinstance(each, dict) for each in listed):
        raise ValueError("no list")
    return listed


def _time(value: object) -> str:
    """A time in one spelling, so that times compare as texts. Raises ValueError."""
    if not isinstance(value, str):
        raise ValueError("no time")
    return datetime.fromisoformat(value).isoformat()


FLOOR_PERCENT: Final = 5
"""Less work of a GPU is no use: a desktop or a monitoring agent on it shows 1 to 2."""
AT_ONCE: Final = 16  # tasks that are asked at the same time, in all
AT_ONCE_OF_A_JOB: Final = 8  # so that one whose tasks do not answer leaves room
TASK_ANSWER_S: Final = 12.0  # for one task
LOOK_S: Final = 25.0  # for a look at a job, which others wait for
MOST_SKIPPED: Final = 16  # looks; a task that cannot be read is asked less and less often, at least so often


@dataclass(frozen=True)
class GpuSight:
    """Whether a GPU of the job works at this look; if none does, why some may work all the same."""

    works: bool
    unread: str = ""


@dataclass(frozen=True)
class _Reading:
    """What a task's GPUs told. ``at``: the number of the look."""

    at: int
    percent: int
    unread: str
    failures: int

    @property
    def works(self) -> bool:
        return self.percent >= FLOOR_PERCENT

    def rests(self, since: int) -> bool:
        return not self.works and not self.unread and self.at >= since


class _Known:
    """What is known of one job."""

    def __init__(self, between: int) -> None:
        """``between``: after how many looks a task is asked again."""
        self._between = between
        self.look = 0
        self.readings: dict[TaskUid, _Reading] = {}

    def begin(self, tasks: Sequence[Task]) -> None:
        """Another look; tasks that run no longer are forgotten."""
        self.look += 1
        running = {task.uid for task in tasks}
        self.readings = {uid: reading for uid, reading in self.readings.items() if uid in running}

    def next(self, tasks: Sequence[Task], count: int) -> list[Task]:
        """Whom to ask: who worked when it was asked last, then who was asked longest ago."""

        def order(task: Task) -> tuple[bool, int]:
            reading = self.readings.get(task.uid)
            return (True, 0) if reading is None else (not reading.works, reading.at)

        return sorted((task for task in tasks if self._is_due(self.readings.get(task.uid))), key=order)[:count]

    def _is_due(self, reading: _Reading | None) -> bool:
        if reading is None:
            return True
        pause = min(MOST_SKIPPED, 1 << max(0, reading.failures - 1))
        return self.look - reading.at >= max(self._between, pause)

    def note(self, task: Task, reported: GpuUse | str) -> None:
        """Keep what it told, or why it did not."""
        use = GpuUse(0, reported) if isinstance(reported, str) else reported
        before = self.readings.get(task.uid)
        failures = before.failures + 1 if before is not None else 1
        silent = bool(use.unread) and use.percent < FLOOR_PERCENT
        self.readings[task.uid] = _Reading(self.look, use.percent, use.unread, failures if silent else 0)

    @property
    def works(self) -> bool:
        """Whether a GPU worked at this look or just before, so that the tasks are not asked again yet."""
        return any(each.works and self.look - each.at < self._between for each in self.readings.values())

    def unread(self, tasks: Sequence[Task], believed: int) -> str:
        """Why some task may work though none was seen to; empty when all rested at one of the last looks, so many."""
        readings = [(task, self.readings.get(task.uid)) for task in tasks]
        open_ = [(task, each) for task, each in readings if each is None or not each.rests(self.look - believed)]
        if not open_:
            return ""
        task, reading = next((pair for pair in open_ if pair[1] is not None and pair[1].unread), open_[0])
        why = reading.unread if reading is not None and reading.unread else Text("it has not been checked yet")
        return Text(
            "{why} (task {tasks})", why=why, tasks=listed([task.name, *(each.name for each, _ in open_[1:])], 1)
        )


class GpuLooks:
    """Looks at GPUs of jobs during one tenure."""

    def __init__(self, engine: Engine) -> None:
        self._meter = engine if isinstance(engine, GpuMeter) else None
        self._room = asyncio.Semaphore(AT_ONCE)
        self._jobs: dict[JobUid, _Known] = {}

    async def look(self, job: JobUid, tasks: Sequence[Task], idle_timeout: timedelta) -> GpuSight:
        """Look at a job by those of its running tasks that have GPUs."""
        if not tasks:
            return GpuSight(works=False)
        if self._meter is None:
            return GpuSight(works=False, unread=Text("this engine does not report it"))
        known = self._jobs.setdefault(job, _Known(looks_between(idle_timeout)))
        known.begin(tasks)
        if known.works:
            return GpuSight(works=True)
        asked = known.next(tasks, gpus_at_a_look(len(tasks), idle_timeout))
        before = known.readings.get(asked[0].uid) if asked else None
        first, rest = (asked[:1], asked[1:]) if before is not None and before.works else ([], asked)
        with suppress(TimeoutError):  # who was not asked is what it was, and the first of the next look
            async with asyncio.timeout(LOOK_S):
                await self._ask(known, first)
                if not known.works:
                    await self._ask(known, rest)
        unread = "" if known.works else known.unread(tasks, looks_believed(idle_timeout))
        return GpuSight(works=known.works, unread=unread)

    def forget(self, job: JobUid) -> None:
        """Stop looking at the job."""
        self._jobs.pop(job, None)

    async def _ask(self, known: _Known, tasks: Sequence[Task]) -> None:
        share = asyncio.Semaphore(AT_ONCE_OF_A_JOB)

        async def ask(task: Task) -> None:
            async with share, self._room:
                known.note(task, await self._answer(task))

        async with asyncio.TaskGroup() as group:
            for task in tasks:
                group.create_task(ask(task))

    async def _answer(self, task: Task) -> GpuUse | str:
        assert self._meter is not None
        assert task.placement is not None
        try:
            async with asyncio.timeout(TASK_ANSWER_S):
                return await self._meter.gpu_use(task.placement, task.uid)
        except EngineError as error:
            return str(error)
        except TimeoutError:
            return "the engine does not answer"
