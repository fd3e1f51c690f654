"""HTTP through the proxy to real servers: everything arrives as it was sent, as soon as it was sent."""

from __future__ import annotations

import asyncio
import gzip
import hashlib
from collections.abc import AsyncIterator

import httpx
import psutil
import pytest

from tests.support.proxy_fakes import HOST, SERVICE, running_proxy, service_job
from tests.support.proxy_upstreams import PIECE, answering, raw_server, web_server

BEARER = {"Authorization": "Bearer alice-token"}
PIECES = 1600  # of 64 KiB: 100 MiB


@pytest.mark.asyncio
async def test_a_request_arrives_as_it_was_sent() -> None:
    async with web_server() as (port, _), running_proxy(service_job(port)) as under_test:
        client = under_test.client(**BEARER)
        answer = await client.patch("/show/a%2Fb?x=%41&y", content=b"body", headers={"X-Mine": "1", "Cookie": "a=b"})
        seen = answer.json()
        headers = {name.lower(): value for name, value in seen["headers"]}
        assert (seen["method"], seen["uri"], seen["body"]) == ("PATCH", "/show/a%2Fb?x=%41&y", "body")
        assert headers["host"] == under_test.authority
        assert (headers["x-mine"], headers["cookie"]) == ("1", "a=b")
        assert (headers["x-forwarded-for"], headers["x-forwarded-host"]) == ("127.0.0.1", under_test.authority)
        assert "authorization" not in headers


@pytest.mark.asyncio
async def test_a_path_address_is_cut_off_and_put_back() -> None:
    async with web_server() as (port, _), running_proxy(service_job(port)) as under_test:
        client = under_test.client(host="127.0.0.1", **BEARER)
        root = f"/s/{SERVICE}"
        assert (await client.get(f"{root}/show?x=1")).json()["uri"] == "/show?x=1"
        relayed = (await client.get(f"{root}/show", headers={"Pai-Relay-Host": "hub.example:8000"})).json()
        assert ["Host", "hub.example:8000"] in relayed["headers"], "a relay with a user's token tells of its browser"
        odd = (await client.get(f"{root}/show", headers={"Pai-Relay-Host": "hub example/x"})).json()
        assert ["Host", client.headers["host"]] in odd["headers"]
        assert (await client.get(root)).headers["location"] == f"{SERVICE}/"
        answer = await client.get(f"{root}/redirect", params={"to": "/show?y=2"})
        followed = await client.send(answer.next_request)  # type: ignore[arg-type]
        assert followed.json()["uri"] == "/show?y=2"
        answer = await client.get(f"{root}/cookies", params={"set": "a=1; Path=/deep; Domain=localhost"})
        assert answer.headers["set-cookie"] == f"a=1; Path={root}/deep"


@pytest.mark.asyncio
async def test_the_rest_of_the_host_stays_the_apis() -> None:
    async with web_server() as (port, _), running_proxy(service_job(port)) as under_test:
        for host in ("127.0.0.1", "localhost", "lab.localhost"):
            assert (await under_test.client(host=host).get("/show")).text == "the api"


@pytest.mark.asyncio
@pytest.mark.parametrize("code", [200, 204, 304, 404])
@pytest.mark.parametrize("method", ["GET", "HEAD"])
async def test_statuses_and_empty_bodies_keep_the_connection_in_step(method: str, code: int) -> None:
    async with web_server() as (port, _), running_proxy(service_job(port)) as under_test:
        client = under_test.client(**BEARER)
        for _ in range(3):  # the same connection: a body too many or too few would show in the next answer
            answer = await client.request(method, f"/status/{code}")
            assert (answer.status_code, answer.headers["etag"]) == (code, '"x"')
            assert answer.content == (b"x" * 1000 if (method, code) == ("GET", 200) else b"")
            if (method, code) == ("HEAD", 200):
                assert int(answer.headers["content-length"]) == 1000


@pytest.mark.asyncio
async def test_compressed_answers_pass_compressed() -> None:
    async with web_server() as (port, _), running_proxy(service_job(port)) as under_test:
        client = under_test.client(**BEARER)
        async with client.stream("GET", "/page", headers={"Accept-Encoding": "gzip"}) as answer:
            raw = b"".join([chunk async for chunk in answer.aiter_raw()])
        assert answer.headers["content-encoding"] == "gzip"
        assert gzip.decompress(raw).startswith(b"<html>")


@pytest.mark.asyncio
async def test_events_arrive_one_by_one_as_they_happen() -> None:
    async with (
        web_server() as (port, gates),
        running_proxy(service_job(port)) as under_test,
        under_test.client(**BEARER).stream("GET", "/events") as answer,
    ):
        assert answer.headers["content-type"] == "text/event-stream"
        pieces = answer.aiter_bytes()
        for text in ("one", "two", "three"):
            gates.put_nowait(text)  # the next is not even made before this one is here
            assert await asyncio.wait_for(anext(pieces), 60) == f"data: {text}\n\n".encode()
        gates.put_nowait("")
        assert [piece async for piece in pieces] == []


class Memory:
    """The growth of this process, in which client, proxy and server all run."""

    def __init__(self) -> None:
        self._process = psutil.Process()
        self._before = self._process.memory_info().rss
        self.grown_mib = 0.0

    def look(self) -> None:
        self.grown_mib = max(self.grown_mib, (self._process.memory_info().rss - self._before) / (1 << 20))


@pytest.mark.asyncio
async def test_a_large_download_streams_in_little_memory() -> None:
    async with web_server() as (port, _), running_proxy(service_job(port)) as under_test:
        memory, size, sums, expected = Memory(), 0, hashlib.sha256(), hashlib.sha256()
        plain = {"Accept-Encoding": "identity"}  # what the client unpacks is not the proxy's memory
        async with under_test.client(**BEARER, **plain).stream("GET", f"/big/{PIECES}") as answer:
            async for piece in answer.aiter_bytes():
                size += len(piece)
                sums.update(piece)
                memory.look()
        for _ in range(PIECES):
            expected.update(PIECE)
        assert (size, sums.digest()) == (PIECES * len(PIECE), expected.digest())
        assert memory.grown_mib < 40


@pytest.mark.asyncio
@pytest.mark.parametrize("chunked", [True, False])
async def test_a_large_upload_streams_in_little_memory(chunked: bool) -> None:
    sums = hashlib.sha256()

    async def body() -> AsyncIterator[bytes]:
        for _ in range(PIECES):
            sums.update(PIECE)
            memory.look()
            yield PIECE

    headers = {} if chunked else {"Content-Length": str(PIECES * len(PIECE))}
    async with web_server() as (port, _), running_proxy(service_job(port)) as under_test:
        memory = Memory()
        answer = await under_test.client(**BEARER).post("/digest", content=body(), headers=headers)
        assert answer.json() == {"sha256": sums.hexdigest(), "size": PIECES * len(PIECE)}
        assert memory.grown_mib < 40


@pytest.mark.asyncio
async def test_a_sender_waits_for_a_task_that_does_not_read() -> None:
    release = asyncio.Event()

    async def stubborn(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        await release.wait()
        while not (await reader.read(1 << 20)).endswith(b"0\r\n\r\n"):
            pass
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")

    sent = 0
    stalled = asyncio.Event()

    def look(at: int) -> None:
        if at == sent:
            stalled.set()

    async def body() -> AsyncIterator[bytes]:
        nonlocal sent
        for _ in range(PIECES):
            sent += len(PIECE)
            asyncio.get_running_loop().call_later(1.0, look, sent)
            yield PIECE

    async with raw_server(stubborn) as port, running_proxy(service_job(port)) as under_test:
        upload = asyncio.ensure_future(under_test.client(**BEARER).post("/", content=body()))
        await asyncio.wait_for(stalled.wait(), 60)  # nothing moved for a second
        assert sent < PIECES * len(PIECE) / 2, "the rest is held back at the sender, not in the proxy"
        release.set()
        assert (await upload).text == "ok"


@pytest.mark.asyncio
async def test_an_answer_before_the_body_was_read_reaches_the_client() -> None:
    early = answering(b"HTTP/1.1 413 Too Large\r\nContent-Length: 4\r\nConnection: close\r\n\r\nfull")
    async with raw_server(early) as port, running_proxy(service_job(port)) as under_test:
        reader, writer = await asyncio.open_connection("127.0.0.1", under_test.port)
        writer.write(
            f"POST / HTTP/1.1\r\nHost: {under_test.authority}\r\nAuthorization: Bearer alice-token\r\n"
            "Content-Length: 1000000\r\n\r\nbegin".encode()
        )
        answer = await asyncio.wait_for(reader.read(), 60)
        writer.close()
        assert answer.startswith(b"HTTP/1.1 413")
        assert answer.endswith(b"full")


@pytest.mark.asyncio
async def test_expect_continue_is_answered_after_the_decision() -> None:
    async def talk(under_test_port: int, host: str, token: str) -> bytes:
        reader, writer = await asyncio.open_connection("127.0.0.1", under_test_port)
        writer.write(
            f"POST /show HTTP/1.1\r\nHost: {host}\r\nAuthorization: Bearer {token}\r\nExpect: 100-continue\r\n"
            "Connection: close\r\nContent-Length: 4\r\n\r\n".encode()
        )
        first = await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), 60)
        if b" 100 " in first:
            writer.write(b"body")
            first += await asyncio.wait_for(reader.read(), 60)
        writer.close()
        return first

    async with web_server() as (port, _), running_proxy(service_job(port)) as under_test:
        accepted = await talk(under_test.port, under_test.authority, "alice-token")
        assert b" 100 " in accepted.split(b"\r\n")[0]
        assert b'"body": "body"' in accepted
        refused = await talk(under_test.port, under_test.authority, "bob-token")
        assert refused.startswith(b"HTTP/1.1 403")


@pytest.mark.asyncio
async def test_a_client_of_http_1_0_gets_a_body_that_ends_with_the_connection() -> None:
    chunked = answering(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n")
    async with raw_server(chunked) as port, running_proxy(service_job(port)) as under_test:
        reader, writer = await asyncio.open_connection("127.0.0.1", under_test.port)
        writer.write(
            f"GET / HTTP/1.0\r\nHost: {under_test.authority}\r\nConnection: keep-alive\r\n"
            "Authorization: Bearer alice-token\r\n\r\n".encode()
        )
        answer = await asyncio.wait_for(reader.read(), 60)
        writer.close()
        assert answer.endswith(b"\r\n\r\nabc")
        assert b"chunked" not in answer


@pytest.mark.asyncio
@pytest.mark.parametrize(
    ("response", "status"),
    [
        (b"", 502),
        (b"SSH-2.0-OpenSSH_9.9\r\n", 502),
        (b"HTTP/1.1 200 OK\r\nContent-Le", 502),
        (b"HTTP/1.1 200 OK\r\nX: " + b"x" * 300_000 + b"\r\n\r\n", 502),
        (b"HTTP/1.1 103 Early Hints\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", 200),
    ],
)
async def test_what_is_no_answer_is_reported_as_such(response: bytes, status: int) -> None:
    async with raw_server(answering(response)) as port, running_proxy(service_job(port)) as under_test:
        answer = await under_test.client(**BEARER).get("/")
        assert answer.status_code == status
        if status == 502:
            assert answer.json()["message"].startswith(f"The service did not answer. Port {port}: ")


@pytest.mark.asyncio
async def test_an_answer_that_breaks_off_breaks_off_for_the_client_too() -> None:
    for framing in (b"Content-Length: 1000\r\n\r\nabc", b"Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n"):
        broken = answering(b"HTTP/1.1 200 OK\r\n" + framing)
        async with raw_server(broken) as port, running_proxy(service_job(port)) as under_test:
            with pytest.raises(httpx.RemoteProtocolError):
                await under_test.client(**BEARER).get("/")


@pytest.mark.asyncio
async def test_an_answer_that_does_not_begin_in_time_is_a_504() -> None:
    forever = asyncio.Event()

    async def silent(reader: asyncio.StreamReader, _writer: asyncio.StreamWriter) -> None:
        await forever.wait()

    async with raw_server(silent) as port, running_proxy(service_job(port), response_s=0.2) as under_test:
        for method, content in (("GET", None), ("POST", b"x")):
            answer = await under_test.client(**BEARER).request(method, "/", content=content)
            assert answer.status_code == 504
            assert answer.json()["code"] == "UnavailableError"


@pytest.mark.asyncio
async def test_a_client_that_leaves_takes_its_request_along() -> None:
    seen, gone = asyncio.Event(), asyncio.Event()

    async def patient(reader: asyncio.StreamReader, _writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        seen.set()
        assert await reader.read() == b""
        gone.set()

    async with raw_server(patient) as port, running_proxy(service_job(port)) as under_test:
        _, writer = await asyncio.open_connection("127.0.0.1", under_test.port)
        writer.write(
            f"GET / HTTP/1.1\r\nHost: {under_test.authority}\r\nAuthorization: Bearer alice-token\r\n\r\n".encode()
        )
        await asyncio.wait_for(seen.wait(), 60)
        writer.close()
        await asyncio.wait_for(gone.wait(), 60)


@pytest.mark.asyncio
async def test_an_address_follows_the_task_to_its_next_port() -> None:
    async with web_server() as (first, _), web_server() as (second, _), running_proxy(service_job(first)) as under_test:
        client = under_test.client(**BEARER)
        assert (await client.get("/show")).status_code == 200
        under_test.store.put(service_job(second))
        async with asyncio.timeout(60):
            while under_test.engine.dialled[-1][1] != second:
                assert (await client.get("/show")).status_code == 200


@pytest.mark.asyncio
async def test_many_requests_at_once_all_get_their_own_answer() -> None:
    async with web_server() as (port, _), running_proxy(service_job(port)) as under_test:
        client = under_test.client(**BEARER)
        answers = await asyncio.gather(*(client.get(f"/show?n={number}") for number in range(200)))
        assert [answer.json()["uri"] for answer in answers] == [f"/show?n={number}" for number in range(200)]


@pytest.mark.asyncio
async def test_odd_requests_are_answered_in_place() -> None:
    async with web_server() as (port, _), running_proxy(service_job(port)) as under_test:
        for line, status in [
            (f"GET http://{HOST}/show HTTP/1.1", b"400"),
            ("OPTIONS * HTTP/1.1", b"400"),
            ("GET /show\x01 HTTP/1.1", b"400"),
            ("BREW /show HTTP/1.1", b"405"),
        ]:
            reader, writer = await asyncio.open_connection("127.0.0.1", under_test.port)
            writer.write(
                f"{line}\r\nHost: {under_test.authority}\r\nAuthorization: Bearer alice-token\r\n"
                "Connection: close\r\n\r\n".encode()
            )
            answer = await asyncio.wait_for(reader.read(), 60)
            writer.close()
            assert answer.split(b" ")[1] == status, (line, answer)


@pytest.mark.asyncio
@pytest.mark.parametrize(
    ("answer", "status"),
    [
        (b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nwhole\r\n0\r\n\r\n", 200),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\nContent-Length: 4\r\n\r\nabcd", 502),
        (b"HTTP/1.1 200 OK\r\nX-A: \x01\r\nContent-Length: 0\r\n\r\n", 502),
        (b"HTTP/1.1 101 Now\r\nConnection: Upgrade\r\nUpgrade: h2c\r\n\r\n", 502),
    ],
    ids=["length and chunks", "two lengths", "control character", "unasked upgrade"],
)
async def test_an_answer_that_is_no_proper_http_is_the_tasks_fault(
    answer: bytes, status: int, caplog: pytest.LogCaptureFixture
) -> None:
    async with raw_server(answering(answer)) as port, running_proxy(service_job(port)) as under_test:
        given = await under_test.client(**BEARER).get("/")
    assert given.status_code == status
    assert status != 200 or given.text == "whole"
    assert "Traceback" not in caplog.text
