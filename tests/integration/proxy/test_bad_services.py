"""Services that die, stall, babble or speak something else, and clients that leave: each ends in one clear answer."""

from __future__ import annotations

import asyncio
import itertools
import socket
from collections.abc import Iterable, Iterator

import pytest

from tests.support.proxy_fakes import running_proxy, service_job
from tests.support.proxy_upstreams import Script, answering, raw_server

BEARER = {"Authorization": "Bearer alice-token"}


@pytest.fixture(autouse=True)
def no_traceback(caplog: pytest.LogCaptureFixture) -> Iterator[None]:
    """What a service does wrong is no fault of ours, and is not logged as one."""
    yield
    assert not [record for record in caplog.records if record.exc_info]


def babbling(pieces: Iterable[bytes], ended: asyncio.Event) -> Script:
    """A server that says these pieces to a request until it is cut off."""

    async def script(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        try:
            for piece in pieces:
                writer.write(piece)
                await writer.drain()
                await asyncio.sleep(0)  # drain does not wait while there is room, and all share one loop here
        except ConnectionError:
            ended.set()

    return script


@pytest.mark.asyncio
async def test_a_service_is_starting_until_it_listens() -> None:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        async with running_proxy(service_job(listener.getsockname()[1])) as under_test:
            client = under_test.client(**BEARER)
            for method in ("GET", "POST"):
                answer = await client.request(method, "/")
                assert (answer.status_code, answer.json()["message"].partition(".")[0]) == (503, "Starting")
            answer_ok = answering(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
            server = await asyncio.start_server(answer_ok, sock=listener)
            assert (await client.get("/")).text == "ok"
            server.close()


@pytest.mark.asyncio
async def test_a_service_that_dies_with_a_kept_connection_is_starting_again() -> None:
    died = asyncio.Event()

    async def once(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
        await reader.readuntil(b"\r\n\r\n")
        server.close()  # before the connection, so that the second try finds nobody
        writer.close()
        died.set()

    server = await asyncio.start_server(once, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    async with running_proxy(service_job(port)) as under_test:
        client = under_test.client(**BEARER)
        assert (await client.get("/")).text == "ok"
        answer = await client.get("/")
        assert died.is_set()
        assert (answer.status_code, answer.json()["message"].partition(".")[0]) == (503, "Starting")


@pytest.mark.asyncio
@pytest.mark.parametrize(
    "pieces",
    [
        (b"HTTP/1.1 200 OK\r\n" if number == 0 else b"X-%d: x\r\n" % number for number in itertools.count()),
        (b"HTTP/1.1 200 OK\r\nX: " if number == 0 else b"x" * 1000 for number in itertools.count()),
        itertools.repeat(b"garbage "),
    ],
    ids=["endless headers", "an endless header", "endless garbage"],
)
async def test_an_answer_that_never_gets_to_its_body_is_cut_off(pieces: Iterable[bytes]) -> None:
    ended = asyncio.Event()
    async with raw_server(babbling(pieces, ended)) as port, running_proxy(service_job(port)) as under_test:
        answer = await under_test.client(**BEARER).get("/")
        assert answer.status_code == 502
        assert answer.json()["message"].startswith(f"The service did not answer. Port {port}: ")
        await asyncio.wait_for(ended.wait(), 60)


@pytest.mark.asyncio
async def test_a_service_that_only_says_that_it_goes_on_takes_too_long() -> None:
    ended = asyncio.Event()
    going_on = babbling(itertools.repeat(b"HTTP/1.1 100 Continue\r\n\r\n"), ended)
    async with raw_server(going_on) as port, running_proxy(service_job(port), response_s=0.2) as under_test:
        assert (await under_test.client(**BEARER).get("/")).status_code == 504
        await asyncio.wait_for(ended.wait(), 60)


@pytest.mark.asyncio
async def test_a_service_that_speaks_tls_gives_no_answer() -> None:
    alert = answering(b"\x15\x03\x01\x00\x02\x02\x46")  # as OpenSSL answers plain HTTP: fatal, protocol version
    async with raw_server(alert) as port, running_proxy(service_job(port)) as under_test:
        assert (await under_test.client(**BEARER).get("/")).status_code == 502


@pytest.mark.asyncio
async def test_a_client_that_leaves_in_the_middle_of_an_upload_takes_it_along() -> None:
    begun, gone = asyncio.Event(), asyncio.Event()

    async def patient(reader: asyncio.StreamReader, _writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"begin")
        begun.set()
        assert await reader.read() == b""
        gone.set()

    async with raw_server(patient) as port, running_proxy(service_job(port)) as under_test:
        _, writer = await asyncio.open_connection("127.0.0.1", under_test.port)
        writer.write(
            f"POST / HTTP/1.1\r\nHost: {under_test.authority}\r\nAuthorization: Bearer alice-token\r\n"
            "Content-Length: 10000000000\r\n\r\nbegin".encode()
        )
        await asyncio.wait_for(begun.wait(), 60)
        writer.close()
        await asyncio.wait_for(gone.wait(), 60)
