"""Connections to tasks that carry more than one request: whose, when, and what a task can do with them."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable

import pytest

from tests.support.proxy_fakes import ProxyUnderTest, running_proxy, service_job
from tests.support.proxy_upstreams import raw_server, web_server

BEARER = {"Authorization": "Bearer alice-token"}
OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"


async def read_request(reader: asyncio.StreamReader) -> bytes:
    """The header of the next request and its body of known length; empty when there is none."""
    try:
        head = await reader.readuntil(b"\r\n\r\n")
    except asyncio.IncompleteReadError:
        return b""
    length = head.lower().partition(b"content-length: ")[2].partition(b"\r\n")[0]
    return head + (await reader.readexactly(int(length)) if length else b"")


class Server:
    """A task's server that does with each request of each connection what a test says."""

    def __init__(self, behave: Callable[[int, int], bytes | None], most: int = sys.maxsize) -> None:
        """``behave`` gets the numbers of connection and request, and says the answer; None ends the connection.

        ``most``: answers on one connection, which then ends.
        """
        self.requests: list[tuple[int, bytes]] = []
        self.connections = 0
        self.ended = asyncio.Semaphore(0)
        self._behave = behave
        self._most = most

    async def __call__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        connection, request = self.connections, 0
        self.connections += 1
        while request < self._most and (asked := await read_request(reader)):
            self.requests.append((connection, asked.partition(b"\r\n")[0]))
            answer = self._behave(connection, request)
            if answer is None:
                break
            writer.write(answer)
            await writer.drain()
            request += 1
        self.ended.release()


async def get(under_test: ProxyUnderTest, path: str = "/", **headers: str) -> tuple[int, str]:
    """Status and text of an answer."""
    answer = await under_test.client(**(headers or BEARER)).get(path)
    return answer.status_code, answer.text


@pytest.mark.asyncio
@pytest.mark.parametrize("method", ["GET", "HEAD", "OPTIONS"])
async def test_requests_of_one_visitor_share_a_connection(method: str) -> None:
    async with web_server() as (port, _), running_proxy(service_job(port)) as under_test:
        for _ in range(3):
            path = "/show" if method == "OPTIONS" else "/status/200"
            assert (await under_test.client(**BEARER).request(method, path)).status_code == 200
        assert len(under_test.engine.dialled) == 1


@pytest.mark.asyncio
async def test_no_connection_passes_from_one_visitor_to_another() -> None:
    server = Server(lambda *_: OK)
    async with raw_server(server) as port, running_proxy(service_job(port)) as under_test:
        ticket = await under_test.ticket("root", admin=True)
        entered = await under_test.client().get("/.pai/signin", params={"ticket": ticket})
        root = {"Cookie": entered.headers["set-cookie"].split(";")[0]}
        for headers in (BEARER, root, BEARER, root):
            assert await get(under_test, **headers) == (200, "ok")
    assert [connection for connection, _ in server.requests] == [0, 1, 0, 1]


@pytest.mark.asyncio
@pytest.mark.parametrize(
    "answer",
    [
        b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\nok",
        b"HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\nok",
        OK + b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nevil",
    ],
    ids=["it says so", "HTTP/1.0", "more than an answer came"],
)
async def test_a_connection_that_may_not_go_on_is_closed(answer: bytes) -> None:
    server = Server(lambda *_: answer)
    async with raw_server(server) as port, running_proxy(service_job(port)) as under_test:
        for _ in range(2):
            assert await get(under_test) == (200, "ok")
            await asyncio.wait_for(server.ended.acquire(), 60)
    assert server.connections == 2


@pytest.mark.asyncio
async def test_what_a_task_says_unasked_is_no_answer() -> None:
    told, quiet = asyncio.Event(), asyncio.Event()

    async def chatty(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while await read_request(reader):
            writer.write(OK)
            if not told.is_set():
                await told.wait()
                writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nevil")
        quiet.set()

    async with raw_server(chatty) as port, running_proxy(service_job(port)) as under_test:
        assert await get(under_test) == (200, "ok")
        told.set()
        await asyncio.wait_for(quiet.wait(), 60)  # the proxy has closed it
        assert await get(under_test) == (200, "ok")
        assert len(under_test.engine.dialled) == 2


@pytest.mark.asyncio
async def test_a_request_that_meets_the_end_of_a_kept_connection_is_sent_again() -> None:
    server = Server(lambda connection, request: None if (connection, request) == (0, 1) else OK)
    async with raw_server(server) as port, running_proxy(service_job(port)) as under_test:
        assert await get(under_test, "/first") == (200, "ok")
        assert await get(under_test, "/second") == (200, "ok")
    assert server.requests == [
        (0, b"GET /first HTTP/1.1"),
        (0, b"GET /second HTTP/1.1"),
        (1, b"GET /second HTTP/1.1"),
    ]


@pytest.mark.asyncio
async def test_a_request_is_sent_again_once() -> None:
    server = Server(lambda connection, request: OK if (connection, request) == (0, 0) else None)
    async with raw_server(server) as port, running_proxy(service_job(port)) as under_test:
        assert await get(under_test) == (200, "ok")
        assert (await get(under_test))[0] == 502
    assert [connection for connection, _ in server.requests] == [0, 0, 1]


@pytest.mark.asyncio
async def test_a_request_whose_answer_has_begun_is_not_sent_again() -> None:
    server = Server(lambda _, request: (OK, b"HTTP/1.1 2")[request], most=2)
    async with raw_server(server) as port, running_proxy(service_job(port)) as under_test:
        assert await get(under_test) == (200, "ok")
        assert (await get(under_test))[0] == 502
    assert [connection for connection, _ in server.requests] == [0, 0]


@pytest.mark.asyncio
async def test_what_must_not_be_sent_twice_goes_on_a_fresh_connection() -> None:
    server = Server(lambda _, request: OK if request == 0 else None)
    async with raw_server(server) as port, running_proxy(service_job(port)) as under_test:
        client = under_test.client(**BEARER)
        for method, content in (("POST", b"x"), ("POST", b""), ("PUT", b"x"), ("DELETE", b""), ("GET", b"body")):
            answer = await client.request(method, "/", content=content)
            assert (answer.status_code, answer.text) == (200, "ok")
    assert [connection for connection, _ in server.requests] == [0, 1, 2, 3, 4]


@pytest.mark.asyncio
async def test_a_task_that_runs_elsewhere_gets_no_request_on_what_was_kept() -> None:
    old, new = Server(lambda *_: OK), Server(lambda *_: OK.replace(b"ok", b"no"))
    async with (
        raw_server(old) as before,
        raw_server(new) as after,
        running_proxy(service_job(before)) as under_test,
        asyncio.timeout(60),
    ):
        assert await get(under_test) == (200, "ok")
        under_test.store.put(service_job(after))
        while (await get(under_test))[1] == "ok":
            pass  # what is known of the job is from a moment ago
        assert await get(under_test) == (200, "no")
        under_test.store.put(service_job(None))
        while (await get(under_test))[0] != 503:
            pass


@pytest.mark.asyncio
async def test_no_request_follows_an_upgrade_on_its_connection() -> None:
    ended = asyncio.Event()

    async def upgrading(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while asked := await read_request(reader):
            if b"raw-tcp" in asked:
                writer.write(b"HTTP/1.1 101 Now raw\r\nConnection: Upgrade\r\nUpgrade: raw-tcp\r\n\r\n")
                assert await reader.read(-1) == b"raw"
                ended.set()
                return
            writer.write(OK)

    async with raw_server(upgrading) as port, running_proxy(service_job(port)) as under_test:
        assert await get(under_test) == (200, "ok")
        _, writer = await asyncio.open_connection("127.0.0.1", under_test.port)
        head = f"GET / HTTP/1.1\r\nHost: {under_test.authority}\r\nAuthorization: Bearer alice-token\r\n"
        writer.write(f"{head}Connection: Upgrade\r\nUpgrade: raw-tcp\r\n\r\nraw".encode())
        writer.write_eof()
        await asyncio.wait_for(ended.wait(), 60)
        writer.close()
        assert await get(under_test) == (200, "ok")


@pytest.mark.asyncio
async def test_a_connection_that_is_not_used_is_closed_after_a_while() -> None:
    server = Server(lambda *_: OK)
    async with raw_server(server) as port, running_proxy(service_job(port)) as under_test:
        assert await get(under_test) == (200, "ok")
        await asyncio.wait_for(server.ended.acquire(), 60)


@pytest.mark.asyncio
async def test_closing_the_proxy_closes_what_is_kept() -> None:
    server = Server(lambda *_: OK)
    async with raw_server(server) as port, running_proxy(service_job(port)) as under_test:
        assert await get(under_test) == (200, "ok")
        await under_test.proxy.aclose()
        await asyncio.wait_for(server.ended.acquire(), 60)


@pytest.mark.asyncio
async def test_an_answer_that_the_client_did_not_wait_for_is_not_left_to_the_next() -> None:
    begun, gone = asyncio.Event(), asyncio.Event()

    async def slow(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while asked := await read_request(reader):
            if b"/slow" in asked:
                writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf")
                begun.set()
                assert await reader.read() == b""
                gone.set()
                return
            writer.write(OK)

    async with raw_server(slow) as port, running_proxy(service_job(port)) as under_test:
        reader, writer = await asyncio.open_connection("127.0.0.1", under_test.port)
        head = f"Host: {under_test.authority}\r\nAuthorization: Bearer alice-token\r\n\r\n"
        writer.write(f"GET /slow HTTP/1.1\r\n{head}".encode())
        await asyncio.wait_for(begun.wait(), 60)
        await asyncio.wait_for(reader.readuntil(b"half"), 60)
        writer.close()
        await asyncio.wait_for(gone.wait(), 60)
        assert await get(under_test) == (200, "ok")
