"""WebSockets and other upgrades: after the switch, the bytes of both sides are each other's."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import pytest
from tornado.httpclient import HTTPClientError, HTTPRequest
from tornado.websocket import WebSocketClientConnection, websocket_connect

from tests.support.proxy_fakes import SERVICE, ProxyUnderTest, running_proxy, service_job
from tests.support.proxy_upstreams import answering, raw_server, web_server

if TYPE_CHECKING:
    from collections.abc import AsyncIterator


async def connect(under_test: ProxyUnderTest, *, path: bool = False, **headers: str) -> WebSocketClientConnection:
    host, prefix = (f"127.0.0.1:{under_test.port}", f"/s/{SERVICE}") if path else (under_test.authority, "")
    request = HTTPRequest(
        f"ws://127.0.0.1:{under_test.port}{prefix}/deep/ws",
        headers={"Host": host, "Authorization": "Bearer alice-token"} | headers,
    )
    return await websocket_connect(
        request, subprotocols=["alpha", "beta"], compression_options={}, max_message_size=64 << 20
    )


@asynccontextmanager
async def proxied_web_server() -> AsyncIterator[ProxyUnderTest]:
    async with web_server() as (port, _), running_proxy(service_job(port)) as under_test:
        yield under_test


@pytest.mark.asyncio
@pytest.mark.parametrize("path", [False, True])
async def test_texts_bytes_subprotocol_and_close_code_are_the_servers_own(path: bool) -> None:
    async with proxied_web_server() as under_test:
        socket = await connect(under_test, path=path)
        assert socket.selected_subprotocol == "beta"
        for message in ("text 中文", b"\x00\xff" * 70_000, "", b"", "x" * (5 << 20)):
            await socket.write_message(message, binary=isinstance(message, bytes))
            assert await socket.read_message() == message
        await socket.write_message("close")
        assert await socket.read_message() is None
        assert (socket.close_code, socket.close_reason) == (4321, "as told")


@pytest.mark.asyncio
@pytest.mark.parametrize("known_by", ["token", "cookie"])
async def test_an_open_websocket_ends_with_the_token_that_opened_it(known_by: str) -> None:
    async with proxied_web_server() as under_test:
        cookie: dict[str, Any] = {"Cookie": await under_test.cookie(), "Origin": under_test.origin, "Authorization": ""}
        socket = await connect(under_test, **(cookie if known_by == "cookie" else {}))
        await socket.write_message("in")
        assert await socket.read_message() == "in"
        del under_test.entrants.users["alice-token"]
        async with asyncio.timeout(60):
            assert await socket.read_message() is None
        socket.close()


@pytest.mark.asyncio
@pytest.mark.parametrize("after", ["deleted", "of another job", "of another user"])
async def test_an_open_websocket_ends_when_its_address_is_no_longer_the_jobs(after: str) -> None:
    async with web_server() as (port, _), running_proxy(job := service_job(port)) as under_test:
        socket = await connect(under_test)
        await socket.write_message("in")
        assert await socket.read_message() == "in"
        other = job.model_copy(update={"uid": "j0000000000000000"} if after == "of another job" else {"user": "bob"})
        if after == "deleted":
            under_test.store.jobs.clear()
        else:
            under_test.store.put(other)
        async with asyncio.timeout(60):
            assert await socket.read_message() is None
        socket.close()


@pytest.mark.asyncio
async def test_a_websocket_shows_the_task_no_credential() -> None:
    async with proxied_web_server() as under_test:
        socket = await connect(under_test, Cookie=f"{await under_test.cookie()}; mine=1", Origin=under_test.origin)
        await socket.write_message("headers")
        headers = str(await socket.read_message())
        assert "Cookie: mine=1" in headers
        assert "pai-session" not in headers
        assert "alice-token" not in headers
        socket.close()


@pytest.mark.asyncio
async def test_many_sockets_at_once_keep_their_messages_apart() -> None:
    async with proxied_web_server() as under_test:
        sockets = await asyncio.gather(*(connect(under_test) for _ in range(50)))
        for turn in range(5):
            for number, socket in enumerate(sockets):
                await socket.write_message(f"{number}.{turn}")
        for turn in range(5):
            for number, socket in enumerate(sockets):
                assert await socket.read_message() == f"{number}.{turn}"
        for socket in sockets:
            socket.close()


@pytest.mark.asyncio
async def test_a_refused_upgrade_is_an_ordinary_answer() -> None:
    refusal = answering(b"HTTP/1.1 426 Upgrade Required\r\nContent-Length: 4\r\n\r\nnope")
    async with raw_server(refusal) as port, running_proxy(service_job(port)) as under_test:
        with pytest.raises(HTTPClientError) as caught:
            await connect(under_test)
        assert caught.value.code == 426


async def upgraded(under_test: ProxyUnderTest, early: bytes = b"") -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    reader, writer = await asyncio.open_connection("127.0.0.1", under_test.port)
    writer.write(
        f"GET /raw HTTP/1.1\r\nHost: {under_test.authority}\r\nAuthorization: Bearer alice-token\r\n"
        "Connection: Upgrade\r\nUpgrade: raw-tcp\r\n\r\n".encode()
        + early
    )
    head = await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), 60)
    assert head.startswith(b"HTTP/1.1 101 Now raw\r\n")
    assert b"Upgrade: raw-tcp" in head
    return reader, writer


@pytest.mark.asyncio
async def test_any_upgrade_passes_raw_bytes_also_those_sent_early() -> None:
    async def raw(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 101 Now raw\r\nConnection: Upgrade\r\nUpgrade: raw-tcp\r\n\r\nearly from task;")
        while data := await reader.read(65536):
            writer.write(data.upper())
            await writer.drain()

    async with raw_server(raw) as port, running_proxy(service_job(port)) as under_test:
        reader, writer = await upgraded(under_test, b"early from client;")
        assert await asyncio.wait_for(reader.readexactly(34), 60) == b"early from task;EARLY FROM CLIENT;"
        writer.write(b"\x00\xff\r\n\r\nab")
        assert await asyncio.wait_for(reader.readexactly(8), 60) == b"\x00\xff\r\n\r\nAB"
        writer.close()


@pytest.mark.asyncio
async def test_when_the_task_ends_a_tunnel_its_last_bytes_arrive_first() -> None:
    last = b"z" * (3 << 20)

    async def short(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 101 Now raw\r\nConnection: Upgrade\r\nUpgrade: raw-tcp\r\n\r\n" + last)
        await writer.drain()

    async with raw_server(short) as port, running_proxy(service_job(port)) as under_test:
        reader, writer = await upgraded(under_test)
        assert await asyncio.wait_for(reader.read(-1), 60) == last
        writer.close()


@pytest.mark.asyncio
async def test_when_the_client_ends_a_tunnel_the_task_sees_it() -> None:
    seen: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()

    async def listener(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 101 Now raw\r\nConnection: Upgrade\r\nUpgrade: raw-tcp\r\n\r\n")
        seen.set_result(await reader.read(-1))

    async with raw_server(listener) as port, running_proxy(service_job(port)) as under_test:
        _, writer = await upgraded(under_test)
        writer.write(b"goodbye")
        writer.close()
        assert await asyncio.wait_for(seen, 60) == b"goodbye"


@pytest.mark.asyncio
async def test_closing_the_proxy_cuts_its_tunnels() -> None:
    async with proxied_web_server() as under_test:
        socket = await connect(under_test)
        await under_test.proxy.aclose()
        assert await asyncio.wait_for(socket.read_message(), 60) is None
