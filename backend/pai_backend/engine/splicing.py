"""A connection of asyncio's whose bytes go through a pair of sockets, to a library that wants a socket of its own.

That is how asyncssh serves, and logs in over, any byte stream by what it documents. It copies everything once more.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections.abc import Callable
from typing import TYPE_CHECKING, cast

if TYPE_CHECKING:
    from pai_backend.engine.base import Connection  # models would double the memory of the agent

Serve = Callable[[socket.socket, asyncio.BaseTransport], object]
"""Called with the socket that is the library's, and the connection that its bytes come from."""


class _End(asyncio.Protocol):
    """One of two connections that are each other's."""

    def __init__(self) -> None:
        self.transport: asyncio.Transport | None = None
        self.other: _End | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Called by asyncio."""
        self.transport = cast("asyncio.Transport", transport)

    def data_received(self, data: bytes) -> None:
        """Called by asyncio; nothing is read before the other end stands."""
        if self.other is not None and self.other.transport is not None:
            self.other.transport.write(data)

    def eof_received(self) -> bool:
        """Called by asyncio: SSH has no half of a connection."""
        return False

    def connection_lost(self, exc: Exception | None) -> None:
        """Called by asyncio: the other end closes behind what was written to it."""
        self.transport = None
        other, self.other = self.other, None
        if other is not None and other.transport is not None:
            other.transport.close()

    def pause_writing(self) -> None:
        """Called by asyncio when this end holds enough: the other one is not read."""
        if self.other is not None and self.other.transport is not None:
            self.other.transport.pause_reading()

    def resume_writing(self) -> None:
        """Called by asyncio when it has drained."""
        if self.other is not None and self.other.transport is not None:
            self.other.transport.resume_reading()


class Spliced(_End):
    """The protocol of a connection that is served through a pair of sockets."""

    _joining: asyncio.Task[None] | None = None

    def __init__(self, serve: Serve) -> None:
        super().__init__()
        self._serve = serve

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Called by asyncio; nothing is read before the other end stands."""
        super().connection_made(transport)
        # Not within this call: asyncio before Python 3.11.4 ignores that and reads on (gh-103607). What is read
        # before the other end stands is lost.
        asyncio.get_running_loop().call_soon(cast("asyncio.Transport", transport).pause_reading)
        self._joining = asyncio.create_task(self._join(), name="splice")

    async def _join(self) -> None:
        near, far = socket_pair()
        other = _End()
        inner, _ = await asyncio.get_running_loop().create_connection(lambda: other, sock=near)
        if self.transport is None:  # lost meanwhile
            inner.close()
            far.close()
            return
        self.other, other.other = other, self
        self._serve(far, self.transport)
        self.transport.resume_reading()


def socket_pair() -> tuple[socket.socket, socket.socket]:
    """Two sockets of one connection, for asyncio."""
    pair = socket.socketpair()
    for end in pair:
        end.setblocking(False)
    return pair


async def spliced(connection: Connection) -> socket.socket:
    """The socket whose bytes are those of an engine's streams."""
    near, far = socket_pair()
    reader, writer = await asyncio.open_connection(sock=near)
    copies = [
        asyncio.create_task(_copy(connection.reader, writer), name="splice-in"),
        asyncio.create_task(_copy(reader, connection.writer), name="splice-out"),
    ]
    for copy in copies:
        _copies.add(copy)
        copy.add_done_callback(_copies.discard)
    return far


_copies: set[asyncio.Task[None]] = set()
"""asyncio itself keeps no task."""


async def _copy(source: asyncio.StreamReader, target: asyncio.StreamWriter) -> None:
    """Copy to the end, and close."""
    with contextlib.closing(target), contextlib.suppress(OSError):  # one of the two is lost
        while data := await source.read(1 << 16):
            target.write(data)
            await target.drain()
