"""Reverse proxies as deployed, which pass requests for services on by themselves: the same as the backend does."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass, replace
from ipaddress import ip_network
from pathlib import Path

import httpx
import pytest
from tornado.httpclient import HTTPRequest
from tornado.websocket import websocket_connect

from pai_backend.access.proxy.headers import _OUR_COOKIES
from tests.integration.proxy.test_kept_connections import OK, Server
from tests.support.forwarding_fronts import FRONTS, RunningFront
from tests.support.proxy_fakes import ProxyUnderTest, running_proxy, service_job
from tests.support.proxy_upstreams import raw_server, web_server

pytestmark = pytest.mark.asyncio
BEARER = {"Authorization": "Bearer alice-token"}
PAGE = {"Accept": "text/html"}
SPOOFED = {
    "X-Forwarded-User": "root",
    "X-Forwarded-For": "8.8.8.8",
    "X-Forwarded-Host": "evil.example",
    "X-Forwarded-Anything": "x",
    "X-Original-URL": "/admin",
    "Pai-Relay-Host": "evil.example",
    "X-Real-IP": "8.8.8.8",
    "X-Scheme": "https",
    "Forwarded": "for=8.8.8.8",
}


@dataclass(frozen=True)
class Behind:
    """A backend with a reverse proxy before it; the ``port`` of ``site`` is the reverse proxy's."""

    site: ProxyUnderTest
    front: RunningFront


@asynccontextmanager
async def behind(name: str, port: int, root: Path, *, answer_s: int = 300) -> AsyncIterator[Behind]:
    """It, for a task at that port, which has ``answer_s`` seconds to answer."""
    async with running_proxy(service_job(port), proxies=[ip_network("127.0.0.1/32")], response_s=answer_s) as backend:
        with FRONTS[name](root, backend.port, answer_s) as front:
            yield Behind(replace(backend, port=front.port), front)


@pytest.fixture(params=FRONTS)
def name(request: pytest.FixtureRequest) -> str:
    """Each of them in turn."""
    return str(request.param)


async def test_requests_go_past_the_backend(name: str, tmp_path: Path) -> None:
    server = Server(lambda *_: OK)
    async with raw_server(server) as port, behind(name, port, tmp_path) as behind_it:
        client = behind_it.site.client(**BEARER)
        for _ in range(100):
            assert (await client.get("/")).text == "ok"
        asked = len(behind_it.site.engine.dialled)
        assert len(server.requests) == 100
        if name == "nginx":
            assert asked < 50, "the backend is not asked each time"
        else:
            assert asked == 100, "the others ask each time"
        assert server.connections - asked < 50, "connections to the task are used again"


async def test_what_the_backend_says_and_hides_is_the_same(name: str, tmp_path: Path) -> None:
    async with web_server() as (port, _), behind(name, port, tmp_path) as behind_it:
        site = behind_it.site
        stranger = await site.client().get("/show", headers=PAGE)
        assert (stranger.status_code, "%pai open" in stranger.text) == (401, True)
        assert (await site.client(Authorization="Bearer bob-token").get("/show")).status_code == 403
        elsewhere = {"X-Pai-Upstream": f"127.0.0.1:{port}", "X-Pai-Host": site.authority, "X-Pai-Keep": "yes"}
        assert (await site.client(**elsewhere).get("/show")).status_code == 401, (
            "a client does not say where the task is"
        )
        way = {"ticket": await site.ticket(), "next": "/show"}
        entered = await site.client().get("/.pai/signin", params=way)
        assert (entered.status_code, entered.headers["location"]) == (303, "../show")
        assert (await site.client().get("/.pai/signin", params=way)).status_code == 401, "a ticket is good for once"
        session = entered.headers["set-cookie"].partition(";")[0]
        client = site.client(Cookie=f"{session}; mine=1")

        seen = (await client.post("/show?a=%41", content=b"body", headers=SPOOFED)).json()
        headers = {header.lower(): value for header, value in seen["headers"]}
        assert (seen["method"], seen["uri"], seen["body"]) == ("POST", "/show?a=%41", "body")
        assert (headers["cookie"], headers["host"]) == ("mine=1", site.authority)
        assert "authorization" not in headers
        told = {header: value for header, value in headers.items() if header in {each.lower() for each in SPOOFED}}
        assert told.pop("x-forwarded-for") == told.pop("x-real-ip") == "127.0.0.1"
        assert told == {"x-forwarded-host": site.authority}
        assert (
            await site.client(Authorization="Basic eDp5").get("/show", headers={"Cookie": session})
        ).status_code == 200

        foreign = await client.post("/show", headers={"Origin": "http://evil.example"})
        assert foreign.status_code == 403
        asked = await site.client(**BEARER).get("/.pai/authorize", headers={"X-Forwarded-Uri": "/"})
        assert asked.status_code == 404
        shown = (await site.client(Cookie=session).get("/show?token=alice-token&b=2")).json()
        assert shown["uri"] == "/show?b=2"

        cookies = [f"{each}=stolen" for each in sorted(_OUR_COOKIES)] + ["a=1; Domain=localhost", "b=2"]
        given = await client.get("/cookies", params={"set": cookies})
        kept = [each for each in given.headers.get_list("set-cookie") if each]
        assert [each.partition("=")[0] for each in kept] == ["a", "b"]
        assert "domain=localhost" not in kept[0].lower().replace(site.host, "")

        sent = (await client.post("/digest", content=b"x" * 3_000_000)).json()
        assert sent["size"] == 3_000_000
        site.store.put(service_job(None))
        async with asyncio.timeout(60):
            while (waiting := await client.get("/show", headers=PAGE)).status_code == 200:
                pass
        assert (waiting.status_code, waiting.headers["refresh"]) == (503, "5")


async def test_what_nginx_knows_of_a_header_holds_for_requests_like_it_alone(tmp_path: Path) -> None:
    async with web_server() as (port, _), behind("nginx", port, tmp_path) as behind_it:
        site = behind_it.site
        fields = ["Host: " + site.authority, "Cookie: " + await site.cookie(), "Sec-Fetch-Site: cross-site"]

        async def status(request: str, *more: str) -> tuple[int, str]:
            reader, writer = await asyncio.open_connection("127.0.0.1", site.port)
            text = "\r\n".join([f"{request} HTTP/1.1", *fields, *more, "Connection: close", "", ""])
            writer.write(text.encode())
            answer = (await reader.read()).decode()
            writer.close()
            return int(answer.split()[1]), answer

        for _ in range(3):
            assert (await status("GET /show"))[0] == 200
            assert (await status("POST /show"))[0] == 403, "another site's page acts for nobody"
            assert (await status("GET /show#x"))[0] == 400
            assert '"uri": "/show?b=2"' in (await status("GET /show?token=alice-token&b=2"))[1]
            assert "root" not in (await status("GET /show", "X-Forwarded-User: root"))[1]


async def test_a_service_that_moves_is_followed_and_its_old_port_left(name: str, tmp_path: Path) -> None:
    old, new = Server(lambda *_: OK), Server(lambda *_: OK.replace(b"ok", b"hi"))
    async with raw_server(old) as port, raw_server(new) as other, behind(name, port, tmp_path) as behind_it:
        client = behind_it.site.client(**BEARER)
        assert (await client.get("/")).text == "ok"
        behind_it.site.store.put(service_job(other))
        async with asyncio.timeout(60):
            while (await client.get("/")).text != "hi":
                pass
        asked = len(old.requests)
        assert [(await client.get("/")).text for _ in range(20)] == ["hi"] * 20
        assert len(old.requests) == asked


async def test_a_right_that_has_ended_ends(name: str, tmp_path: Path) -> None:
    async with web_server() as (port, _), behind(name, port, tmp_path) as behind_it:
        site = behind_it.site
        client = site.client(**BEARER)
        assert (await client.get("/show")).status_code == 200
        url = f"ws://127.0.0.1:{site.port}/deep/ws"
        opened = await websocket_connect(HTTPRequest(url, headers={"Host": site.authority, **BEARER}))
        await opened.write_message("in")
        assert await opened.read_message() == "in"
        del site.entrants.users["alice-token"]
        async with asyncio.timeout(60):
            while (await client.get("/show")).status_code == 200:
                pass
            assert await opened.read_message() is None
        assert (await client.get("/show")).status_code == 401
        opened.close()


async def endless(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """A task that answers each request, whatever it is, without an end."""
    await reader.readuntil(b"\r\n\r\n")
    writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: application/octet-stream\r\n\r\n")
    while True:
        writer.write(b"x" * 4096)
        await writer.drain()
        await asyncio.sleep(0.01)


@pytest.mark.parametrize("reloaded", [False, True], ids=["as it is", "after a reload"])
async def test_nginx_cuts_a_download_when_the_right_to_it_has_ended(reloaded: bool, tmp_path: Path) -> None:
    async with raw_server(endless) as port, behind("nginx", port, tmp_path) as behind_it:
        site = behind_it.site
        async with asyncio.timeout(60):
            async with site.client(**BEARER).stream("GET", "/") as answer:
                pieces = answer.aiter_raw()
                asked = len(site.engine.dialled)
                if reloaded:
                    behind_it.front.reload()
                while len(site.engine.dialled) < asked + 4:  # it is asked again and again, and goes on
                    assert await anext(pieces)
                del site.entrants.users["alice-token"]
                with pytest.raises(httpx.RemoteProtocolError):
                    _ = [piece async for piece in pieces]


async def test_nginx_leaves_to_the_backend_what_it_cannot_reach(tmp_path: Path) -> None:
    """The right that it knows says where the task was: the page is the backend's, and a POST is sent once."""
    server = Server(lambda *_: OK)
    async with AsyncExitStack() as task:
        port = await task.enter_async_context(raw_server(server))
        async with behind("nginx", port, tmp_path) as behind_it:
            client = behind_it.site.client(**BEARER)
            assert [(await client.request(method, "/")).text for method in ("GET", "POST")] == ["ok", "ok"]
            await task.aclose()
            gone = await client.get("/", headers=PAGE)
            assert (gone.status_code, gone.headers["refresh"]) == (503, "5")
            assert (await client.post("/", content=b"x")).status_code in (502, 503)


HEAD = b"HTTP/1.1 200 OK\r\n"
BAD = {
    "/closes": b"",
    "/speaks-tls": b"\x15\x03\x03\x00\x02\x02\x46",
    "/endless-headers": HEAD + b"a: b\r\n" * 2_000_000,
    "/no-header": HEAD + b"no colon\r\n\r\n",
    "/no-status": b"HTTP/1.1 abc\r\n\r\n",
}
"""What a task says to these paths, before it closes the connection."""
SHORT = HEAD + b"Content-Length: 100\r\n\r\nshort"


async def bad(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """A task that answers as above, breaks off in the middle of an answer, or never answers."""
    path = (await reader.readuntil(b"\r\n\r\n")).split(b" ")[1].decode()
    if path == "/silent":
        await reader.read()
    with suppress(ConnectionError):
        writer.write(BAD.get(path, SHORT))
        await writer.drain()


async def test_of_bad_answers_the_browser_is_told(name: str, tmp_path: Path) -> None:
    async with raw_server(bad) as port, behind(name, port, tmp_path) as behind_it:
        client = behind_it.site.client(**BEARER)
        with pytest.raises(httpx.RemoteProtocolError):
            await client.get("/breaks-off")
        for path in BAD:
            with suppress(httpx.RemoteProtocolError):  # nginx ends the first connection on which no HTTP came
                await client.get(path, headers=PAGE)
            told = await client.get(path, headers=PAGE)
            assert told.status_code in (502, 503), path
            assert (f"Port {port}" if name == "nginx" else "The service did not answer") in told.text, path


async def test_who_waits_for_a_silent_task_is_told_in_the_end(name: str, tmp_path: Path) -> None:
    async with raw_server(bad) as port, behind(name, port, tmp_path, answer_s=1) as behind_it:
        told = await behind_it.site.client(**BEARER).get("/silent", headers=PAGE)
        assert (told.status_code, bool(told.text.strip())) == (504, True)


async def test_a_client_that_leaves_in_the_middle_of_an_upload_takes_it_along(name: str, tmp_path: Path) -> None:
    begun, gone = asyncio.Event(), asyncio.Event()

    async def patient(reader: asyncio.StreamReader, _writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"begin")
        begun.set()
        assert await reader.read() == b""
        gone.set()

    async with raw_server(patient) as port, behind(name, port, tmp_path) as behind_it:
        for length in (9_000_000, 10_000_000_000):  # past the backend, and through it
            begun.clear()
            gone.clear()
            _, writer = await asyncio.open_connection("127.0.0.1", behind_it.site.port)
            lines = f"Host: {behind_it.site.authority}", *(f"{key}: {value}" for key, value in BEARER.items())
            head = "\r\n".join(["POST / HTTP/1.1", *lines, f"Content-Length: {length}", "", "begin"])
            writer.write(head.encode())
            await asyncio.wait_for(begun.wait(), 60)
            writer.close()
            await asyncio.wait_for(gone.wait(), 60)


@pytest.mark.parametrize("answer", [b"no HTTP", b"xHTTP/1.1 200 OK\r\nSet-Cookie: a=1; Domain=localhost\r\n\r\n"])
async def test_what_is_no_http_does_not_come_through(name: str, answer: bytes, tmp_path: Path) -> None:
    garbage = Server(lambda *_: answer, most=1)
    async with raw_server(garbage) as port, behind(name, port, tmp_path) as behind_it:
        async with asyncio.timeout(60):
            reader, writer = await asyncio.open_connection("127.0.0.1", behind_it.site.port)
            lines = f"Host: {behind_it.site.authority}", *(f"{name}: {value}" for name, value in BEARER.items())
            writer.write(
                "\r\n".join(["POST / HTTP/1.1", *lines, "Content-Length: 1", "Connection: close", "", "x"]).encode()
            )
            said = await reader.read()
            writer.close()
        assert answer not in said
        assert not said or said.startswith(b"HTTP/1.1 502 ")
        assert len(garbage.requests) == 1, "a POST is sent once"
