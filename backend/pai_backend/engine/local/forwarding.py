"""Connections that a login asks for: from the task's machine (``ssh -L``, ``-W``, ``-D``), and to its client (``-R``).

Both are RFC 4254 §7, and OpenSSH's extension for sockets in the file system. asyncssh's own forwarder (2.24.1)
is not documented, and does badly where

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
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, cast

import asyncssh

from pai_backend.engine.local.accepting import TaskAcceptor

Offer = Callable[["_Arrived", str, int], Awaitable[object]]
"""Opens a channel to the client for a connection that came from an address and port. Raises ChannelOpenError."""

_NO_ADDRESS = (OverflowError, ValueError)
"""What Python makes of numbers that are no port, names that are no host's (``a..b``) and text with a zero byte."""


class Forwarder(asyncio.Protocol):
    """One end of a forwarded connection, a channel or a socket: bytes of one go to the other.

    Both are closed when both directions are over, what is written first.
    """

    def __init__(self, peer: Forwarder | None = None) -> None:
        self._transport: Any = None
        """A socket's transport or a channel, which have what is used here in common; None once it is lost."""
        self._peer = peer
        self._has_ended = False
        if peer is not None:
            peer.meet(self)

    def meet(self, peer: Forwarder) -> None:
        """The other end is there."""
        self._peer = peer

    def connection_made(self, transport: Any) -> None:
        """Called by asyncio and asyncssh."""
        self._transport = transport
        sock = transport.get_extra_info("socket") if isinstance(transport, asyncio.Transport) else None
        if sock is not None and sock.family in (socket.AF_INET, socket.AF_INET6):
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def connection_lost(self, exc: Exception | None) -> None:
        """Called by asyncio and asyncssh."""
        self.close()

    def session_started(self) -> None:
        """Called by asyncssh."""

    def data_received(self, data: bytes, datatype: asyncssh.DataType = None) -> None:
        """Called by asyncio and asyncssh."""
        if self._peer is not None:
            self._peer.write(data)

    def eof_received(self) -> bool:
        """Called by asyncio and asyncssh; whether the other direction goes on."""
        self._has_ended = True
        if self._peer is None:
            return True
        self._peer.write_eof()
        if not self._peer.has_ended:
            return True
        self.close()
        return False

    @property
    def has_ended(self) -> bool:
        """Whether nothing more comes from here."""
        return self._has_ended

    def write(self, data: bytes) -> None:
        """Called by the other end with what it has read; nothing is done with it once this end is lost."""
        if self._transport is not None and not self._transport.is_closing():
            with contextlib.suppress(OSError):  # lost in this moment
                self._transport.write(data)

    def write_eof(self) -> None:
        """Called by the other end when nothing more comes from there."""
        if self._transport is not None:
            with contextlib.suppress(OSError):
                self._transport.write_eof()

    def pause_reading(self) -> None:
        """Called by the other end when it is full."""
        if self._transport is not None:
            self._transport.pause_reading()

    def resume_reading(self) -> None:
        """Called by the other end when it has drained."""
        if self._transport is not None:
            self._transport.resume_reading()

    def pause_writing(self) -> None:
        """Called by asyncio and asyncssh when this end is full."""
        if self._peer is not None:
            self._peer.pause_reading()

    def resume_writing(self) -> None:
        """Called by asyncio and asyncssh when it has drained."""
        if self._peer is not None:
            self._peer.resume_reading()

    def close(self) -> None:
        """End both. Idempotent."""
        transport, self._transport = self._transport, None
        if transport is not None:
            transport.close()
        peer, self._peer = self._peer, None
        if peer is not None:
            peer.close()


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


class ForwardListener(asyncssh.SSHListener):
    """What the client listens with in the task; it goes with the login, and so does a socket's file."""

    def __init__(self, acceptor: TaskAcceptor, port: int = 0, path: str = "") -> None:
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
    listener = ForwardListener(TaskAcceptor(bound, lambda: _Arrived(connection, offer)), bound.getsockname()[1])
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
        return ForwardListener(TaskAcceptor(bound, lambda: _Arrived(connection, offer)), path=path)
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


async def connected_below(folder: Path, name: str) -> asyncssh.SSHUNIXSession[bytes]:
    """As :func:`connected_to_socket`, to a socket whose whole path may be longer than the 108 bytes of a socket's."""
    try:
        opened = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except OSError as error:
        raise asyncssh.ChannelOpenError(asyncssh.OPEN_CONNECT_FAILED, str(error)) from None
    try:
        short = f"/proc/self/fd/{opened}" if sys.platform == "linux" else str(folder)
        return await connected_to_socket(f"{short}/{name}")
    finally:
        os.close(opened)
