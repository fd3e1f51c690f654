"""Byte transports below the two legs of a login.

asyncssh ends a connection with ``abort``, which would throw away what is still in the write buffer: the
last output of a command, or the reason of a disconnect. Both transports here flush first, while the other end takes it.

asyncssh also writes every message by itself, and an empty one before each. What is written in one turn of
the event loop leaves in one piece here: for bulk data that is one system call instead of sixteen.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, cast

from pai_backend.engine.base import Connection

STALL_S = 5.0  # a closed connection that delivers nothing of what was written for so long is given up
FLUSH_S = 60.0  # and one that delivers less than all of it in this time
PIECE_BYTES = 1 << 18  # written at once at most
HIGH_WATER_BYTES = 1 << 17

_NO_MORE: dict[Any, Any] = {}
"""What these transports know beside the transports below them."""


def close_flushed(transport: asyncio.WriteTransport) -> None:
    """Close after everything written has left, as long as the other end takes some of it. Idempotent."""
    if transport.is_closing():
        return
    unsent = transport.get_write_buffer_size()
    transport.close()
    if unsent:
        _give_time(transport, unsent, asyncio.get_running_loop().time() + FLUSH_S)


def _give_time(transport: asyncio.WriteTransport, unsent: int, end: float) -> None:
    """Look again in a while whether it has delivered something. One that has closed has nothing unsent."""
    loop = asyncio.get_running_loop()

    def look() -> None:
        left = transport.get_write_buffer_size()
        if left and (left == unsent or loop.time() >= end):
            transport.abort()
        elif left:
            _give_time(transport, left, end)

    loop.call_later(STALL_S, look)


class _Outbox:
    """Collects what is written in one turn of the event loop and hands it on in one piece."""

    __slots__ = ("_hand_on", "_pieces", "gathering", "size")

    def __init__(self, hand_on: Callable[[bytes], None]) -> None:
        self._hand_on = hand_on
        self._pieces: list[bytes | bytearray | memoryview] = []
        self.size = 0
        """Bytes not handed on yet."""
        self.gathering = False
        """Whether the caller flushes after the last piece."""

    def put(self, data: bytes | bytearray | memoryview) -> None:
        """Take a piece; it leaves at the end of this turn, or at once when there is much."""
        if not self._pieces and not self.gathering:
            asyncio.get_running_loop().call_soon(self.flush)
        self._pieces.append(data)
        self.size += len(data)
        if self.size >= PIECE_BYTES:
            self.flush()

    def flush(self) -> None:
        """Hand on everything now. Idempotent."""
        if self._pieces:
            whole = b"".join(self._pieces)
            self._pieces.clear()
            self.size = 0
            self._hand_on(whole)


class FlushingTransport(asyncio.Transport):
    """A socket transport that writes in large pieces and whose ``abort`` still delivers what was written."""

    __slots__ = ("_inner", "_peername", "outbox")

    def __init__(self, inner: asyncio.Transport, peername: tuple[str, int] | None = None) -> None:
        """``peername`` is whom the other end speaks for, where that is not its own address."""
        super().__init__(_NO_MORE)
        self._inner = inner
        self._peername = peername
        self.outbox = _Outbox(inner.write)

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        """As the inner transport's, but for a ``peername`` that was given."""
        if name == "peername" and self._peername is not None:
            return self._peername
        return self._inner.get_extra_info(name, default)

    def write(self, data: bytes | bytearray | memoryview) -> None:
        """As the inner transport's; after closing, data is dropped without asyncio's warnings."""
        if not self._inner.is_closing():
            self.outbox.put(data)

    def get_write_buffer_size(self) -> int:
        """Bytes written that have not left yet."""
        return self.outbox.size + self._inner.get_write_buffer_size()

    def pause_reading(self) -> None:
        """Deliver nothing more until ``resume_reading``; TCP then holds the sender back. Idempotent."""
        self._inner.pause_reading()

    def resume_reading(self) -> None:
        """Go on delivering. Idempotent."""
        self._inner.resume_reading()

    def is_closing(self) -> bool:
        """Whether it was closed."""
        return self._inner.is_closing()

    def close(self) -> None:
        """Close as ``close_flushed`` does. Idempotent."""
        if not self._inner.is_closing():
            self.outbox.flush()
            close_flushed(self._inner)

    def abort(self) -> None:
        """The same as ``close``: see the module."""
        self.close()


class gathered:  # noqa: N801  (a context manager, by a class because it is entered for each piece that is received)
    """Send what is written to a transport within a block at its end, and not in a turn of its own after it.

    For large pieces only: of small ones a turn brings many, and each block is a system call.
    """

    __slots__ = ("_transport",)

    def __init__(self, transport: FlushingTransport) -> None:
        self._transport = transport

    def __enter__(self) -> None:
        self._transport.outbox.gathering = True

    def __exit__(self, *_: object) -> None:
        self._transport.outbox.gathering = False
        if not self._transport.is_closing():
            self._transport.outbox.flush()


def _forget_transport(writer: asyncio.StreamWriter) -> bool:
    """Release streams whose transport lives on: a writer that is garbage closes its transport.

    There is no public way, and the streams are 2 KiB. False where this Python keeps the transport in another way: the
    streams must then be kept as long as it (ADR 0032).
    """
    if getattr(writer, "_transport", None) is not writer.transport:
        return False
    gone: asyncio.Transport = _Gone(_NO_MORE)
    writer._transport = gone  # type: ignore[attr-defined]
    return writer.transport is gone


class _Gone(asyncio.Transport):
    """What a writer has in place of its transport."""

    def is_closing(self) -> bool:
        """Called by the writer when it is destroyed."""
        return True

    def close(self) -> None:
        """Called when the writer is closed. Does nothing: its former transport belongs to another object now."""


def _under(connection: Connection) -> asyncio.Transport:
    """What is below the streams; it both reads and writes."""
    return cast("asyncio.Transport", connection.writer.transport)


class StreamTransport(FlushingTransport):
    """The transport below an engine's streams, taken from them: what comes goes straight to an asyncio protocol.

    Streams would keep it once more and wake a task for each piece: two turns of the event loop for nothing.
    """

    __slots__ = ("_beginning", "_begun", "_held", "_protocol", "_streams")

    def __init__(self, connection: Connection, protocol: asyncio.Protocol) -> None:
        super().__init__(_under(connection))
        self._protocol = protocol
        self._streams: Connection | None = connection
        self._begun = self._held = False
        self._beginning: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Tell the protocol that the connection is made, and begin to read."""
        self._inner.pause_reading()
        self._inner.set_protocol(self._protocol)
        self._inner.set_write_buffer_limits(HIGH_WATER_BYTES)
        self._protocol.connection_made(self)
        streams = self._streams
        assert streams is not None
        streams.reader.feed_eof()  # of what the streams have: nothing is added to it now
        self._beginning = asyncio.create_task(self._begin(streams), name="gateway-upstream-begin")

    async def _begin(self, streams: Connection) -> None:
        """Deliver what came before the protocol was there, and from then on what comes."""
        early = await streams.reader.read()
        if _forget_transport(streams.writer):
            self._streams = None
        self._beginning = None
        self._begun = True
        if early and not self.is_closing():
            self._protocol.data_received(early)
        if not self._held:
            self._inner.resume_reading()

    def pause_reading(self) -> None:
        """As the inner transport's."""
        self._held = True
        super().pause_reading()

    def resume_reading(self) -> None:
        """As the inner transport's."""
        self._held = False
        if self._begun:
            super().resume_reading()
