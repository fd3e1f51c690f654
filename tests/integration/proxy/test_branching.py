"""Connections on which requests for the api and for services follow each other, as a proxy in front mixes them."""

from __future__ import annotations

import asyncio
import itertools

import pytest

from tests.support.proxy_fakes import SERVICE, ProxyUnderTest, running_proxy, service_job
from tests.support.proxy_upstreams import web_server

pytestmark = pytest.mark.asyncio
TOKEN = "Authorization: Bearer alice-token\r\n"


class Connection:
    """A client's connection."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader, self.writer = reader, writer

    async def answer(self) -> tuple[int, bytes]:
        """Status and body of the next answer, which has a length."""
        head = await asyncio.wait_for(self.reader.readuntil(b"\r\n\r\n"), 60)
        length = int(head.lower().partition(b"content-length: ")[2].partition(b"\r\n")[0])
        return int(head.split(b" ")[1]), await asyncio.wait_for(self.reader.readexactly(length), 60)

    async def rest(self) -> bytes:
        """All that comes until the end."""
        return await asyncio.wait_for(self.reader.read(), 60)


async def connected(under_test: ProxyUnderTest) -> Connection:
    return Connection(*await asyncio.open_connection("127.0.0.1", under_test.port))


def api(under_test: ProxyUnderTest, method: str = "GET", lines: str = "") -> bytes:
    return f"{method} /api HTTP/1.1\r\nHost: 127.0.0.1:{under_test.port}\r\n{lines}\r\n".encode()


def service(under_test: ProxyUnderTest, path: str = "/show", lines: str = "", method: str = "GET") -> bytes:
    return f"{method} {path} HTTP/1.1\r\nHost: {under_test.authority}\r\n{TOKEN}{lines}\r\n".encode()


async def test_one_connection_carries_requests_for_both() -> None:
    async with web_server() as (port, _), running_proxy(service_job(port)) as under_test:
        client = await connected(under_test)
        body = b"x" * 100_000
        chunks = b"%x\r\n%b\r\n0\r\n\r\n" % (len(body), body)
        posted = [
            (service(under_test, "/show", f"Content-Length: {len(body)}\r\n", "POST") + body, len(body)),
            (service(under_test, "/show", "Transfer-Encoding: chunked\r\n", "POST") + chunks, len(body)),
            (service(under_test), 0),
        ]
        for number, (asked, size) in enumerate(posted * 2):
            client.writer.write(api(under_test))
            assert await client.answer() == (200, b"the api")
            client.writer.write(asked)
            status, said = await client.answer()
            assert (status, said.count(b"x") >= size) == (200, True), number
            client.writer.write(api(under_test, "POST", f"Content-Length: {len(body)}\r\n") + body)
            assert (await client.answer())[0] == 405
            client.writer.write(api(under_test, "POST", "Transfer-Encoding: chunked\r\n") + chunks)
            assert (await client.answer())[0] == 405
        client.writer.close()


async def test_requests_that_are_sent_ahead_are_answered_in_their_order() -> None:
    async with web_server() as (port, _), running_proxy(service_job(port)) as under_test:
        client = await connected(under_test)
        wanted = [0, 1, 1, 0, 0, 1, 0]
        asked = [service(under_test, f"/show?{n}") if kind else api(under_test) for n, kind in enumerate(wanted)]
        client.writer.write(b"".join(asked))
        for number, kind in enumerate(wanted):
            status, said = await client.answer()
            assert status == 200
            assert (f'"uri": "/show?{number}"'.encode() in said) if kind else said == b"the api"
        client.writer.close()


async def test_a_head_may_come_byte_by_byte_at_every_turn() -> None:
    async with web_server() as (port, _), running_proxy(service_job(port)) as under_test:
        client = await connected(under_test)
        for asked in (service(under_test), api(under_test), service(under_test)):
            for index in range(len(asked)):
                client.writer.write(asked[index : index + 1])
                await client.writer.drain()
                await asyncio.sleep(0)
            assert (await client.answer())[0] == 200
        client.writer.close()


@pytest.mark.parametrize(
    "body",
    [
        b"5\r\nhello\r\n0\r\n\r\n",
        b"0\r\n\r\n",
    ],
)
async def test_what_hides_behind_a_body_in_chunks_is_never_let_in_unread(body: bytes) -> None:
    """Sent ahead of the answer: the connection may end, but nothing of the body is read as a request."""
    async with web_server() as (port, _), running_proxy(service_job(port)) as under_test:
        for first in (
            api(under_test, "POST", "Transfer-Encoding: chunked\r\n"),
            service(under_test, "/show", "Transfer-Encoding: chunked\r\n", "POST"),
        ):
            client = await connected(under_test)
            client.writer.write(first + body + service(under_test, "/show?second"))
            await client.answer()
            client.writer.write_eof()
            assert b"second" not in await client.rest()
            client.writer.close()


@pytest.mark.parametrize(
    "lines",
    [
        "Content-Length: 4\r\nContent-Length: 40\r\n",
        "Content-Length: 4\r\nTransfer-Encoding: chunked\r\n",
        "Transfer-Encoding: chunked, identity\r\n",
        "Transfer-Encoding:\x0bchunked\r\n",
        "X: a\r\n\tfolded\r\n",
        "X: a\nTransfer-Encoding: chunked\r\n",
    ],
)
@pytest.mark.parametrize("path", [False, True])
async def test_a_request_that_can_be_read_in_two_ways_reaches_no_task(lines: str, path: bool) -> None:
    async with web_server() as (port, _), running_proxy(service_job(port)) as under_test:
        client = await connected(under_test)
        host = f"127.0.0.1:{under_test.port}" if path else under_test.authority
        target = f"/s/{SERVICE}/show" if path else "/show"
        client.writer.write(f"POST {target} HTTP/1.1\r\nHost: {host}\r\n{TOKEN}{lines}\r\n0\r\n\r\n".encode())
        client.writer.write(service(under_test, "/show?smuggled"))
        client.writer.write_eof()
        said = await client.rest()
        client.writer.close()
        assert said == b"" or said.startswith(b"HTTP/1.1 400"), said
        assert b"smuggled" not in said
        assert not under_test.engine.dialled


async def test_a_request_with_two_hosts_is_nobodys() -> None:
    async with web_server() as (port, _), running_proxy(service_job(port)) as under_test:
        hosts = [f"127.0.0.1:{under_test.port}", under_test.authority]
        for first, other in itertools.permutations(hosts):
            client = await connected(under_test)
            client.writer.write(f"GET /show HTTP/1.1\r\nHost: {first}\r\nHost: {other}\r\n{TOKEN}\r\n".encode())
            client.writer.write_eof()
            said = await client.rest()
            client.writer.close()
            assert b'"uri"' not in said
        assert not under_test.engine.dialled


async def test_a_stalled_head_of_a_service_is_given_up_as_one_of_the_api(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pai_backend.access.proxy.entrance.IDLE_S", 0.01)
    async with web_server() as (port, _), running_proxy(service_job(port)) as under_test:
        client = await connected(under_test)
        client.writer.write(service(under_test))
        assert (await client.answer())[0] == 200
        client.writer.write(b"GET /show HTTP/1.1\r\nHost: ")
        assert await client.rest() == b""
        client.writer.close()
