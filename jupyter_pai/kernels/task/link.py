"""A link that loses nothing when its connection breaks: messages in order, each exactly once, both ways.

A message stays in memory until the other end has acknowledged it. After a new connection each end says how many
messages it has received, and the other sends what follows. So streams between a client and its kernel survive a
sleeping laptop: they stand still and go on.
"""

from __future__ import annotations

import asyncio
import collections
import json
import struct
from collections.abc import Awaitable, Callable
from typing import Any

HELLO, DATA, ACK, ERROR = b"H", b"D", b"A", b"E"
OPEN, BYTES, CLOSE, CONTROL = 1, 2, 3, 4

_FRAME = struct.Struct(">cI")
_MESSAGE = struct.Struct(">BI")
_COUNT = struct.Struct(">Q")

MOST_KEPT = 64 * 1024 * 1024
"""Bytes that wait for acknowledgement before a stream is no longer read. The kernel then waits or drops output."""
MOST_FRAME = 1024 * 1024
CHUNK = 64 * 1024


def frame(kind: bytes, payload: bytes) -> bytes:
    """The bytes of one frame on a connection."""
    return _FRAME.pack(kind, len(payload)) + payload


async def read_frame(reader: asyncio.StreamReader) -> tuple[bytes, bytes]:
    """The next frame: its kind and payload. Raises ConnectionError for other bytes, IncompleteReadError at the end."""
    kind, length = _FRAME.unpack(await reader.readexactly(_FRAME.size))
    if length > MOST_FRAME or kind not in (HELLO, DATA, ACK, ERROR):
        raise ConnectionError("not a frame of a kernel's link")
    return kind, await reader.readexactly(length)


class MessageLink:
    """One end of a link. ``receive(kind, stream, payload)`` is awaited for each message of the other end, in order."""

    def __init__(self, name: str, receive: Callable[[int, int, bytes], Awaitable[None]]) -> None:
        self.name = name
        self._receive = receive
        self._kept: collections.deque[bytes] = collections.deque()
        self._kept_bytes = 0
        self._first = 0  # number of the first message that is kept
        self._received = 0
        self._writer: asyncio.StreamWriter | None = None
        self._turn = asyncio.Lock()
        self._room = asyncio.Event()
        self._room.set()
        self.connected = asyncio.Event()

    def send(self, kind: int, stream: int, payload: bytes = b"") -> None:
        """Send a message, now or as soon as there is a connection."""
        message = _MESSAGE.pack(kind, stream) + payload
        self._kept.append(message)
        self._kept_bytes += len(message)
        if self._kept_bytes > MOST_KEPT:
            self._room.clear()
        if self._writer is not None:
            self._writer.write(frame(DATA, message))

    def tell(self, value: dict[str, Any]) -> None:
        """Send a value outside the streams."""
        self.send(CONTROL, 0, json.dumps(value).encode())

    async def room(self) -> None:
        """Wait until so little is unacknowledged that more may be sent."""
        await self._room.wait()

    def hello(self) -> bytes:
        """What is sent first on a connection."""
        return frame(HELLO, json.dumps({"link": self.name, "received": self._received}).encode())

    def disconnect(self) -> None:
        """Break the present connection; the next one goes on where it ended."""
        if self._writer is not None:
            self._writer.close()

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, received: int) -> None:
        """Use a connection until it breaks, which is not an error. ``received``: the count in the other's hello."""
        self._acknowledged(received)
        for message in self._kept:
            writer.write(frame(DATA, message))
        self._writer = writer
        self.connected.set()
        try:
            while True:
                kind, payload = await read_frame(reader)
                if kind == ACK:
                    self._acknowledged(_COUNT.unpack(payload)[0])
                elif kind == DATA:
                    message_kind, stream = _MESSAGE.unpack(payload[: _MESSAGE.size])
                    self._received += 1
                    async with self._turn:  # the last message of an older connection may not be done with
                        await self._receive(message_kind, stream, payload[_MESSAGE.size :])
                    writer.write(frame(ACK, _COUNT.pack(self._received)))
                    await writer.drain()
        except (OSError, asyncio.IncompleteReadError):
            pass
        finally:
            if self._writer is writer:
                self._writer = None
                self.connected.clear()

    def _acknowledged(self, count: int) -> None:
        if not self._first <= count <= self._first + len(self._kept):
            raise ConnectionError("the other end of the link counts other messages")
        while self._first < count:
            self._kept_bytes -= len(self._kept.popleft())
            self._first += 1
        if self._kept_bytes <= MOST_KEPT:
            self._room.set()


class Streams:
    """Byte streams in a link. ``arrived(stream, channel)`` is called when the other end opens one."""

    def __init__(
        self,
        link_name: str,
        told: Callable[[dict[str, Any]], Awaitable[None]],
        arrived: Callable[[int, int], Awaitable[None]] | None = None,
    ) -> None:
        self.link = MessageLink(link_name, self._receive)
        self._told = told
        self._arrived = arrived
        self._writers: dict[int, asyncio.StreamWriter] = {}
        self._last = 0
        self._tasks: set[asyncio.Future[None]] = set()

    def open(self, channel: int, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Connect a connection here with a channel of the other end."""
        self._last += 1
        self.link.send(OPEN, self._last, str(channel).encode())
        self.join(self._last, reader, writer)

    def join(self, stream: int, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Let a connection be this end of a stream."""
        writer.transport.set_write_buffer_limits(high=MOST_KEPT)
        self._writers[stream] = writer
        task = asyncio.ensure_future(self._pump(stream, reader))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def close(self) -> None:
        """Close this end of all streams."""
        for task in list(self._tasks):
            task.cancel()
        for stream in list(self._writers):
            self._end(stream)

    async def _pump(self, stream: int, reader: asyncio.StreamReader) -> None:
        try:
            while True:
                data = await reader.read(CHUNK)
                if not data:
                    break
                self.link.send(BYTES, stream, data)
                await self.link.room()
        except OSError:
            pass
        if self._end(stream):
            self.link.send(CLOSE, stream)

    def _end(self, stream: int) -> bool:
        writer = self._writers.pop(stream, None)
        if writer is not None:
            writer.close()
        return writer is not None

    async def _receive(self, kind: int, stream: int, payload: bytes) -> None:
        if kind == CONTROL:
            await self._told(json.loads(payload.decode()))
        elif kind == OPEN and self._arrived is not None:
            await self._arrived(stream, int(payload))
        elif kind == CLOSE:
            self._end(stream)
        elif kind == BYTES:
            writer = self._writers.get(stream)
            if writer is not None:
                writer.write(payload)
                try:
                    await writer.drain()
                except OSError:
                    self._end(stream)
