"""Connections that a login asks for: from the task's machine (``ssh -L``, ``-W``, ``-D``), and to its client (``-R``).

Both are RFC 4254 §7, and OpenSSH's extension for sockets in the file system. asyncssh's own forwarder (2.24.1) does
badly where

- the channel's data end after the socket's: both directions are over, and neither end is closed. A client that waits
  for the close, such as ``ssh -W``, waits for ever;
- a connection that came to a port of ``-R`` is lost before the client has taken it: the channel is opened all the
  same, and what the client connects it to waits for bytes that cannot come;
- the socket is lost while the channel still has much to say: each piece is a warning in the log;
- an address is invalid, or a socket's path is taken: the whole login ends, or another program loses its socket.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import os
import socket
from collections.abc import Awaitable, Callable
from typing import cast

import asyncssh
from asyncssh.forward import SSHForwarder

from pai_backend.engine.local.accepting import Acceptor

Offer = Callable[["_Arrived", str, int], Awaitable[object]]
"""Opens a channel to the client for a connection that came from an address and port. Raises ChannelOpenError."""

_NO_ADDRESS = (OverflowError, ValueError)
"""What Python makes of numbers that are no port, names that are no host's (``a..b``) and text with a zero byte."""


class Forwarder(SSHForwarder):
    """One end of a forwarded connection; both are closed when both directions are over, what is written first."""

    def eof_received(self) -> bool:
        """Called by asyncio and asyncssh; whether the other direction goes on."""
        goes_on = super().eof_received()
        if not goes_on:
            self.close()
        return goes_on

    def write(self, data: bytes) -> None:
        """Called by the other end with what it has read; nothing is done with it once this end is lost."""
        if self._transport is not None and not self._transport.is_closing():
            super().write(data)


class _Arrived(Forwarder):
    """A connection to what the client listens with. Nothing of it is read before the client has taken it."""

    def __init__(self, connection: asyncssh.SSHServerConnection, offer: Offer) -> None:
        super().__init__()
        self._connection = connection
        self._offer = offer

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Called by asyncio with the accepted socket."""
        super().connection_made(transport)
        # Not within this call: asyncio before Python 3.11.4 ignores that and reads on (gh-103607), and what the client
        # has not taken yet would be lost. The next turn is early enough: no event of the socket is handled before it.
        asyncio.get_running_loop().call_soon(cast("asyncio.Transport", transport).pause_reading)
        self._connection.create_task(self._hand_on(*(transport.get_extra_info("peername") or ("", 0))[:2]))

    def other_end(self) -> Forwarder:
        """Called when the client has taken it: what the channel gives its messages to."""
        return Forwarder(self)

    async def _hand_on(self, host: str, port: int) -> None:
        try:
            await self._offer(self, host, port)
        except asyncssh.ChannelOpenError:
            self.close()  # the client is gone
        else:
            self.resume_reading()


class Listener(asyncssh.SSHListener):
    """What the client listens with in the task; it goes with the login, and so does a socket's file."""

    def __init__(self, acceptor: Acceptor, port: int = 0, path: str = "") -> None:
        super().__init__()
        self._acceptor = acceptor
        self._port = port
        self._path = path
        self._file = os.stat(path).st_ino if path else 0

    def get_port(self) -> int:
        """Called by asyncssh to tell the client a port that the system has chosen."""
        return self._port

    def close(self) -> None:
        """Stop accepting connections; those that are open go on. Idempotent."""
        self._acceptor.close()
        path, self._path = self._path, ""
        if path:
            with contextlib.suppress(OSError):  # it has been moved away
                if os.stat(path).st_ino == self._file:
                    os.unlink(path)

    async def wait_closed(self) -> None:
        """Return when it is closed, and every connection that came in time is on its way to the client."""
        await self._acceptor.wait_closed()


async def listening_on(
    connection: asyncssh.SSHServerConnection, address: str, port: int, asked: str
) -> asyncssh.SSHListener:
    """Listen for the client on a port of the task's machine; 0 is any that is free.

    ``asked`` is how the client called the address, and is told again with each connection.
    Raises OSError when the port is not available, or is invalid.
    """

    async def offer(arrived: _Arrived, host: str, origin: int) -> None:
        end = cast("Callable[[], asyncssh.SSHTCPSession[bytes]]", arrived.other_end)
        await connection.create_connection(end, asked, listener.get_port(), host, origin)

    try:
        bound = socket.create_server((address, port))
    except _NO_ADDRESS as error:
        raise OSError(errno.EADDRNOTAVAIL, str(error)) from None
    listener = Listener(Acceptor(bound, lambda: _Arrived(connection, offer)), bound.getsockname()[1])
    return listener


async def listening_on_socket(connection: asyncssh.SSHServerConnection, path: str) -> asyncssh.SSHListener:
    """Listen for the client on a socket in the file system. Raises OSError when it cannot be made.

    A file that is there stays: asyncio would take its place, also that of a socket which another program listens on.
    """

    async def offer(arrived: _Arrived, host: str, origin: int) -> None:
        end = cast("Callable[[], asyncssh.SSHUNIXSession[bytes]]", arrived.other_end)
        await connection.create_unix_connection(end, path)

    bound = socket.socket(socket.AF_UNIX)
    try:
        bound.bind(path)
        return Listener(Acceptor(bound, lambda: _Arrived(connection, offer)), path=path)
    except _NO_ADDRESS as error:
        bound.close()
        raise OSError(errno.EADDRNOTAVAIL, str(error)) from None
    except OSError:
        bound.close()
        raise


async def connected_to(host: str, port: int) -> asyncssh.SSHTCPSession[bytes]:
    """A connection to a port. Raises ChannelOpenError with the system's word."""
    try:
        _, peer = await asyncio.get_running_loop().create_connection(Forwarder, host, port)
    except (OSError, *_NO_ADDRESS) as error:
        raise asyncssh.ChannelOpenError(asyncssh.OPEN_CONNECT_FAILED, str(error)) from None
    return cast("asyncssh.SSHTCPSession[bytes]", Forwarder(peer))


async def connected_to_socket(path: str) -> asyncssh.SSHUNIXSession[bytes]:
    """A connection to a socket in the file system. Raises ChannelOpenError with the system's word."""
    try:
        _, peer = await asyncio.get_running_loop().create_unix_connection(Forwarder, path)
    except (OSError, *_NO_ADDRESS) as error:
        raise asyncssh.ChannelOpenError(asyncssh.OPEN_CONNECT_FAILED, str(error)) from None
    return cast("asyncssh.SSHUNIXSession[bytes]", Forwarder(peer))
