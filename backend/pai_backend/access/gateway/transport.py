"""Byte transports below the two legs of a login.

asyncssh ends a connection with ``abort``, which would throw away what is still in the write buffer: the
last output of a command, or the reason of a disconnect. Both transports here flush first, for a bounded time.

asyncssh also writes every message by itself, and an empty one before each. What is written in one turn of
the event loop leaves in one piece here: for bulk data that is one system call instead of sixteen.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import Any

from pai_backend.engine.base import Connection

FLUSH_S = 5.0  # how long a closed connection may take to deliver what was already written
READ_BYTES = 1 << 18
PIECE_BYTES = 1 << 18  # written at once at most
HIGH_WATER_BYTES = 1 << 17

log = logging.getLogger(__name__)


def close_flushed(transport: asyncio.WriteTransport) -> None:
    """Close after everything written has left, but at the latest in ``FLUSH_S``. Idempotent."""
    if transport.is_closing():
        return
    unsent = transport.get_write_buffer_size()
    transport.close()
    if unsent:
        asyncio.get_running_loop().call_later(FLUSH_S, _give_up, transport)


def _give_up(transport: asyncio.WriteTransport) -> None:
    """Abort what is still unsent; a transport that has closed has nothing unsent (and must not be aborted)."""
    if transport.get_write_buffer_size():
        transport.abort()


class _Outbox:
    """Collects what is written in one turn of the event loop and hands it on in one piece."""

    def __init__(self, hand_on: Callable[[bytes], None]) -> None:
        self._hand_on = hand_on
        self._pieces: list[bytes | bytearray | memoryview] = []
        self.size = 0
        """Bytes not handed on yet."""

    def put(self, data: bytes | bytearray | memoryview) -> None:
        """Take a piece; it leaves at the end of this turn, or at once when there is much."""
        if not self._pieces:
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

    def __init__(self, inner: asyncio.Transport) -> None:
        super().__init__()
        self._inner = inner
        self._outbox = _Outbox(inner.write)

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        """As the inner transport's."""
        return self._inner.get_extra_info(name, default)

    def write(self, data: bytes | bytearray | memoryview) -> None:
        """As the inner transport's; after closing, data is dropped without asyncio's warnings."""
        if not self._inner.is_closing():
            self._outbox.put(data)

    def get_write_buffer_size(self) -> int:
        """Bytes written that have not left yet."""
        return self._outbox.size + self._inner.get_write_buffer_size()

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
        """Close, flushing for at most ``FLUSH_S``. Idempotent."""
        if not self._inner.is_closing():
            self._outbox.flush()
            close_flushed(self._inner)

    def abort(self) -> None:
        """The same as ``close``: see the module."""
        self.close()


class StreamTransport(asyncio.Transport):
    """The streams of an engine's connection as a transport below an asyncio protocol.

    ``pause_writing`` and ``resume_writing`` of the protocol follow the stream's own buffer.
    """

    def __init__(self, connection: Connection, protocol: asyncio.Protocol) -> None:
        super().__init__()
        self._reader, self._writer = connection.reader, connection.writer
        self._outbox = _Outbox(self._hand_on)
        self._protocol = protocol
        self._flowing = asyncio.Event()
        self._flowing.set()
        self._pump: asyncio.Task[None] | None = None
        self._drain: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Tell the protocol that the connection is made, and begin to read."""
        self._protocol.connection_made(self)
        self._pump = asyncio.create_task(self._read(), name="gateway-upstream-read")

    async def _read(self) -> None:
        lost: OSError | None = None
        try:
            while True:
                await self._flowing.wait()
                data = await self._reader.read(READ_BYTES)
                if not data:
                    break
                self._protocol.data_received(data)
        except OSError as exc:
            lost = exc
        self._protocol.connection_lost(lost)

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        """As the stream's; names that only sockets have give ``default`` when it is none."""
        return self._writer.get_extra_info(name, default)

    def write(self, data: bytes | bytearray | memoryview) -> None:
        """Queue bytes; above the high-water mark the protocol is paused until the stream has drained."""
        if not self._writer.is_closing():
            self._outbox.put(data)

    def _hand_on(self, data: bytes) -> None:
        if self._writer.is_closing():
            return
        self._writer.write(data)
        if self._drain is None and self._writer.transport.get_write_buffer_size() > HIGH_WATER_BYTES:
            self._protocol.pause_writing()
            self._drain = asyncio.create_task(self._drained(), name="gateway-upstream-drain")

    async def _drained(self) -> None:
        try:
            await self._writer.drain()
        except OSError as exc:
            log.debug("a stream ended while it was drained: %s", exc)  # the reading side reports the loss
        finally:
            self._drain = None
            self._protocol.resume_writing()

    def get_write_buffer_size(self) -> int:
        """Bytes written that have not left yet."""
        return self._outbox.size + self._writer.transport.get_write_buffer_size()

    def pause_reading(self) -> None:
        """Read nothing more until ``resume_reading``; the stream's own limit then holds the sender back."""
        self._flowing.clear()

    def resume_reading(self) -> None:
        """Go on reading. Idempotent."""
        self._flowing.set()

    def is_closing(self) -> bool:
        """Whether it was closed."""
        return self._writer.is_closing()

    def close(self) -> None:
        """Stop reading and close, flushing for at most ``FLUSH_S``."""
        if self._pump is not None:
            self._pump.cancel()
        self._outbox.flush()
        close_flushed(self._writer.transport)

    def abort(self) -> None:
        """The same as ``close``: see the module."""
        self.close()
