"""Events and logs, as plain answers and pushed."""

from __future__ import annotations

import asyncio
import json
from datetime import UTC, datetime
from pathlib import Path

import aiohttp
import pytest
from tornado.httpclient import HTTPClientError, HTTPRequest
from tornado.websocket import WebSocketClientConnection, websocket_connect

from pai_backend.api import application
from pai_backend.model.ids import TaskUid
from pai_backend.model.job import Job, State
from pai_backend.store.base import NewEvent
from tests.support.api_site import ALICE, BOB, ROOT, ApiSite, running_api
from tests.support.documents import scm_document
from tests.support.wordings import ERROR_KEYS


async def connect(
    api: ApiSite, path: str, token: str = ALICE, headers: dict[str, str] | None = None
) -> WebSocketClientConnection:
    request = HTTPRequest(
        api.websocket_url + path, headers={"Authorization": f"Bearer {token}", **(headers or {})}, request_timeout=60
    )
    return await websocket_connect(request)


async def submitted(api: ApiSite, name: str = "hello", token: str = ALICE) -> Job:
    async with api.client(token) as client:
        answer = await client.post("/api/v2/jobs", content=scm_document(name))
        assert answer.status_code == 202, answer.text
    return await api.store.jobs.get(answer.json()["uid"])


async def end(api: ApiSite, job: Job) -> None:
    """Let the controller's side end the job, as a decision with its event."""
    now = datetime.now(UTC)
    lease = await api.store.leadership.acquire("test", 60, now, force=True)
    assert lease is not None
    ended = job.model_copy(update={"state": State.STOPPED, "completed_at": now})
    event = NewEvent("job.state", {"state": "STOPPED"})
    await api.store.jobs.save(ended, seen=job, epoch=lease.epoch, events=[event], at=now)


def first_task(job: Job) -> TaskUid:
    return job.tasks[0].uid


async def followers(api: ApiSite, wanted: int) -> None:
    """Until so many streams wait for news; nobody is told of that, so it is looked for."""
    async with asyncio.timeout(60):
        while api.changes.followers != wanted:  # noqa: ASYNC110
            await asyncio.sleep(0.01)


async def messages(socket: WebSocketClientConnection) -> list[str | bytes]:
    """Everything until the server closes."""
    found: list[str | bytes] = []
    while (message := await asyncio.wait_for(socket.read_message(), 60)) is not None:
        found.append(message)
    return found


@pytest.mark.asyncio
async def test_events_are_pushed_as_they_come_and_the_stream_closes_after_the_last(api: ApiSite) -> None:
    job = await submitted(api)
    socket = await connect(api, "/api/v2/jobs/hello/events/stream")
    first = json.loads(str(await asyncio.wait_for(socket.read_message(), 60)))
    assert (first["seq"], first["type"]) == (1, "job.submitted")
    await end(api, job)
    rest = [json.loads(str(message)) for message in await messages(socket)]
    assert [(event["seq"], event["type"]) for event in rest] == [(2, "job.state")]
    assert (socket.close_code, socket.close_reason) == (1000, "complete")


@pytest.mark.asyncio
@pytest.mark.parametrize("stream", ["jobs/hello/events/stream?after=1&", "jobs/hello/logs/stream?", "events/stream?"])
async def test_a_silent_stream_says_that_it_is_alive_to_those_who_ask(api: ApiSite, stream: str) -> None:
    await submitted(api)
    socket = await connect(api, f"/api/v2/{stream}heartbeat=1")
    assert [await asyncio.wait_for(socket.read_message(), 60) for _ in range(2)] == ["", ""]
    socket.close()


@pytest.mark.asyncio
async def test_events_go_on_after_the_one_a_client_has(api: ApiSite) -> None:
    await end(api, await submitted(api))
    socket = await connect(api, "/api/v2/jobs/hello/events/stream?after=1")
    assert [json.loads(str(message))["seq"] for message in await messages(socket)] == [2]
    async with api.client() as client:
        plain = (await client.get("/api/v2/jobs/hello/events?after=1")).json()
    assert [event["seq"] for event in plain["data"]] == [2]


@pytest.mark.asyncio
async def test_the_stream_of_all_jobs_has_only_what_the_caller_may_see(api: ApiSite) -> None:
    everything = await connect(api, "/api/v2/events/stream", ROOT)
    own = await connect(api, "/api/v2/events/stream", BOB)
    await followers(api, 2)
    await submitted(api, "hers", ALICE)
    await submitted(api, "his", BOB)
    seen = [json.loads(str(await asyncio.wait_for(everything.read_message(), 60))) for _ in range(2)]
    mine = json.loads(str(await asyncio.wait_for(own.read_message(), 60)))
    assert [message["event"]["payload"]["name"] for message in seen] == ["hers", "his"]
    assert mine["event"]["payload"]["name"] == "his"
    later = await connect(api, f"/api/v2/events/stream?position={seen[0]['position']}", ROOT)
    again = json.loads(str(await asyncio.wait_for(later.read_message(), 60)))
    assert again["event"]["payload"]["name"] in ("hers", "his")
    for socket in (everything, own, later):
        socket.close()


@pytest.mark.asyncio
async def test_many_followers_share_one_waiter_on_the_store(api: ApiSite, monkeypatch: pytest.MonkeyPatch) -> None:
    waiting, most = 0, 0
    original = api.store.changes.wait

    async def counted(seen: int, timeout_s: float) -> int:
        nonlocal waiting, most
        waiting += 1
        most = max(most, waiting)
        try:
            return await original(seen, timeout_s)
        finally:
            waiting -= 1

    monkeypatch.setattr(api.store.changes, "wait", counted)
    job = await submitted(api)
    sockets = [await connect(api, "/api/v2/jobs/hello/events/stream") for _ in range(20)]
    for socket in sockets:
        await asyncio.wait_for(socket.read_message(), 60)
    await end(api, job)
    lasts = [[json.loads(str(message))["type"] for message in await messages(socket)] for socket in sockets]
    assert lasts == [["job.state"]] * 20
    assert most == 1


@pytest.mark.asyncio
async def test_a_log_is_followed_from_before_the_task_starts_to_its_end(api: ApiSite) -> None:
    job = await submitted(api)
    socket = await connect(api, "/api/v2/jobs/hello/logs/stream")
    await api.engine.write(first_task(job), b"one\n")
    async with api.client() as client:  # any change makes the waiting stream look again
        await client.put("/api/v2/jobs/hello/executionType", json={"value": "STOP"})
    assert await asyncio.wait_for(socket.read_message(), 60) == b"one\n"
    await api.engine.write(first_task(job), b"\xff\x00two", end=True)
    assert await messages(socket) == [b"\xff\x00two"]
    assert socket.close_code == 1000


@pytest.mark.asyncio
async def test_the_log_stream_of_a_task_that_never_started_ends_with_its_job(api: ApiSite) -> None:
    job = await submitted(api)
    socket = await connect(api, "/api/v2/jobs/hello/logs/stream")
    await end(api, job)
    assert await messages(socket) == []
    assert socket.close_code == 1000


@pytest.mark.asyncio
@pytest.mark.parametrize(
    ("query", "first", "text"),
    [
        ("", 100, b"," * 900 + b";" * 1000),
        ("offset=1500", 1500, b";" * 500),
        ("offset=1500&limit=20", 1500, b";" * 20),
        ("offset=0&limit=10", 100, b"," * 10),
        ("offset=-5", 1995, b";" * 5),
        ("offset=-5000", 100, b"," * 900 + b";" * 1000),
        ("offset=2000", 2000, b""),
        ("offset=9000", 9000, b""),
        ("limit=0", 100, b""),
        ("index=1", 0, b""),
    ],
)
async def test_part_of_a_log_says_which_bytes_it_is(api: ApiSite, query: str, first: int, text: bytes) -> None:
    job = await submitted(api)
    # Letters may be the beginning of a key's line, which is held back until it is known not to be one.
    await api.engine.write(first_task(job), b"," * 1000 + b";" * 1000)
    api.engine.tasks[first_task(job)].oldest = 100
    async with api.client() as client:
        answer = await client.get(f"/api/v2/jobs/hello/logs?{query}")
    assert answer.content == text
    assert answer.headers["content-type"] == "text/plain; charset=utf-8"
    assert int(answer.headers["x-pai-offset"]) == first
    assert int(answer.headers["x-pai-next"]) == first + len(text)


@pytest.mark.asyncio
async def test_log_locations_lead_to_the_logs(api: ApiSite) -> None:
    job = await submitted(api)
    await api.engine.write(first_task(job), b"hello")
    async with api.client() as client:
        path = "/api/v2/jobs/hello/attempts/0/taskRoles/worker/taskIndex/0/attempts/0/logs"
        locations = (await client.get(path)).json()["locations"]
        texts = {entry["name"]: (await client.get(entry["uri"])).text for entry in locations}
        absent = await client.get(path.replace("attempts/0/logs", "attempts/1/logs"))
    assert texts == {"stdout": "hello", "stderr": "hello", "all": "hello"}
    assert absent.status_code == 404


@pytest.mark.asyncio
@pytest.mark.parametrize(
    ("path", "headers", "token", "status"),
    [
        ("/api/v2/jobs/hello/events/stream", {"Origin": "https://evil.example"}, ALICE, 403),
        ("/api/v2/jobs/hello/events/stream", {"Origin": "null"}, ALICE, 403),
        ("/api/v2/jobs/hello/events/stream", {"Origin": "http://[bad"}, ALICE, 403),
        ("/api/v2/jobs/hello/events/stream", {}, "wrong", 401),
        ("/api/v2/jobs/nothing/events/stream", {}, ALICE, 404),
        ("/api/v2/jobs/hello/events/stream?after=x", {}, ALICE, 400),
        ("/api/v2/jobs/hello/logs/stream?role=boss", {}, ALICE, 404),
    ],
)
async def test_a_stream_is_refused_before_the_upgrade(
    api: ApiSite, path: str, headers: dict[str, str], token: str, status: int
) -> None:
    await submitted(api)
    with pytest.raises(HTTPClientError) as refusal:
        await connect(api, path, token, headers)
    assert refusal.value.code == status
    assert refusal.value.response is not None
    assert set(json.loads(refusal.value.response.body)) == ERROR_KEYS


@pytest.mark.asyncio
async def test_pages_of_our_own_and_of_listed_origins_may_open_streams(api: ApiSite) -> None:
    await end(api, await submitted(api))
    for origin in (api.url, "https://lab.example.org"):
        socket = await connect(api, "/api/v2/jobs/hello/events/stream", headers={"Origin": origin})
        assert len(await messages(socket)) == 2


@pytest.mark.asyncio
async def test_a_client_that_leaves_is_forgotten(api: ApiSite) -> None:
    await submitted(api)
    socket = await connect(api, "/api/v2/jobs/hello/events/stream")
    await socket.read_message()
    await followers(api, 1)
    socket.close()
    await followers(api, 0)


@pytest.mark.asyncio
@pytest.mark.parametrize("framing", [{}, {"Content-Length": "0"}])
async def test_a_stream_stays_open_while_its_client_answers_pings(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, framing: dict[str, str]
) -> None:
    monkeypatch.setattr(application, "PING_S", 1)
    headers = {"Authorization": f"Bearer {ALICE}", **framing}
    async with running_api(tmp_path) as site, aiohttp.ClientSession(trust_env=False) as session:
        url = f"{site.url}/api/v2/events/stream".replace("http", "ws", 1)
        async with session.ws_connect(url, headers=headers, autoping=False) as stream:
            for _ in range(3):
                message = await stream.receive(timeout=30)
                assert message.type is aiohttp.WSMsgType.PING, message
                await stream.pong(message.data)
