"""When the output of a task came, beside the output and in its stream."""

from __future__ import annotations

import asyncio
import json
from datetime import UTC, datetime, timedelta

import pytest
from tornado.httpclient import HTTPRequest
from tornado.websocket import websocket_connect

from pai_backend.engine.base import LogTime
from tests.integration.api.test_scrubbed_logs import running
from tests.support.api_site import ALICE, BOB, ApiSite

PATH = "/api/v2/jobs/alice~job/logs"
NOON = datetime(2026, 11, 29, 12, 0, tzinfo=UTC)
LINES = (b"one\n", b"two\n", b"three\n")


async def three_lines(api: ApiSite) -> None:
    """A job of alice that has printed a line a minute."""
    job = await running(api, b"")
    for minutes, line in enumerate(LINES):
        await api.engine.write(job.tasks[0].uid, line, at=NOON + timedelta(minutes=minutes))


@pytest.mark.asyncio
async def test_times_are_given_for_the_bytes_that_are_asked_for(api: ApiSite) -> None:
    await three_lines(api)
    async with api.client() as client:
        every = (await client.get(f"{PATH}/times")).json()
        second = (await client.get(f"{PATH}/times", params={"offset": 4, "limit": 4})).json()
        last = (await client.get(f"{PATH}/times", params={"offset": -6})).json()
        tomorrow = (await client.get(f"{PATH}/times", params={"offset": 99})).json()
        wrong = await client.get(f"{PATH}/times", params={"limit": 0})
        none = await client.get(f"{PATH}/times", params={"role": "boss"})
    assert [each["offset"] for each in every["times"]] == [0, 4, 8]
    assert second == {"times": [{"offset": 4, "at": "2026-11-29T12:01:00Z"}]}
    assert last == {"times": [{"offset": 8, "at": "2026-11-29T12:02:00Z"}]}
    assert tomorrow == {"times": []}
    assert (wrong.status_code, none.status_code) == (400, 404)


@pytest.mark.asyncio
async def test_the_times_of_another_users_log_do_not_exist(api: ApiSite) -> None:
    await three_lines(api)
    async with api.client(BOB) as client:
        assert (await client.get(f"{PATH}/times")).status_code == 404


@pytest.mark.asyncio
async def test_a_task_that_has_not_started_has_no_times(api: ApiSite) -> None:
    job = await running(api, b"")
    del api.engine.tasks[job.tasks[0].uid]
    async with api.client() as client:
        assert (await client.get(f"{PATH}/times")).json() == {"times": []}


@pytest.mark.asyncio
async def test_a_stream_with_timestamps_tells_the_times_of_bytes_before_them(api: ApiSite) -> None:
    await three_lines(api)
    request = HTTPRequest(
        f"{api.websocket_url}{PATH}/stream?offset=4&timestamps=true", headers={"Authorization": f"Bearer {ALICE}"}
    )
    socket = await websocket_connect(request)

    async def said() -> str | bytes | None:
        return await asyncio.wait_for(socket.read_message(), 60)

    told = json.loads(str(await said()))
    assert [each["offset"] for each in told["times"]] == [4, 8]
    assert await said() == b"two\nthree\n"
    job = next(iter(api.engine.tasks))
    await api.engine.write(job, b"four\n", at=NOON + timedelta(hours=1), end=True)
    assert json.loads(str(await said())) == {"times": [{"offset": 14, "at": "2026-11-29T13:00:00Z"}]}
    assert await said() == b"four\n"
    assert await said() is None
    assert socket.close_code == 1000


@pytest.mark.asyncio
async def test_a_stream_goes_on_once_where_times_are_gone_with_their_task(
    api: ApiSite, monkeypatch: pytest.MonkeyPatch
) -> None:
    await three_lines(api)

    async def gone(*_: object) -> list[LogTime]:
        raise KeyError("the task was forgotten just now")

    monkeypatch.setattr(api.engine, "log_times", gone)
    request = HTTPRequest(
        f"{api.websocket_url}{PATH}/stream?timestamps=true", headers={"Authorization": f"Bearer {ALICE}"}
    )
    socket = await websocket_connect(request)
    await api.engine.write(next(iter(api.engine.tasks)), end=True)
    said = []
    while (message := await asyncio.wait_for(socket.read_message(), 60)) is not None:
        said.append(message)
    assert said == ['{"times":[]}', b"".join(LINES)]
