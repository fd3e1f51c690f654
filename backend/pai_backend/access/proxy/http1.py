"""Reading HTTP/1.1 strictly: heads by llhttp, bodies by their one length. No I/O.

What two readers could understand differently is refused, so that no request is hidden in another: both lengths at once
or one twice, a length that is no number, lines that are folded or end in a bare LF, blanks before a colon, control
characters, a coding other than ``chunked``. Sources: RFC 9112 §2.2, §5, §6 and §7.
"""

from __future__ import annotations

import re
from typing import Any, ClassVar

import httptools

from pai_backend.access.proxy.fields import HeaderFields
from pai_backend.model.digits import whole_number

MAX_HEAD_BYTES = 65536
_END_OF_HEAD = re.compile(rb"\r?\n\r?\n")
_STRICT_END = b"\r\n\r\n"
_BARE_LF = re.compile(rb"(?<!\r)\n")
_LENGTH = re.compile(rb"\r\ncontent-length:[^\r\n]*(?=\r\n)", re.I)
_METHOD = re.compile(rb"[!#$%&'*+.^_`|~0-9A-Za-z-]+(?= )")  # a token, RFC 9110 §5.6.2
_VERSIONS = ("1.0", "1.1")
_NOT_IN_A_HEAD = re.compile(rb"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]|\r(?!\n)|(?<!\r)\n")


class BadMessage(Exception):
    """It is not HTTP/1.1, or could be read in two ways. The message says which, in a few words."""


def head_end(data: bytes | bytearray, seen: int = 0) -> int:
    """Where the head at the beginning of ``data`` ends; 0 when it is not complete. The first ``seen`` bytes are known.

    A head with bare LF ends too, for its reader to refuse. Raises BadMessage.
    """
    begin = max(0, seen - 3)
    end = data.find(_STRICT_END, begin)
    if end >= 0 and data.find(b"\n\n", begin, end) < 0:
        return end + len(_STRICT_END)
    if (found := _END_OF_HEAD.search(data, begin)) is not None:
        return found.end()
    if len(data) > MAX_HEAD_BYTES:
        raise BadMessage("its header is too long")
    return 0


class MessageReader:
    """Reads one message whose head is complete, then its body. One is made for each message."""

    _PARSER: ClassVar[Any]

    def __init__(self, head: bytes) -> None:
        """``head`` includes its empty line. Raises BadMessage."""
        if len(head) > MAX_HEAD_BYTES:
            raise BadMessage("its header is too long")
        self.headers = HeaderFields()
        self.pieces: list[bytes] = []
        self.complete = False
        """Whether the body is complete."""
        self.has_body = False
        """Whether a body followed the head."""
        self.excess = False
        """Whether bytes followed the end of a body in chunks: where the next message begins is not known."""
        self._in_head = True
        self._left: int | None = 0
        self._chunked = False
        self._parser = self._PARSER(self)
        try:
            self._parser.feed_data(head)
        except httptools.HttpParserUpgrade:
            pass  # whether the protocol changes is decided elsewhere
        except httptools.HttpParserError as error:
            raise BadMessage("it is not HTTP/1.1") from error
        if self._in_head:
            raise BadMessage("it is not HTTP/1.1")
        self.version = self._parser.get_http_version()
        if self.version not in _VERSIONS:
            raise BadMessage("it is not HTTP/1.1")
        self._frame()

    @property
    def keeps(self) -> bool:
        """Whether the sender means to keep the connection."""
        options = [word.strip().lower() for word in self.headers.get("Connection", "").split(",")]
        return "close" not in options if self.version == "1.1" else "keep-alive" in options

    @property
    def framed(self) -> bool:
        """Whether the message ends before its connection does."""
        return self._left is not None

    def no_body(self) -> None:
        """None follows, whatever the head says: it answers ``HEAD``, or its status has none (RFC 9112 §6.3)."""
        self._left, self._chunked, self.complete = 0, False, True

    def feed(self, data: bytes) -> bytes:
        """The next bytes; what of them belongs to the body is in ``pieces``. Returns what follows the message.

        Raises BadMessage.
        """
        if self._chunked:
            return self._feed_chunks(data)
        if self._left is None:
            self.pieces.append(data)
            return b""
        piece, rest = data[: self._left], data[self._left :]
        self._left -= len(piece)
        self.complete = not self._left
        if piece:
            self.pieces.append(piece)
        return rest

    def end(self) -> None:
        """The sender has ended the connection. Raises BadMessage when more was announced."""
        if self._chunked or self._left is not None:
            raise BadMessage("the connection was closed before it was complete")
        self.complete = True

    def take(self) -> bytes:
        """What of the body has come since."""
        if not self.pieces:
            return b""
        taken = self.pieces[0] if len(self.pieces) == 1 else b"".join(self.pieces)
        self.pieces = []
        return taken

    def on_header(self, name: bytes, value: bytes) -> None:
        """Called by the parser; a trailer's lines are not passed on."""
        if self._in_head:
            self.headers.add(name.decode("latin-1"), value.strip(b" \t").decode("latin-1"))

    def on_headers_complete(self) -> None:
        """Called by the parser."""
        self._in_head = False

    def on_message_begin(self) -> None:
        """Called by the parser."""
        if self.complete and self._chunked:
            self.excess = True

    def on_body(self, data: bytes) -> None:
        """Called by the parser with what was in a chunk."""
        if not self.excess:
            self.pieces.append(data)

    def on_message_complete(self) -> None:
        """Called by the parser; of a body in chunks alone that says something new."""
        if self._chunked:
            self.complete = True

    def _feed_chunks(self, data: bytes) -> bytes:
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserUpgrade:
            pass
        except httptools.HttpParserError as error:
            if not self.complete:
                raise BadMessage("its chunks are not HTTP/1.1") from error
            self.excess = True
        return b""

    def _frame(self) -> None:
        headers = self.headers
        if "Transfer-Encoding" in headers:
            coding, is_both = headers["Transfer-Encoding"], "Content-Length" in headers
            if coding.lower() != "chunked" or is_both or self.version == "1.0":
                raise BadMessage("its length is not clear")
            self._chunked = True
        elif "Content-Length" in headers:
            self._left = whole_number(headers["Content-Length"])
            if self._left is None:
                raise BadMessage("its length is not clear")
        else:
            self._left = self._length_without_header()
        self.complete = self._left == 0 and not self._chunked
        self.has_body = not self.complete

    def _length_without_header(self) -> int | None:
        raise NotImplementedError


class RequestReader(MessageReader):
    """A client's request."""

    _PARSER = httptools.HttpRequestParser

    def __init__(self, head: bytes) -> None:
        """As the base."""
        self._target = b""
        method = _METHOD.match(head)
        if method is None:
            raise BadMessage("it is not HTTP/1.1")
        # llhttp knows some methods, and reads what follows CONNECT in ways of its own. Here all are read alike.
        super().__init__(b"POST" + head[method.end() :])
        self.method = method[0].decode("ascii")
        self.target = self._target.decode("latin-1")
        hosts = self.headers.get_list("Host")
        if len(hosts) != 1:
            raise BadMessage("it names no host, or several")
        self.host = hosts[0]

    def on_url(self, part: bytes) -> None:
        """Called by the parser."""
        self._target += part

    def _length_without_header(self) -> int | None:
        return 0


class ResponseReader(MessageReader):
    """A server's answer."""

    _PARSER = httptools.HttpResponseParser

    def __init__(self, head: bytes) -> None:
        """As the base. A bare LF ends a line too: many small servers write so, and it is not passed on.

        A length beside chunks does not count (RFC 9112 §6.3), and is not passed on either.
        """
        self.reason = b""
        head = _BARE_LF.sub(b"\r\n", head)
        if b"\r\ntransfer-encoding:" in head.lower():
            head = _LENGTH.sub(b"", head)
        super().__init__(head)
        self.status: int = self._parser.get_status_code()
        if not 100 <= self.status <= 599:
            raise BadMessage("it is not HTTP/1.1")

    def on_status(self, reason: bytes) -> None:
        """Called by the parser."""
        self.reason += reason

    def _length_without_header(self) -> int | None:
        return None


def head_bytes(first: bytes, fields: list[tuple[bytes, bytes]]) -> bytes:
    """A head as it is sent. Raises BadMessage when a field would end its line, or is no field."""
    lines = b"".join([b"%b: %b\r\n" % field for field in fields])
    head = b"%b\r\n%b\r\n" % (first, lines)
    if _NOT_IN_A_HEAD.search(head) or head.count(b"\r\n") != len(fields) + 2:
        raise BadMessage("a field cannot be said in HTTP/1.1")
    return head
