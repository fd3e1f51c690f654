"""What of the traffic through the proxy is written down as use of a job with an idle timeout."""

from __future__ import annotations

import asyncio
from typing import cast

import pytest
from tornado.httpclient import HTTPRequest
from tornado.websocket import WebSocketClientConnection, websocket_connect

from pai_backend.access.uses import Uses
from pai_backend.model.idle import UseSource
from pai_backend.model.ids import JobUid
from pai_backend.model.job import Job
from tests.support.proxy_fakes import ProxyUnderTest, running_proxy, service_job
from tests.support.proxy_upstreams import web_server

TOKEN = {"Authorization": "Bearer alice-token"}


class Noted:
    """Remembers what is noted."""

    def __init__(self) -> None:
        self.found: list[tuple[JobUid, UseSource, int]] = []

    def note(self, job: JobUid, source: UseSource, timeout_s: int) -> None:
        self.found.append((job, source, timeout_s))

    def taken(self) -> set[UseSource]:
        """The sources since the last call."""
        found, self.found = {source for _, source, _ in self.found}, []
        return found


def idling(job: Job) -> Job:
    return job.model_copy(update={"spec": job.spec.model_copy(update={"idle_timeout_s": 60})})


async def connected(under_test: ProxyUnderTest) -> WebSocketClientConnection:
    url = f"ws://127.0.0.1:{under_test.port}/deep/ws"
    return await websocket_connect(HTTPRequest(url, headers={"Host": under_test.authority, **TOKEN}))


@pytest.mark.asyncio
async def test_requests_and_messages_are_use_and_pings_are_none() -> None:
    noted = Noted()
    async with web_server() as (port, _), running_proxy(idling(service_job(port)), uses=cast("Uses", noted)) as under:
        assert (await under.client(**TOKEN).get("/deep/page")).status_code < 500
        assert noted.found[0] == (next(iter(under.store.jobs.values())).uid, UseSource.SERVICE, 60)
        socket = await connected(under)
        noted.taken()
        answered = asyncio.Event()
        socket.on_pong = lambda data: answered.set()  # type: ignore[method-assign]
        socket.ping(b"are you there")
        await asyncio.wait_for(answered.wait(), 60)
        assert noted.taken() == set()
        await socket.write_message("work")
        assert await socket.read_message() == "work"
        assert noted.taken() == {UseSource.SERVICE}
        socket.close()


@pytest.mark.asyncio
async def test_an_open_page_of_jupyter_is_told_from_what_its_user_changes() -> None:
    noted = Noted()
    async with web_server() as (port, _):
        job = idling(service_job(port, command="jupyter lab --port=$PAI_CONTAINER_HOST_web_PORT_LIST"))
        async with running_proxy(job, uses=cast("Uses", noted)) as under:
            client = under.client(**TOKEN)
            await client.get("/api/kernels")
            assert noted.taken() == {UseSource.PAGE}
            socket = await connected(under)
            await socket.write_message("a message to a kernel, which tells of it itself")
            await socket.read_message()
            assert noted.taken() == {UseSource.PAGE}
            socket.close()
            await client.put("/api/contents/a.ipynb", content=b"x")
            assert UseSource.SERVICE in noted.taken()


@pytest.mark.asyncio
async def test_of_a_job_without_a_timeout_and_of_strangers_nothing_is_written() -> None:
    noted = Noted()
    async with web_server() as (port, _):
        async with running_proxy(service_job(port), uses=cast("Uses", noted)) as under:
            await under.client(**TOKEN).get("/")
        async with running_proxy(idling(service_job(port)), uses=cast("Uses", noted)) as under:
            assert (await under.client().get("/")).status_code == 401
            assert (await under.client(Authorization="Bearer bob-token").get("/")).status_code == 403
    assert noted.found == []
