"""Requests that no client sends, over raw sockets to a real backend: none is our mistake, and none fills the log."""

from __future__ import annotations

from collections.abc import Iterator
from urllib.parse import urlsplit

import pytest

from tests.support.backend_process import Backend, backend
from tests.support.documents import scm_document
from tests.support.raw_requests import exchange

ANSWER_S = 60
DEEP = b"[" * 100_000
MANY_DIGITS = b"9" * 5_000
LOG_BYTES = 20_000  # for some hundred requests; a stranger could send a thousand in a second

PATHS = [
    b"/api/v2/jobs/%ff",
    b"/api/v2/jobs/%00",
    b"/api/v2/jobs/%ff/config",
    b"/api/v1/jobs/%ff",
    b"/api/v2/jobs/x/attempts/%C2%B2",
    b"/api/v2/jobs/x/attempts/0/taskRoles/%ff/taskIndex/0/attempts/0",
    b"/api/v2/jobs?limit=%C2%B2",
    b"/api/v2/jobs?limit=" + MANY_DIGITS,
    b"/api/v2/jobs?limit=%ff",
    b"/api/v2/jobs?%ff=%ff",
    b"/api/v2/fs/%ff",
    b"/api/v2/fs/root/x?offset=" + MANY_DIGITS,
    b"/api/v2/keys/%ff",
    b"/api/v2/users/%ff",
    b"/s/%ff/",
    b"/s/x--y/%ff?token=%ff",
    b"/s/x--y/..//x",
    b"//",
    b"/" + b"a" * 60_000,
    b"*",
    b"x",
    b"http://[::1",
    b"http://[x]/api/v2/jobs",
    b"/%",
    b"/?a=1;b=2&&&=",
]
HEADERS = [
    b"Content-Length: " + MANY_DIGITS,
    b"Content-Length: -1",
    b"Content-Length: \xc2\xb2",
    b"Content-Length: 5\r\nContent-Length: 6",
    b"Content-Length: 5\r\nTransfer-Encoding: chunked",
    b"Transfer-Encoding: gzip, chunked",
    b"Transfer-Encoding: chunked\r\n\r\nzz\r\n",
    b"Transfer-Encoding: chunked\r\n\r\n" + b"f" * 5_000 + b"\r\n",
    b"Content-Type: multipart/form-data; boundary=\xff\r\nContent-Length: 4\r\n\r\n----",
    b"Content-Type: multipart/form-data\r\nContent-Length: 4\r\n\r\n----",
    b"Content-Encoding: gzip\r\nContent-Length: 4\r\n\r\nabcd",
    b"Expect: 100-continue\r\nContent-Length: 1",
    b"Expect: nonsense",
    b"Host: [",
    b"Host: \xff",
    b"Host: a\r\nHost: b",
    b"Host: x--y.localhost",
    b"Host: x--y.localhost\r\nContent-Length: 5\r\nTransfer-Encoding: chunked",
    b"Host: x--y.localhost\r\nUpgrade: h2c, websocket\r\nConnection: Upgrade",
    b"Authorization: Basic \xff",
    b"Authorization: Basic " + b"A" * 10_000,
    b"Authorization: Bearer \xff\xfe",
    b"Authorization: Bearer",
    b"Cookie: \xff=\xff; a=" + b"b" * 10_000,
    b"Range: bytes=" + MANY_DIGITS + b"-",
    b"Range: bytes=\xc2\xb2-",
    b"Origin: http://[",
    b"Accept: " + b"," * 10_000,
    b"X-Request-Id: \xff",
    b"X-Forwarded-For: \xff",
    b"X-Forwarded-Proto: \xff",
    b"X-Forwarded-Prefix: /\xff",
    b"If-Modified-Since: \xff",
    b"Connection: Upgrade\r\nUpgrade: websocket",
    b"Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Key: \xff\r\nSec-WebSocket-Version: 13",
    b"Connection: Upgrade\r\nUpgrade: h2c, websocket\r\nSec-WebSocket-Key: x\r\nSec-WebSocket-Version: 13",
    b" folded",
    b"no colon",
    b": no name",
    b"A\x00: b",
    b"A: \x00",
]
BODIES = [
    DEEP,
    b"{" * 1_000,
    b'{"a":' * 20_000,
    MANY_DIGITS,
    b'{"value": ' + MANY_DIGITS + b"}",
    b'{"value": 1e999999}',
    b"NaN",
    b'"\\ud800"',
    b'{"username": "\\ud800", "password": "\\ud800"}',
    b'{"username": "root", "password": "secret-of-mine", "password": 5}',
    b"\xff\xfe",
    b"\x00",
    b"username=%ff&password=%ff",
    b"",
    b"null",
    b"[]",
    b"- !!int \xc2\xb2",
]
WITH_BODY = [
    (b"POST", b"/api/v2/jobs"),
    (b"POST", b"/api/v2/validate"),
    (b"PUT", b"/api/v2/jobs/x/executionType"),
    (b"PUT", b"/api/v2/jobs/x/tag"),
    (b"POST", b"/api/v2/keys"),
    (b"PUT", b"/api/v2/users/me"),
    (b"PUT", b"/api/v2/cluster/config?dryRun=true"),
    (b"POST", b"/api/v2/authn/basic/login"),
    (b"POST", b"/api/v1/token"),
    (b"POST", b"/s/x--y/"),
]
METHODS = [
    b"CONNECT",
    b"TRACE",
    b"PRI",
    b"get",
    b"G\xff",
    b"\x16\x03\x01",
    b"GET GET",
    b"OPTIONS",
    b"PROPFIND",
    b"X" * 9_000,
]


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Backend]:
    with backend(tmp_path_factory.mktemp("hostile") / "data") as one:
        with one.client() as client:
            client.post("/api/v2/jobs", content=scm_document()).raise_for_status()
        yield one


def answer(running: Backend, request: bytes) -> bytes:
    """All that comes back until the backend closes, which it is asked to; empty when it only closes."""
    url = urlsplit(running.url)
    return exchange((url.hostname or "", url.port or 80), request, ANSWER_S)


def sent(method: bytes, path: bytes, *headers: bytes, token: str = "", body: bytes | None = None) -> bytes:
    """A request, with a host unless the headers have one."""
    lines = [method + b" " + path + b" HTTP/1.1"]
    if not any(header.startswith(b"Host:") for header in headers):
        lines.append(b"Host: localhost")
    lines.append(b"Connection: close") if not any(b"onnection:" in header for header in headers) else None
    if token:
        lines.append(b"Authorization: Bearer " + token.encode())
    if body is not None:
        lines.append(b"Content-Length: %d" % len(body))
    return b"\r\n".join([*lines, *headers]) + b"\r\n\r\n" + (body or b"")


def requests(token: str) -> Iterator[bytes]:
    for path in PATHS:
        for method in (b"GET", b"PUT", b"DELETE"):
            yield sent(method, path, token=token)
    for header in HEADERS:
        yield sent(b"GET", b"/api/v2/jobs", header, token=token)
        yield sent(b"POST", b"/api/v2/jobs", header, token=token)
        yield sent(b"POST", b"/s/x--y/z", header, token=token)
        yield sent(b"GET", b"/api/v2/jobs/hello/events/stream", header, token=token)
    for method in METHODS:
        for path in (b"/api/v2/jobs", b"/s/x--y/", b"localhost:80"):
            yield sent(method, path, token=token)
    for method, path in WITH_BODY:
        for body in BODIES:
            yield sent(method, path, token=token, body=body)
            yield sent(method, path, b"Content-Type: application/json", token=token, body=body)
    lost = b'{"username": "root",\r\n"password": "secret-of-mine"}'
    short = b"POST /api/v1/token HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\n\r\n"
    yield short + lost + b"\r\n\r\n"
    yield short + b" GET / HTTP/1.1\r\nsecret-of-mine x: 1\r\n\r\n"
    yield b"\r\n" * 1_000
    yield b"GET /\r\n\r\n"
    yield b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + bytes(500)
    yield b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
    yield b"A" * 100_000


@pytest.mark.parametrize("known", [False, True], ids=["stranger", "user"])
def test_no_request_is_our_mistake(running: Backend, known: bool) -> None:
    before = len(logged(running))
    for request in requests(running.token if known else ""):
        heard = answer(running, request)
        status = heard[9:12]
        assert not status.startswith(b"5"), (request[:300], heard[:600])
    log = logged(running)[before:]
    assert b"Traceback" not in log, log[-3_000:].decode(errors="replace")
    assert b"secret-of-m" not in log
    assert len(log) < LOG_BYTES, log[:3_000].decode(errors="replace")
    assert set(running.children()) == {"api,controller", "gateway", "agent"}


def logged(running: Backend) -> bytes:
    """What the processes have said."""
    files = [running.errors, *sorted((running.data_dir / "logs").glob("*"))]
    return b"".join(file.read_bytes() for file in files if file.is_file())
