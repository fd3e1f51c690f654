"""One HTTP/1.1 request to a task and its response, over a stream that the engine dialled.

Bytes flow only as fast as the slower side takes them: sending waits for the task, and the body is read when the
browser has taken the last piece. A connection carries one request at a time, and a further one only when both
sides have said the last word of the one before, exactly.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import contextmanager

import h11

from pai_backend.access.proxy.headers import Fields
from pai_backend.engine.base import Connection

READ_BYTES = 65536
MAX_HEAD_BYTES = 65536  # of a response's header; as much as the api allows a request's (tornado's default)


class NoResponse(Exception):
    """The task did not answer, or not in HTTP. The message says which, in a few words."""


class Wire:
    """A connection to a task, and how far HTTP has come on it."""

    def __init__(self, connection: Connection) -> None:
        self.reader = connection.reader
        self.writer = connection.writer
        self.http = h11.Connection(h11.CLIENT, max_incomplete_event_size=MAX_HEAD_BYTES)
        self.was_used = False
        """Whether it has carried a request before."""
        self._listening: asyncio.Task[bytes] | None = None

    async def read(self) -> bytes:
        """What comes next; empty at the end. Raises OSError."""
        if self._listening is None:
            return await self.reader.read(READ_BYTES)
        listening, self._listening = self._listening, None
        return await listening

    def begin_again(self) -> bool:
        """Make it ready for another request. False when it cannot carry one: a side has ended it, or not finished."""
        done = self.http.our_state is h11.DONE and self.http.their_state is h11.DONE
        if not done or self.http.trailing_data != (b"", False) or self.writer.is_closing():
            return False
        self.http.start_next_cycle()
        self.was_used = True
        return True

    def listen(self, heard: Callable[[], object]) -> None:
        """Call ``heard`` when the task ends the connection, or says anything on it before it is asked."""
        self._listening = listening = asyncio.create_task(self.reader.read(READ_BYTES))
        # A read that ``read`` has taken over is the next answer.
        listening.add_done_callback(lambda done: heard() if self._listening is done else None)

    def is_quiet(self) -> bool:
        """Whether nothing has been heard since ``listen``."""
        return self._listening is not None and not self._listening.done() and not self.writer.is_closing()

    def close(self) -> None:
        """Close the connection; safe to call at any time and more than once."""
        if self._listening is not None:
            if not self._listening.done():
                self._listening.cancel()
            elif not self._listening.cancelled():
                self._listening.exception()  # that it broke is no news
        if self.writer.transport.get_write_buffer_size():
            self.writer.transport.abort()  # what the task did not take is no longer needed
        else:
            self.writer.close()


class UpstreamRequest:
    """Send with ``head``, ``body`` and ``end``; then ``response``, and ``chunks`` or ``take_over``.

    ``dial`` makes another connection. With it, a request without a body is sent again, once, when it went on a
    connection that was kept and the task ends that before a byte of an answer. Give it for methods that may be
    repeated only (RFC 9110 §9.2.2).
    """

    def __init__(self, wire: Wire, dial: Callable[[], Awaitable[Wire]] | None = None) -> None:
        self._wire = wire
        self._dial = dial if wire.was_used else None
        self._head: h11.Request | None = None
        self._ahead: h11.Event | None = None

    async def head(self, method: str, target: bytes, fields: Fields) -> None:
        """Send the request's header. Raises ``h11.LocalProtocolError`` when it cannot be said in HTTP/1.1."""
        self._head = h11.Request(method=method, target=target, headers=fields)
        await self._send(self._head)

    async def body(self, chunk: bytes) -> None:
        """Send a piece of the request's body; returns when the task can take more. Raises OSError when it is gone."""
        await self._send(h11.Data(data=chunk))

    async def end(self) -> None:
        """The request is complete."""
        await self._send(h11.EndOfMessage())

    async def response(self) -> h11.Response | h11.InformationalResponse:
        """The response's header, or the 101 that switches protocols. Raises NoResponse, and what ``dial`` does."""
        while True:
            event = await self._first_event()
            if isinstance(event, h11.Response):
                return event
            if isinstance(event, h11.InformationalResponse) and event.status_code == 101:
                return event
            if not isinstance(event, h11.InformationalResponse):
                raise NoResponse("the connection was closed before an answer came")

    def chunk_at_hand(self) -> bytes:
        """What of the body came together with the header; empty when nothing did. Raises NoResponse."""
        with _no_response():
            event = self._wire.http.next_event()
        if isinstance(event, h11.Data):
            return bytes(event.data)
        self._ahead = event if isinstance(event, h11.Event) else None
        return b""

    async def chunks(self) -> AsyncIterator[bytes]:
        """The response's body as it comes. Raises NoResponse when it breaks off."""
        while isinstance(event := await self._next_event(), h11.Data):
            yield bytes(event.data)

    def take_over(self) -> tuple[bytes, asyncio.StreamReader, asyncio.StreamWriter]:
        """After a 101: what came behind its header, and the streams, for the new protocol."""
        early, _ = self._wire.http.trailing_data
        return early, self._wire.reader, self._wire.writer

    @property
    def wire(self) -> Wire:
        """The connection that it is on now."""
        return self._wire

    def close(self) -> None:
        """Close the connection; safe to call at any time and more than once."""
        self._wire.close()

    async def _first_event(self) -> h11.Event:
        """As ``_next_event``; on another connection if the task has ended the kept one without a word."""
        dial, self._dial = self._dial, None
        if dial is None or self._head is None:
            return await self._next_event()
        try:
            with _no_response():
                data = await self._wire.read()
        except NoResponse:
            data = b""
        if data:
            self._wire.http.receive_data(data)
            return await self._next_event()
        self._wire.close()
        self._wire = await dial()
        with _no_response():
            await self._send(self._head)
            await self.end()
        return await self._next_event()

    async def _send(self, event: h11.Request | h11.Data | h11.EndOfMessage) -> None:
        data = self._wire.http.send(event)
        if data:
            self._wire.writer.write(data)
            await self._wire.writer.drain()

    async def _next_event(self) -> h11.Event:
        if self._ahead is not None:
            ahead, self._ahead = self._ahead, None
            return ahead
        with _no_response():
            while not isinstance(event := self._wire.http.next_event(), h11.Event):
                if event is h11.PAUSED:
                    raise NoResponse("the answer was followed by more data")
                self._wire.http.receive_data(await self._wire.read())
        return event


@contextmanager
def _no_response() -> Iterator[None]:
    """Say what is wrong with an answer in a few words for users."""
    try:
        yield
    except h11.RemoteProtocolError as error:
        if "closed connection" in str(error):
            raise NoResponse("the connection was closed before the answer was complete") from error
        raise NoResponse("the answer is not HTTP/1.1, or its header is too long") from error
    except OSError as error:
        raise NoResponse("the connection broke") from error
