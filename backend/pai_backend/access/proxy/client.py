"""A client's connection while it asks for services: one request after the other, and what follows a switch.

It is read strictly (``http1``). A request for anything else hands the connection over to the api, as it is.
"""

from __future__ import annotations

import asyncio
from socket import socket
from typing import Protocol

from pai_backend.access.proxy.fields import HeaderFields
from pai_backend.access.proxy.headers import wants_upgrade
from pai_backend.access.proxy.http1 import BadMessage, RequestReader, head_bytes, head_end
from pai_backend.access.proxy.reading import SharedBufferProtocol
from pai_backend.access.proxy.upstream import TunnelSide

HELD_BYTES = 131_072
"""Of a body, or of requests that come too early."""


class ConnectionOwner(Protocol):
    """What a connection belongs to."""

    def is_for_service(self, head: bytes) -> bool:
        """Whether a request is for a service."""
        ...

    def begin(self, client: ServiceClient, request: RequestReader) -> asyncio.Task[None]:
        """Answer a request, in a task."""
        ...

    def waits(self, client: ServiceClient) -> None:
        """It waits for a request."""
        ...

    def works(self, client: ServiceClient) -> None:
        """It waits no longer."""
        ...

    def left(self, client: ServiceClient) -> None:
        """It has ended, or is another's."""
        ...

    def hand_over(self, connection: socket, address: tuple[object, ...], data: bytes) -> None:
        """Let the api go on with the connection, of which that has been read."""
        ...


class ServiceClient(SharedBufferProtocol):
    """One connection."""

    transport: asyncio.Transport

    def __init__(self, front: ConnectionOwner, address: tuple[object, ...], data: bytes) -> None:
        """``data`` has been read of it already."""
        super().__init__()
        self.address = address
        self._front = front
        self._ahead = bytearray(data)
        self._seen = 0
        self._request: RequestReader | None = None
        self._exchange: asyncio.Task[None] | None = None
        self._news: asyncio.Future[None] | None = None
        self._room: asyncio.Future[None] | None = None
        self._held = 0
        self._is_paused = self._is_full = self._keeps = self._in_chunks = False
        self._is_leaving = self._is_over = False
        self._fault: BadMessage | None = None
        self._other: TunnelSide | None = None

    async def body(self) -> bytes:
        """The next piece of the request's body; empty at its end. Raises BadMessage."""
        request = self._request
        assert request is not None
        while not request.pieces:
            if self._fault is not None:
                raise self._fault
            if request.complete:
                return b""
            self._news = asyncio.get_running_loop().create_future()
            try:
                await self._news
            finally:
                self._news = None
        self._held = 0
        if self._is_paused:
            self._is_paused = False
            self.resume_reading()
        return request.take()

    def go_on(self) -> None:
        """Tell the client to send the body that it waits with (RFC 9110 §10.1.1)."""
        self.transport.write(b"HTTP/1.1 100 Continue\r\n\r\n")

    def begin(self, status: int, reason: bytes, headers: HeaderFields, first: bytes, *, is_bodiless: bool) -> None:
        """Send an answer's head and the beginning of its body. Raises BadMessage when HTTP/1.1 cannot say it."""
        request = self._request
        assert request is not None
        self._keeps = self._keeps_after(request) and headers.get("Connection", "").lower() != "close"
        self._in_chunks = not is_bodiless and "Content-Length" not in headers
        if self._in_chunks and request.version == "1.0":
            self._in_chunks = self._keeps = False  # the one way that HTTP/1.0 has to end such a body
        fields = [(name.encode("latin-1"), value.encode("latin-1")) for name, value in headers.get_all()]
        if self._in_chunks:
            fields.append((b"Transfer-Encoding", b"chunked"))
        if not self._keeps:
            if "Connection" not in headers:
                fields.append((b"Connection", b"close"))
        elif request.version == "1.0":
            fields.append((b"Connection", b"Keep-Alive"))
        head = head_bytes(b"HTTP/1.1 %d %b" % (status, reason), fields)
        self.transport.write(head + self._framed(first) if first else head)

    def switch(self, reason: bytes, headers: HeaderFields) -> None:
        """Tell the client that the protocol changes. Raises BadMessage."""
        fields = [(name.encode("latin-1"), value.encode("latin-1")) for name, value in headers.get_all()]
        self.transport.write(head_bytes(b"HTTP/1.1 101 %b" % reason, fields))

    async def send(self, data: bytes) -> None:
        """Send a piece of the body; returns when the client can take more."""
        self.transport.write(self._framed(data))
        if self._is_full:
            self._room = asyncio.get_running_loop().create_future()
            try:
                await self._room
            finally:
                self._room = None

    def finish(self) -> None:
        """The answer is complete, and another request may follow."""
        if self._in_chunks:
            self.transport.write(b"0\r\n\r\n")
        request = self._request
        if self._is_over or not self._keeps or request is None or not self._keeps_after(request):
            self.close()
            return
        self._request = self._exchange = None
        self._in_chunks = False
        if self._is_paused:
            self._is_paused = False
            self.resume_reading()
        self._next()

    def refuse(self) -> None:
        """Answer what is no HTTP/1.1, and read no further."""
        self._front.works(self)
        self.transport.write(b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
        self.close()

    def connect(self, other: TunnelSide) -> bytes:
        """Pass all that comes to another side from now on. Returns what came before."""
        early, self._other = bytes(self._ahead), other
        self._ahead.clear()
        if self._is_paused:
            self._is_paused = False
            self.resume_reading()
        if self._is_full:
            other.pause_reading()
        if self._is_over or self.transport.is_closing():
            other.ended()
        return early

    def write(self, data: bytes) -> None:
        """Send these as they are."""
        self.transport.write(data)

    def pause_reading(self) -> None:
        """Stop reading for now."""
        if not self.transport.is_closing():
            self.transport.pause_reading()

    def resume_reading(self) -> None:
        """Go on."""
        if not self.transport.is_closing():
            self.transport.resume_reading()

    def close(self) -> None:
        """Close the connection when all is sent."""
        self._front.works(self)
        self.transport.close()

    def cut(self) -> None:
        """Close the connection now."""
        self._front.works(self)
        self.transport.abort()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Called by asyncio."""
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport
        self._next()

    def data_received(self, data: bytes) -> None:
        """Take what the client sends."""
        if self._other is not None:
            self._other.write(data)
            return
        if self._request is not None and not self._request.complete:
            self._feed(data)
        else:
            self._ahead += data
            if self._exchange is None:
                self._next()
        if self._held + len(self._ahead) > HELD_BYTES and not self._is_paused and not self.transport.is_closing():
            self._is_paused = True
            self.pause_reading()

    def eof_received(self) -> bool:
        """Called by asyncio. Who says nothing more is gone, but for what a switch of protocols is to pass on."""
        self._is_over = self._request is not None and wants_upgrade(self._request.headers)
        if self._other is not None:
            self._other.ended()
        return self._is_over

    def connection_lost(self, exc: Exception | None) -> None:
        """Called by asyncio."""
        self._front.left(self)
        if self._other is not None:
            self._other.ended()
        elif self._exchange is not None:
            self._exchange.cancel()

    def pause_writing(self) -> None:
        """Called by asyncio."""
        self._is_full = True
        if self._other is not None:
            self._other.pause_reading()

    def resume_writing(self) -> None:
        """Called by asyncio."""
        self._is_full = False
        if self._room is not None and not self._room.done():
            self._room.set_result(None)
        if self._other is not None:
            self._other.resume_reading()
        if self._is_leaving:
            self._hand_over()

    def _next(self) -> None:
        """Begin with the next request when its head is complete."""
        ahead = self._ahead
        while ahead.startswith(b"\r\n"):  # after a body: RFC 9112 §2.2
            del ahead[:2]
            self._seen = 0
        try:
            end = head_end(ahead, self._seen)
            self._seen = 0 if end else len(ahead)
            if not end:
                self._front.waits(self)
                return
            head = bytes(ahead[:end])
            if not self._front.is_for_service(head):
                self._hand_over()
                return
            self._request = RequestReader(head)
        except BadMessage:
            self.refuse()
            return
        rest = bytes(ahead[end:])
        ahead.clear()
        self._front.works(self)
        if rest:
            self._ahead += rest if self._request.complete else b""
            if not self._request.complete:
                self._feed(rest)
        self._exchange = self._front.begin(self, self._request)

    def _feed(self, data: bytes) -> None:
        assert self._request is not None
        try:
            self._ahead += self._request.feed(data)
        except BadMessage as error:
            self._fault = error
        self._held += len(data)
        if self._news is not None and not self._news.done():
            self._news.set_result(None)

    def _keeps_after(self, request: RequestReader) -> bool:
        return request.keeps and request.complete and not request.excess and self._fault is None

    def _framed(self, data: bytes) -> bytes:
        return b"%x\r\n%b\r\n" % (len(data), data) if self._in_chunks else data

    def _hand_over(self) -> None:
        """The api reads on, from the beginning of this request, when all is sent that was answered."""
        if not self._is_leaving:
            self._is_leaving = True
            self.pause_reading()
            self.transport.set_write_buffer_limits(0)
        if self.transport.get_write_buffer_size() or self.transport.is_closing():
            return
        connection: socket = self.transport.get_extra_info("socket").dup()
        connection.setblocking(False)
        data = bytes(self._ahead)
        self.transport.abort()  # this end alone: the connection stays open by the other descriptor
        self._front.left(self)
        self._front.hand_over(connection, self.address, data)
