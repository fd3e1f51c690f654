"""One HTTP/1.1 request to a task and its response, over a stream that the engine dialled.

A connection carries one request, so nothing of one visitor's can be left for another's. Bytes flow only as
fast as the slower side takes them: sending waits for the task, and the body is read when the browser has taken the
last piece.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager

import h11

from pai_backend.access.proxy.headers import Fields
from pai_backend.engine.base import Connection

READ_BYTES = 65536
MAX_HEAD_BYTES = 65536  # of a response's header; as much as the api allows a request's (tornado's default)


class NoResponse(Exception):
    """The task did not answer, or not in HTTP. The message says which, in a few words."""


class UpstreamRequest:
    """Send with ``head``, ``body`` and ``end``; then ``response``, and ``chunks`` or ``take_over``."""

    def __init__(self, connection: Connection) -> None:
        self._reader = connection.reader
        self._writer = connection.writer
        self._http = h11.Connection(h11.CLIENT, max_incomplete_event_size=MAX_HEAD_BYTES)
        self._ahead: h11.Event | None = None

    async def head(self, method: str, target: bytes, fields: Fields) -> None:
        """Send the request's header. Raises ``h11.LocalProtocolError`` when it cannot be said in HTTP/1.1."""
        await self._send(h11.Request(method=method, target=target, headers=fields))

    async def body(self, chunk: bytes) -> None:
        """Send a piece of the request's body; returns when the task can take more. Raises OSError when it is gone."""
        await self._send(h11.Data(data=chunk))

    async def end(self) -> None:
        """The request is complete."""
        await self._send(h11.EndOfMessage())

    async def response(self) -> h11.Response | h11.InformationalResponse:
        """The response's header, or the 101 that switches protocols. Raises NoResponse."""
        while True:
            event = await self._next_event()
            if isinstance(event, h11.Response):
                return event
            if isinstance(event, h11.InformationalResponse) and event.status_code == 101:
                return event
            if not isinstance(event, h11.InformationalResponse):
                raise NoResponse("the connection was closed before an answer came")

    def chunk_at_hand(self) -> bytes:
        """What of the body came together with the header; empty when nothing did. Raises NoResponse."""
        with _no_response():
            event = self._http.next_event()
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
        early, _ = self._http.trailing_data
        return early, self._reader, self._writer

    def close(self) -> None:
        """Close the connection; safe to call at any time and more than once."""
        if self._writer.transport.get_write_buffer_size():
            self._writer.transport.abort()  # what the task did not take is no longer needed
        else:
            self._writer.close()

    async def _send(self, event: h11.Request | h11.Data | h11.EndOfMessage) -> None:
        data = self._http.send(event)
        if data:
            self._writer.write(data)
            await self._writer.drain()

    async def _next_event(self) -> h11.Event:
        if self._ahead is not None:
            ahead, self._ahead = self._ahead, None
            return ahead
        with _no_response():
            while not isinstance(event := self._http.next_event(), h11.Event):
                if event is h11.PAUSED:
                    raise NoResponse("the answer was followed by more data")
                self._http.receive_data(await self._reader.read(READ_BYTES))
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
