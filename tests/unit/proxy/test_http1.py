"""Messages that two readers could understand differently are refused; the others come out as they are."""

from __future__ import annotations

import pytest

from pai_backend.access.proxy.http1 import (
    MAX_HEAD_BYTES,
    BadMessage,
    RequestReader,
    ResponseReader,
    head_bytes,
    head_end,
)

HEAD = b"POST /a?b=c HTTP/1.1\r\nHost: lab--web.localhost\r\n"
ANSWER = b"HTTP/1.1 200 OK\r\n"


@pytest.mark.parametrize(
    "lines",
    [
        b"Content-Length: 1\r\nContent-Length: 2\r\n",
        b"Content-Length: 1\r\nContent-Length: 1\r\n",
        b"Content-Length: 1, 1\r\n",
        b"Content-Length: +1\r\n",
        b"Content-Length: -1\r\n",
        b"Content-Length: 0x1\r\n",
        b"Content-Length: 1_0\r\n",
        b"Content-Length: \r\n",
        b"Content-Length: 99999999999999999999\r\n",
        b"Content-Length: 5\r\nTransfer-Encoding: chunked\r\n",
        b"Transfer-Encoding: chunked\r\nContent-Length: 5\r\n",
        b"Transfer-Encoding: gzip, chunked\r\n",
        b"Transfer-Encoding: chunked, gzip\r\n",
        b"Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n",
        b"Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n",
        b"Transfer-Encoding: xchunked\r\n",
        b"Transfer-Encoding: identity\r\n",
        b"Transfer-Encoding:\x0bchunked\r\n",
        b"Transfer-Encoding : chunked\r\n",
        b"Content-Length : 5\r\n",
        b"X: a\r\n b\r\n",
        b"X: a\r\n\tb\r\n",
        b" X: a\r\n",
        b"X: a\nY: b\r\n",
        b"X: a\rY: b\r\n",
        b"X: a\x00\r\n",
        b"X: a\x01b\r\n",
        b"X\xe9: a\r\n",
        b": a\r\n",
        b"no colon\r\n",
        b"X Y: a\r\n",
        b"Host: other\r\n",
    ],
)
def test_a_head_that_is_not_clear_is_refused(lines: bytes) -> None:
    with pytest.raises(BadMessage):
        RequestReader(HEAD + lines + b"\r\n")


@pytest.mark.parametrize(
    "head",
    [
        b"GET / HTTP/1.1\r\n\r\n",
        b"GET / HTTP/1.2\r\nHost: a\r\n\r\n",
        b"GET / HTTP/2.0\r\nHost: a\r\n\r\n",
        b"GET / HTTP/0.9\r\nHost: a\r\n\r\n",
        b"GET /\r\nHost: a\r\n\r\n",
        b"GET /a b HTTP/1.1\r\nHost: a\r\n\r\n",
        b"GET /\x01 HTTP/1.1\r\nHost: a\r\n\r\n",
        b"GET / HTTP/1.1\nHost: a\n\n",
        b"GET / HTTP/1.1\r\nHost: a\n\r\n",
        b"G(T / HTTP/1.1\r\nHost: a\r\n\r\n",
        b" / HTTP/1.1\r\nHost: a\r\n\r\n",
        b"POST / HTTP/1.0\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n",
        b"\x16\x03\x01\x02\x00\x01\x00\r\n\r\n",
        HEAD + b"X: " + b"x" * MAX_HEAD_BYTES + b"\r\n\r\n",
    ],
)
def test_what_is_no_request_of_http_1_is_refused(head: bytes) -> None:
    with pytest.raises(BadMessage):
        RequestReader(head)


@pytest.mark.parametrize("method", ["GET", "BREW", "CONNECT", "PRI", "M-SEARCH"])
def test_every_method_is_read_alike(method: str) -> None:
    read = RequestReader(method.encode() + b" /a?b=c HTTP/1.1\r\nHost: h\r\nX-A: 1\r\nx-a:  2 \r\n\r\n")
    assert (read.method, read.target, read.host, read.version, read.has_body) == (method, "/a?b=c", "h", "1.1", False)
    assert read.headers.get_all() == [("Host", "h"), ("X-A", "1"), ("x-a", "2")]


def test_a_body_of_known_length_ends_where_it_says() -> None:
    read = RequestReader(HEAD + b"Content-Length: 5\r\n\r\n")
    assert read.has_body
    assert read.feed(b"abc") == b""
    assert not read.complete
    assert read.feed(b"deGET / HTTP/1.1\r\n") == b"GET / HTTP/1.1\r\n"
    assert read.complete
    assert read.take() == b"abcde"
    assert read.has_body, "that it had one is not forgotten"


@pytest.mark.parametrize("extension", [b"", b";a=b", b';a="b;c"'])
def test_chunks_are_joined_in_whatever_pieces_they_come(extension: bytes) -> None:
    read = RequestReader(HEAD + b"Transfer-Encoding: chunked\r\n\r\n")
    body = b"5%b\r\nhello\r\n1\r\n!\r\n0\r\nX-Trailer: x\r\n\r\n" % extension
    for index in range(len(body)):
        assert not read.complete
        read.feed(body[index : index + 1])
    assert read.complete
    assert not read.excess
    assert read.take() == b"hello!"
    assert "X-Trailer" not in read.headers


@pytest.mark.parametrize(
    "body",
    [
        b"5\nhello\r\n0\r\n\r\n",
        b"5 \r\nhello\r\n0\r\n\r\n",
        b"0x5\r\nhello\r\n0\r\n\r\n",
        b"-5\r\nhello\r\n0\r\n\r\n",
        b"5\r\nhelloX\r\n0\r\n\r\n",
        b"5\r\nhello0\r\n\r\n",
        b"5;a=\x01\r\nhello\r\n0\r\n\r\n",
        b"fffffffffffffffff\r\nhello\r\n0\r\n\r\n",
        b"\r\n",
    ],
)
def test_chunks_that_are_not_clear_are_refused(body: bytes) -> None:
    read = RequestReader(HEAD + b"Transfer-Encoding: chunked\r\n\r\n")
    with pytest.raises(BadMessage):
        read.feed(body)


def test_what_follows_chunks_is_noticed_and_is_no_part_of_them() -> None:
    for follows in (b"GET /smuggled HTTP/1.1\r\nHost: x\r\n\r\n", b"garbage"):
        read = RequestReader(HEAD + b"Transfer-Encoding: chunked\r\n\r\n")
        read.feed(b"1\r\nx\r\n0\r\n\r\n" + follows)
        assert (read.complete, read.excess, read.take()) == (True, True, b"x")


@pytest.mark.parametrize(
    ("head", "keeps"),
    [
        (b"GET / HTTP/1.1\r\nHost: a\r\n\r\n", True),
        (b"GET / HTTP/1.1\r\nHost: a\r\nConnection: x, Close\r\n\r\n", False),
        (b"GET / HTTP/1.0\r\nHost: a\r\n\r\n", False),
        (b"GET / HTTP/1.0\r\nHost: a\r\nConnection: Keep-Alive\r\n\r\n", True),
    ],
)
def test_who_keeps_a_connection_says_so_or_has_http_1_1(head: bytes, keeps: bool) -> None:
    assert RequestReader(head).keeps is keeps


def test_a_head_ends_at_its_empty_line_and_is_not_searched_twice() -> None:
    data = HEAD + b"\r\nbody\r\n\r\n"
    for size in range(len(HEAD) + 1):
        assert head_end(data[:size]) == 0
    assert head_end(data) == head_end(data, len(HEAD)) == len(HEAD) + 2
    assert head_end(b"GET / HTTP/1.1\nHost: a\n\nbody\r\n\r\n") == len(b"GET / HTTP/1.1\nHost: a\n\n")
    with pytest.raises(BadMessage):
        head_end(b"x" * (MAX_HEAD_BYTES + 1))


@pytest.mark.parametrize(
    "head",
    [
        b"HTTP/1.1 99 Low\r\n\r\n",
        b"HTTP/1.1 600 High\r\n\r\n",
        b"HTTP/1.1 1000 x\r\n\r\n",
        b"HTTP/2 200\r\n\r\n",
        b"ICY 200 OK\r\n\r\n",
        ANSWER + b"Content-Length: 3\r\nContent-Length: 4\r\n\r\n",
        ANSWER + b"Transfer-Encoding: gzip\r\n\r\n",
        ANSWER + b"X: a\r\n b\r\n\r\n",
        ANSWER + b"Set-Cookie: a=\x01\r\n\r\n",
        ANSWER + b"X: a\x00\r\n\r\n",
    ],
)
def test_what_is_no_answer_of_http_1_is_refused(head: bytes) -> None:
    with pytest.raises(BadMessage):
        ResponseReader(head)


def test_an_answer_without_a_length_ends_with_its_connection() -> None:
    read = ResponseReader(ANSWER + b"\r\n")
    assert (read.status, read.reason, read.framed, read.complete) == (200, b"OK", False, False)
    read.feed(b"all that comes")
    read.end()
    assert (read.take(), read.complete) == (b"all that comes", True)
    for framing in (b"Content-Length: 5\r\n\r\n", b"Transfer-Encoding: chunked\r\n\r\n"):
        with pytest.raises(BadMessage, match="closed"):
            ResponseReader(ANSWER + framing).end()


def test_small_servers_may_end_lines_with_lf_alone_and_chunks_outweigh_a_length() -> None:
    read = ResponseReader(b"HTTP/1.0 200 OK\nX-A: 1\n\n")
    assert read.headers.get_all() == [("X-A", "1")]
    read = ResponseReader(ANSWER + b"Content-Length: 3\r\nTransfer-Encoding: chunked\r\nX-A: 1\r\n\r\n")
    assert "Content-Length" not in read.headers
    read.feed(b"5\r\nwhole\r\n0\r\n\r\n")
    assert (read.complete, read.take()) == (True, b"whole")


@pytest.mark.parametrize("value", [b"a\r\nX-Other: b", b"a\nb", b"a\rb", b"a\x00", b"a\r\n\r\nb"])
def test_no_field_ends_its_own_line(value: bytes) -> None:
    assert head_bytes(b"GET / HTTP/1.1", [(b"A", b"b\xe9 c")]) == b"GET / HTTP/1.1\r\nA: b\xe9 c\r\n\r\n"
    with pytest.raises(BadMessage):
        head_bytes(b"GET / HTTP/1.1", [(b"X", value)])
    with pytest.raises(BadMessage):
        head_bytes(b"GET /" + value + b" HTTP/1.1", [])
