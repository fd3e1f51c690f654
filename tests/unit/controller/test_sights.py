"""What a look at a job shows: Jupyter's answers over a real socket, GPUs, and what is left out or unknown."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import cast

import pytest

from pai_backend.controller.idle_clocks import Watcher
from pai_backend.engine.base import Connection, Engine, EngineError, GpuUse
from pai_backend.model.idle import UseSource
from pai_backend.model.ids import JobUid, TaskUid
from pai_backend.model.job import Job
from pai_backend.model.node import Placement
from pai_backend.testing.builders import T0
from tests.support.proxy_fakes import service_job

LATE, EARLY = "2026-11-22T08:00:00.000000Z", "2026-11-22T07:00:00.000000Z"
JUPYTER = "exec jupyter lab --port=$PAI_CONTAINER_HOST_lab_PORT_LIST"


class Rest:
    """A server that answers as Jupyter's REST does; ``kernels`` is what it has, a status, or any text."""

    def __init__(self, kernels: list[dict[str, str]] | int | str, terminals: list[dict[str, str]] | int = 404) -> None:
        self.answers = {b"/api/kernels": kernels, b"/api/terminals": terminals}
        self.asked: list[bytes] = []

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        request = await reader.readuntil(b"\r\n\r\n")
        self.asked.append(request)
        answer = self.answers[request.split(b" ")[1]]
        body = answer.encode() if isinstance(answer, str) else json.dumps(answer).encode()
        status, body = (answer, b"{}") if isinstance(answer, int) else (200, body)
        writer.write(b"HTTP/1.1 %d X\r\nContent-Length: %d\r\n\r\n%b" % (status, len(body), body))
        await writer.drain()
        writer.close()


class Machine:
    """The part of an engine that looks need. ``percent``: of its GPUs, or why that is not known."""

    def __init__(self, percent: int | str = 0) -> None:
        self.percent = percent

    async def dial(self, placement: Placement, uid: TaskUid, port: int) -> Connection:
        try:
            return Connection(*await asyncio.open_connection("127.0.0.1", port))
        except OSError as error:
            raise EngineError("nothing answers") from error

    async def gpu_use(self, placement: Placement, uid: TaskUid) -> GpuUse:
        if isinstance(self.percent, str):
            raise EngineError(self.percent)
        return GpuUse(self.percent)


async def token(uid: JobUid) -> str:
    return "made"


def watcher(machine: Machine) -> Watcher:
    return Watcher(cast("Engine", machine), token, lambda: T0)


def watched(job: Job) -> Job:
    return job.model_copy(update={"spec": job.spec.model_copy(update={"idle_timeout_s": 3600})})


@asynccontextmanager
async def jupyter(rest: Rest) -> AsyncIterator[Job]:
    server = await asyncio.start_server(rest.serve, "127.0.0.1", 0)
    async with server:
        yield watched(service_job(server.sockets[0].getsockname()[1], command=JUPYTER, label="lab"))


def with_gpu(job: Job) -> Job:
    task = job.tasks[0]
    assert task.placement is not None
    placed = task.model_copy(update={"placement": task.placement.model_copy(update={"gpus": (0,)})})
    return job.model_copy(update={"tasks": (placed,)})


@pytest.mark.asyncio
async def test_kernels_and_terminals_tell_their_last_activity_and_the_open_page_is_no_use() -> None:
    idle = {"execution_state": "idle"}
    rest = Rest([{**idle, "last_activity": EARLY}], [{"name": "1", "last_activity": LATE}])
    async with jupyter(rest) as job:
        sight = await watcher(Machine()).look(job, {UseSource.PAGE: T0, UseSource.SSH: T0 - timedelta(hours=1)})
    assert (sight.written, sight.working) == ({UseSource.SSH: T0 - timedelta(hours=1)}, frozenset())
    assert sight.kernels == {f"{job.tasks[0].uid}/lab": "2026-11-22T08:00:00+00:00"}
    assert not sight.unread
    assert all(b"authorization: token made" in request.lower() for request in rest.asked)


@pytest.mark.asyncio
async def test_a_kernel_that_computes_is_use_however_long_ago_it_began() -> None:
    async with jupyter(Rest([{"execution_state": "busy", "last_activity": EARLY}])) as job:
        sight = await watcher(Machine()).look(job, {})
    assert sight.working == {UseSource.KERNELS}


@pytest.mark.asyncio
@pytest.mark.parametrize(
    ("rest", "why"),
    [
        (Rest(403), "the Jupyter server of task worker-0 rejects its known token"),
        (
            Rest(cast("list[dict[str, str]]", {"a": 1})),
            "the Jupyter server of task worker-0 gives an unexpected answer",
        ),
        (Rest(404), "the Jupyter server of task worker-0 gives an unexpected answer"),
        (Rest([{"last_activity": "soon"}]), "the Jupyter server of task worker-0 gives an unexpected answer"),
        (Rest("[" * 100_000), "the Jupyter server of task worker-0 gives an unexpected answer"),
    ],
    ids=["refused", "no list", "no Jupyter", "no time", "too deep"],
)
async def test_a_jupyter_that_tells_nothing_is_told_and_its_page_counts(rest: Rest, why: str) -> None:
    async with jupyter(rest) as job:
        sight = await watcher(Machine()).look(job, {UseSource.PAGE: T0})
    assert (sight.unread, sight.written, sight.kernels) == ({UseSource.KERNELS: why}, {UseSource.PAGE: T0}, {})
    assert "made" not in why


@pytest.mark.asyncio
async def test_what_does_not_answer_and_what_shows_no_token_is_unread() -> None:
    async with jupyter(Rest([])) as job:
        pass
    sight = await watcher(Machine()).look(job, {})
    assert sight.unread == {UseSource.KERNELS: "the Jupyter server of task worker-0 does not answer"}
    secret = watched(service_job(1, command='jupyter lab --ServerApp.token="$(cat token)"', label="lab"))
    sight = await watcher(Machine()).look(secret, {})
    assert "only known to its command" in sight.unread[UseSource.KERNELS]


@pytest.mark.asyncio
@pytest.mark.parametrize(
    ("percent", "used", "unread"),
    [
        (100, True, {}),
        (5, True, {}),
        (4, False, {}),
        ("no driver", False, {UseSource.GPU: "no driver (task worker-0)"}),
    ],
)
async def test_gpus_are_use_from_the_floor_on_and_an_unknown_one_is_told(
    percent: int | str, used: bool, unread: dict[UseSource, str]
) -> None:
    job = watched(service_job(1))
    sight = await watcher(Machine(percent)).look(with_gpu(job), {})
    assert (set(sight.working), dict(sight.unread)) == ({UseSource.GPU} if used else set(), unread)
    assert not (await watcher(Machine(percent)).look(job, {})).unread, "a job without GPUs has nothing to tell"
