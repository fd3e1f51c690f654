"""One HTTP/1.1 request to a task and its response, over a stream that the engine dialled.

Bytes flow only as fast as the slower side takes them: sending waits for the task, and the body is read when the
browser has taken the last piece. A connection carries one request at a time, and a further one only when both
sides have said the last word of the one before, exactly.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Protocol

from pai_backend.access.proxy.headers import Fields
from pai_backend.access.proxy.http1 import BadMessage, ResponseReader, head_bytes, head_end
from pai_backend.access.proxy.reading import READ_BYTES, SharedBufferProtocol
from pai_backend.engine.base import Connection

HELD_BYTES = 131_072
"""Of an answer that the browser does not take yet."""
_NO_BODY = frozenset({204, 304})  # RFC 9110 §6.4.1


class NoResponse(Exception):
    """The task did not answer, or not in HTTP. The message says which, in a few words."""


class TunnelSide(Protocol):
    """Where the bytes of a tunnel go to."""

    def write(self, data: bytes) -> None:
        """Send these."""
        ...

    def pause_reading(self) -> None:
        """Say nothing more for now: the other side does not take it."""
        ...

    def resume_reading(self) -> None:
        """Go on."""
        ...

    def ended(self) -> None:
        """The other side has ended."""
        ...


class Wire(SharedBufferProtocol):
    """A connection to a task, read without a stream between: most requests are answered in one piece."""

    def __init__(self, connection: Connection) -> None:
        """Takes the connection over from the streams it was dialled with."""
        super().__init__()
        self.was_used = False
        """Whether it has carried a request before."""
        self.is_free = True
        """Whether both sides have said the last word of a request, and nothing more."""
        self._writer = connection.writer  # it closes the connection when it is forgotten
        transport = connection.writer.transport
        self.transport: asyncio.WriteTransport = transport
        self._pieces: deque[bytes] = deque()
        self._held = 0
        self._error: OSError | None = None
        self._waiting: asyncio.Future[None] | None = None
        self._room: asyncio.Future[None] | None = None
        self._is_full = self._is_paused = False
        self._heard: Callable[[], object] | None = None
        self._other: TunnelSide | None = None
        self._streams = transport.get_protocol()
        early, self._is_over = _taken(connection.reader)
        transport.set_protocol(self)
        if early:
            self.data_received(early)

    async def read(self) -> bytes:
        """What comes next; empty at the end. Raises OSError."""
        while not self._pieces:
            if self._error is not None:
                raise self._error
            if self._is_over:
                return b""
            self._waiting = asyncio.get_running_loop().create_future()
            try:
                await self._waiting
            finally:
                self._waiting = None
        data = self._pieces.popleft()
        self._held -= len(data)
        if self._is_paused and self._held <= HELD_BYTES:
            self._is_paused = False
            self._reading(True)
        return data

    def write(self, data: bytes) -> None:
        """Send these; what does not go at once is kept."""
        self.transport.write(data)

    async def drain(self) -> None:
        """Wait until more can be sent. Raises OSError when the task is gone."""
        if self._error is not None:
            raise self._error
        if self.transport.is_closing():
            raise ConnectionResetError("the connection is closed")
        if self._is_full:
            self._room = asyncio.get_running_loop().create_future()
            try:
                await self._room
            finally:
                self._room = None

    def listen(self, heard: Callable[[], object]) -> None:
        """Call ``heard`` when the task ends the connection, or says anything on it before it is asked."""
        self._heard = heard

    def take(self) -> bool:
        """Listen no longer. False when anything has been heard: it can carry no request."""
        self._heard = None
        return not (self._pieces or self._is_over or self.transport.is_closing())

    def fail(self) -> None:
        """Close the connection; who reads learns of it at once."""
        self._is_over = True
        self.transport.abort()
        self._wake()

    def connect(self, other: TunnelSide) -> bytes:
        """Pass all that comes to another side from now on. Returns what came before."""
        early, self._other = b"".join(self._pieces), other
        self._pieces.clear()
        if self._is_over:
            other.ended()
        if self._is_full:
            other.pause_reading()
        return early

    def pause_reading(self) -> None:
        """As a side: the other one does not take it."""
        self._reading(False)

    def resume_reading(self) -> None:
        """As a side."""
        self._reading(True)

    def close(self) -> None:
        """Close the connection; safe to call at any time and more than once."""
        self._heard = None
        if self.transport.get_write_buffer_size() and self._other is None:
            self.transport.abort()  # what the task did not take is no longer needed
        else:
            self.transport.close()

    def data_received(self, data: bytes) -> None:
        """Take what the task sends."""
        if self._other is not None:
            self._other.write(data)
            return
        self._pieces.append(data)
        self._held += len(data)
        if self._held > HELD_BYTES and not self._is_paused:
            self._is_paused = True
            self._reading(False)
        self._wake()

    def eof_received(self) -> bool:
        """Called by asyncio; a task may end its side and still take the rest of a request."""
        self._is_over = True
        self._wake()
        if self._other is not None:
            self._other.ended()
        return True

    def connection_lost(self, exc: Exception | None) -> None:
        """Called by asyncio."""
        self._is_over = True
        self._error = exc if isinstance(exc, OSError) else None
        self._streams.connection_lost(exc)
        self.resume_writing()
        self._wake()
        if self._other is not None:
            self._other.ended()

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

    def _wake(self) -> None:
        if self._heard is not None:
            self._heard()
        elif self._waiting is not None and not self._waiting.done():
            self._waiting.set_result(None)

    def _reading(self, goes_on: bool) -> None:
        transport = self.transport
        assert isinstance(transport, asyncio.ReadTransport)
        if not transport.is_closing():
            transport.resume_reading() if goes_on else transport.pause_reading()


def _taken(reader: asyncio.StreamReader) -> tuple[bytes, bool]:
    """What a stream has read already, and whether it has ended. Raises OSError when it broke."""
    early = b""
    while True:
        reading = reader.read(READ_BYTES)
        try:
            reading.send(None)
        except StopIteration as done:
            if not done.value:
                return early, True
            early += done.value
        else:
            reading.close()  # it would wait for more
            return early, False


class UpstreamRequest:
    """Send with ``head``, ``body`` and ``end``; then ``response``, and ``chunks`` or ``wire`` after a 101.

    ``dial`` makes another connection. With it, a request without a body is sent again, once, when it went on a
    connection that was kept and the task ends that before a byte of an answer. Give it for methods that may be
    repeated only (RFC 9110 §9.2.2).
    """

    def __init__(self, wire: Wire, dial: Callable[[], Awaitable[Wire]] | None = None) -> None:
        self.wire = wire
        """The connection that it is on now."""
        self._dial = dial if wire.was_used else None
        self._head = b""
        self._method = ""
        self._in_chunks = self._is_sent = False
        self._rest = b""
        self._answer: ResponseReader | None = None
        wire.is_free = False

    async def head(self, method: str, target: bytes, fields: Fields) -> None:
        """Send the request's header. Raises BadMessage when it cannot be said in HTTP/1.1, OSError."""
        self._method = method
        self._head = head_bytes(b"%b %b HTTP/1.1" % (method.encode("ascii"), target), fields)
        self._in_chunks = any(name.lower() == b"transfer-encoding" for name, _ in fields)
        self.wire.write(self._head)
        await self.wire.drain()

    async def body(self, chunk: bytes) -> None:
        """Send a piece of the request's body; returns when the task can take more. Raises OSError when it is gone."""
        if chunk:
            self.wire.write(b"%x\r\n%b\r\n" % (len(chunk), chunk) if self._in_chunks else chunk)
            await self.wire.drain()

    async def end(self) -> None:
        """The request is complete. Raises OSError."""
        self._is_sent = True
        if self._in_chunks:
            self.wire.write(b"0\r\n\r\n")
            await self.wire.drain()

    async def response(self) -> ResponseReader:
        """The response's header, or the 101 that switches protocols. Raises NoResponse, and what ``dial`` does."""
        data = bytearray(await self._first_bytes())
        seen = 0
        while True:
            try:
                if not (end := head_end(data, seen)):
                    seen = len(data)
                    data += await self._read()
                    continue
                answer = ResponseReader(bytes(data[:end]))
            except BadMessage as error:
                raise NoResponse("the answer is not HTTP/1.1, or its header is too long") from error
            del data[:end]
            seen = 0
            if answer.status >= 200 or answer.status == 101:
                break
        if self._method == "HEAD" or answer.status in _NO_BODY or answer.status == 101:
            answer.no_body()
        self._answer, self._rest = answer, bytes(data)
        return answer

    def chunk_at_hand(self) -> bytes:
        """What of the body came together with the header; empty when nothing did. Raises NoResponse."""
        assert self._answer is not None
        if self._rest and not self._answer.complete:
            self._feed(self._rest)
        return self._answer.take()

    async def chunks(self) -> AsyncIterator[bytes]:
        """The response's body as it comes. Raises NoResponse when it breaks off."""
        assert self._answer is not None
        if data := self.chunk_at_hand():
            yield data
        while not self._answer.complete:
            await self._feed_next()
            if data := self._answer.take():
                yield data
        self._finish()

    def take_over(self) -> bytes:
        """After a 101: what came behind its header, for the new protocol."""
        rest, self._rest = self._rest, b""
        return rest

    def give_up(self) -> None:
        """Wait no longer: who waits for the answer is told that the connection was closed."""
        self._dial = None
        self.wire.fail()

    def close(self) -> None:
        """Close the connection; safe to call at any time and more than once."""
        self.wire.close()

    def _finish(self) -> None:
        answer = self._answer
        assert answer is not None
        clear = not self._rest and not answer.excess and answer.status != 101
        self.wire.is_free = self._is_sent and clear and answer.keeps and answer.framed

    def _feed(self, data: bytes) -> None:
        assert self._answer is not None
        try:
            self._rest = self._answer.feed(data)
        except BadMessage as error:
            raise NoResponse("the answer is not HTTP/1.1") from error

    async def _feed_next(self) -> None:
        assert self._answer is not None
        try:
            data = await self.wire.read()
        except OSError as error:
            raise NoResponse("the connection broke") from error
        if data:
            self._feed(data)
            return
        try:
            self._answer.end()
        except BadMessage as error:
            raise NoResponse("the connection was closed before the answer was complete") from error

    async def _first_bytes(self) -> bytes:
        """What comes first; on another connection if the task has ended the kept one without a word."""
        if self._dial is None:
            return await self._read()
        try:
            data = await self.wire.read()
        except OSError:
            data = b""
        dial, self._dial = self._dial, None
        if data:
            return data
        if dial is None:
            raise NoResponse("the connection was closed before an answer came")
        self.wire.close()
        self.wire = await dial()
        self.wire.is_free = False
        try:
            self.wire.write(self._head)
            await self.wire.drain()
        except OSError as error:
            raise NoResponse("the connection broke") from error
        return await self._read()

    async def _read(self) -> bytes:
        try:
            data = await self.wire.read()
        except OSError as error:
            raise NoResponse("the connection broke") from error
        if not data:
            raise NoResponse("the connection was closed before an answer came")
        return data
