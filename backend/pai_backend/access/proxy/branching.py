"""A connection of the api that gives up requests for services.

The stream below tornado looks at each head before tornado sees it, and passes on no byte of the next request: so
nothing is lost when the connection goes elsewhere in between. A client that sends its next request before the answer to
one in chunks has come gives up that possibility: its requests for services are refused on this connection.
"""

from __future__ import annotations

import asyncio
import re
from socket import socket
from typing import Any

from tornado.httputil import HTTPServerRequest
from tornado.iostream import IOStream
from tornado.routing import Matcher, Rule
from tornado.web import Application, RequestHandler

from pai_backend.access.proxy.address import read_address
from pai_backend.access.proxy.entrance import Branch
from pai_backend.access.proxy.http1 import MAX_HEAD_BYTES, BadMessage, RequestReader, head_end

_FRAMED = re.compile(rb"\n(?:content-length|transfer-encoding)[ \t]*:", re.I)


class BranchingStream(IOStream):
    """The stream of one connection."""

    def __init__(self, connection: socket, address: tuple[object, ...], branch: Branch, data: bytes = b"") -> None:
        """``data`` has been read of it already: it begins with a request for the api."""
        self._address, self._branch = address, branch
        self._ahead = bytearray(data)
        self._body: RequestReader | None = None
        self._is_known = bool(data)
        self._is_at_head = self._is_leaving = self._is_unclear = False
        self._granted = 0
        super().__init__(connection)

    def read_until_regex(self, regex: bytes, max_bytes: int | None = None) -> Any:
        """Called by tornado when it begins with a request."""
        self._is_at_head, self._body = True, None
        return super().read_until_regex(regex, max_bytes)

    def read_bytes(self, num_bytes: int, partial: bool = False) -> Any:
        """Called by tornado for a body; after a request without one, for frames: the connection is a WebSocket's."""
        self._is_unclear |= not self._is_at_head and self._body is None
        return super().read_bytes(num_bytes, partial)

    def read_from_fd(self, buf: bytearray | memoryview) -> int | None:
        """Called by tornado for more bytes: it gets those of the request that it reads, no others."""
        entrance = self._branch()
        if self._is_unclear or (entrance is None and not self._ahead):
            return self._given(buf, len(self._ahead)) if self._ahead else super().read_from_fd(buf)
        if self._is_leaving:
            return None
        if not self._granted and not self._is_ready():
            room = MAX_HEAD_BYTES - len(self._ahead)
            if room <= 0:
                return 0  # requests are sent ahead without end
            count = super().read_from_fd(memoryview(buf)[:room])
            if not count:
                return count
            self._ahead += memoryview(buf)[:count]
            if not self._is_ready():
                return None
        return self._given(buf, self._granted) if self._granted else None

    def _given(self, buf: bytearray | memoryview, most: int) -> int:
        count = min(len(buf), most, len(self._ahead))
        memoryview(buf)[:count] = self._ahead[:count]
        del self._ahead[:count]
        self._granted = max(0, self._granted - count)
        return count

    def _is_ready(self) -> bool:
        """Grant to tornado what is there of its request."""
        if not self._ahead or self._is_leaving:
            return False
        if self._is_at_head:
            return self._read_head()
        if self._body is None or self._body.complete:
            return False
        return self._read_body(bytes(self._ahead))

    def _read_head(self) -> bool:
        entrance = self._branch()
        try:
            end = head_end(self._ahead)
        except BadMessage:
            end = len(self._ahead)  # for tornado to refuse
        if not end:
            return False
        head = bytes(self._ahead[:end])
        if entrance is not None and not self._is_known and entrance.is_for_service(head):
            self._is_leaving = True
            asyncio.get_running_loop().call_soon(self._leave)
            return False
        self._is_at_head = self._is_known = False
        self._granted = end
        if _FRAMED.search(head):
            try:
                body = RequestReader(head)
                self._body = None if body.complete else body  # of length 0, which some proxies say of every request
            except BadMessage:
                self._is_unclear = True
        return True

    def _read_body(self, data: bytes) -> bool:
        assert self._body is not None
        try:
            rest = self._body.feed(data)
        except BadMessage:
            self._is_unclear, rest = True, b""
        self._body.pieces.clear()
        self._is_unclear |= self._body.excess
        self._granted = len(data) - len(rest)
        return True

    def _leave(self) -> None:
        entrance = self._branch()
        if self.closed() or entrance is None:
            return
        connection: socket = self.socket.dup()
        connection.setblocking(False)
        data = bytes(self._ahead)
        self.close()
        entrance.take(connection, self._address, data)


def leftover_rule(domain: str) -> Rule:
    """What the api answers to requests for services that it got after all: they were sent ahead of an answer."""
    return Rule(_ServiceMatches(domain), Application([(".*", _SentAhead)]))


class _ServiceMatches(Matcher):
    def __init__(self, domain: str) -> None:
        self._domain = domain

    def match(self, request: HTTPServerRequest) -> dict[str, Any] | None:
        return {} if read_address(request.host, request.uri or "", self._domain) is not None else None


class _SentAhead(RequestHandler):
    def prepare(self) -> None:
        """Every verb."""
        self.set_status(400)
        self.set_header("Connection", "close")
        self.set_header("Content-Type", "text/plain; charset=utf-8")
        self.finish("Send requests for services after the answer to the one before, or on a connection of their own.\n")
