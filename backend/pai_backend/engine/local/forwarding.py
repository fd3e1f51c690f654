"""Connections that a login asks for from the task's machine (RFC 4254 §7.2; OpenSSH's direct-streamlocal).

asyncssh's own forwarder (2.24.1) never ends a connection whose server closes before the client does: both directions
are over then, and neither end is closed. A client such as ``ssh -W`` waits for ever.
"""

from __future__ import annotations

import asyncio
from typing import cast

import asyncssh
from asyncssh.forward import SSHForwarder


class Forwarder(SSHForwarder):
    """One end of a forwarded connection; both are closed when both directions are over, what is written first."""

    def eof_received(self) -> bool:
        """Called by asyncio and asyncssh; whether the other direction goes on."""
        goes_on = super().eof_received()
        if not goes_on:
            self.close()
        return goes_on


async def connected_to(host: str, port: int) -> asyncssh.SSHTCPSession[bytes]:
    """A connection to a port. Raises ChannelOpenError with the system's word."""
    try:
        _, peer = await asyncio.get_running_loop().create_connection(Forwarder, host, port)
    except OSError as error:
        raise asyncssh.ChannelOpenError(asyncssh.OPEN_CONNECT_FAILED, str(error)) from None
    return cast("asyncssh.SSHTCPSession[bytes]", Forwarder(peer))


async def connected_to_socket(path: str) -> asyncssh.SSHUNIXSession[bytes]:
    """A connection to a socket in the file system. Raises ChannelOpenError with the system's word."""
    try:
        _, peer = await asyncio.get_running_loop().create_unix_connection(Forwarder, path)
    except OSError as error:
        raise asyncssh.ChannelOpenError(asyncssh.OPEN_CONNECT_FAILED, str(error)) from None
    return cast("asyncssh.SSHUNIXSession[bytes]", Forwarder(peer))
