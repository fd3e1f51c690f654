"""Byte transports below the two legs of a login.

asyncssh ends a connection with ``abort``, which would throw away what is still in the write buffer: the
last output of a command, or the reason of a disconnect. Both transports here flush first, for a bounded time.
"""

from __future__ import annotations

import asyncio
import logging
from typing import Any

from pai_backend.engine.base import Connection

FLUSH_S = 5.0  # how long a closed connection may take to deliver what was already written
READ_BYTES = 1 << 16
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


class FlushingTransport(asyncio.Transport):
    """A socket transport whose ``abort`` still delivers what was written."""

    def __init__(self, inner: asyncio.Transport) -> None:
        super().__init__()
        self._inner = inner

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        """As the inner transport's."""
        return self._inner.get_extra_info(name, default)

    def write(self, data: bytes | bytearray | memoryview) -> None:
        """As the inner transport's; after closing, data is dropped without asyncio's warnings."""
        if not self._inner.is_closing():
            self._inner.write(data)

    def get_write_buffer_size(self) -> int:
        """Bytes written that have not left yet."""
        return self._inner.get_write_buffer_size()

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
        """Close, flushing for at most ``FLUSH_S``."""
        close_flushed(self._inner)

    def abort(self) -> None:
        """The same as ``close``: see the module."""
        close_flushed(self._inner)


class StreamTransport(asyncio.Transport):
    """The streams of an engine's connection as a transport below an asyncio protocol.

    ``pause_writing`` and ``resume_writing`` of the protocol follow the stream's own buffer.
    """

    def __init__(self, connection: Connection, protocol: asyncio.Protocol) -> None:
        super().__init__()
        self._reader, self._writer = connection.reader, connection.writer
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
        if self._writer.is_closing():
            return
        self._writer.write(data)
        if self._drain is None and self.get_write_buffer_size() > HIGH_WATER_BYTES:
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
        return self._writer.transport.get_write_buffer_size()

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
        close_flushed(self._writer.transport)

    def abort(self) -> None:
        """The same as ``close``: see the module."""
        self.close()
