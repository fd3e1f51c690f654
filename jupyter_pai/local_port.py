"""A port of this machine whose connections go on to somewhere else, byte for byte and half-closed as their ends are."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable
from typing import Protocol

from jupyter_pai.errors import ClientError

READ_BYTES = 65_536
RETRY_S = 1.0
"""Between two tries to reach a task that does not run yet."""
WAIT_S = 60.0
"""How long a new connection is kept waiting for the other side, before it is closed."""


class ByteSource(Protocol):
    """What is read from."""

    async def read(self, n: int = -1, /) -> bytes:
        """Some bytes; none at the end."""
        ...


class ByteSink(Protocol):
    """What is written to."""

    def write(self, data: bytes, /) -> None:
        """Take bytes."""
        ...

    async def drain(self) -> None:
        """Return when more bytes may come."""
        ...

    def write_eof(self) -> None:
        """End this direction; the other one stays open."""
        ...

    def close(self) -> None:
        """End both directions."""
        ...


Open = Callable[[], Awaitable[tuple[ByteSource, ByteSink]]]
"""Opens the other side of a connection. Raises ClientError (tried again when it is a ``passing`` one) and OSError."""


class LocalPort:
    """Listens at an address of this machine; every connection there gets the other side that ``opened`` gives.

    While ``opened`` raises an error of the class ``passing`` the connection waits, at most ``WAIT_S``. ``said`` is told
    why something does not work, the same words once.
    """

    def __init__(
        self, opened: Open, said: Callable[[str], None], *, passing: type[ClientError], wait_s: float = WAIT_S
    ) -> None:
        self._open, self._say, self._passing, self._wait_s = opened, said, passing, wait_s
        self._said = ""
        self._connections: set[asyncio.Task[None]] = set()
        self._server: asyncio.Server | None = None

    async def listen(self, host: str, port: int) -> tuple[str, int]:
        """Begin; returns address and port. Port 0 is any that is free. Raises OSError."""
        self._server = await asyncio.start_server(self._accept, host, port)
        address = self._server.sockets[0].getsockname()
        return str(address[0]), int(address[1])

    async def aclose(self) -> None:
        """Stop listening and end all connections."""
        if self._server is not None:
            self._server.close()
        for connection in list(self._connections):
            connection.cancel()
        await asyncio.gather(*self._connections, return_exceptions=True)

    def tell(self, text: str) -> None:
        """Say something unless it was the last thing said."""
        if text != self._said:
            self._said = text
            self._say(text)

    async def opened(self) -> tuple[ByteSource, ByteSink]:
        """The other side, waited for. Raises ClientError, OSError."""
        loop = asyncio.get_running_loop()
        end = loop.time() + self._wait_s
        while True:
            try:
                found = await self._open()
            except self._passing as error:
                self.tell(error.message)
                if loop.time() >= end:
                    raise
                await asyncio.sleep(RETRY_S)
            else:
                self._said = ""
                return found

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        connection = asyncio.current_task()
        assert connection is not None
        self._connections.add(connection)
        connection.add_done_callback(self._connections.discard)
        try:
            there = await self.opened()
        except ClientError as error:
            self.tell(error.message)
            writer.transport.abort()
        except OSError as error:
            self.tell(str(error))
            writer.transport.abort()
        except asyncio.CancelledError:
            writer.transport.abort()
        else:
            with contextlib.suppress(asyncio.CancelledError):  # :meth:`aclose`; a server's callback ends quietly
                await splice((reader, writer), there)


async def splice(one: tuple[ByteSource, ByteSink], other: tuple[ByteSource, ByteSink]) -> None:
    """Pass bytes both ways until both have ended or one side is gone, then close both."""
    ways = [asyncio.ensure_future(_pass(one[0], other[1])), asyncio.ensure_future(_pass(other[0], one[1]))]
    try:
        await asyncio.wait(ways, return_when=asyncio.FIRST_EXCEPTION)
    finally:
        for way in ways:
            way.cancel()
        await asyncio.gather(*ways, return_exceptions=True)
        one[1].close()
        other[1].close()


async def _pass(reader: ByteSource, writer: ByteSink) -> None:
    """Pass bytes on until the reader ends, then say so. An end that breaks ends the other way, too."""
    while data := await reader.read(READ_BYTES):
        writer.write(data)
        await writer.drain()
    writer.write_eof()
