"""Channels of SSH on which a test sends message by message what no client would."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path

import asyncssh
from asyncssh.channel import SSHClientChannel
from asyncssh.constants import MSG_CHANNEL_DATA
from asyncssh.packet import String, UInt32

from tests.support.ssh_world import LIMIT_S

INIT = String(b"\x01" + UInt32(3))
"""What an SFTP client says first (draft-ietf-secsh-filexfer-02, section 4)."""


class Heard(asyncssh.SSHClientSession[bytes]):
    """Keeps what the other side says on a channel."""

    def __init__(self) -> None:
        self.said = b""

    def data_received(self, data: bytes, datatype: asyncssh.DataType) -> None:
        """As the library says."""
        self.said += data


def _unopened(conn: asyncssh.SSHClientConnection) -> SSHClientChannel[bytes]:
    return SSHClientChannel(conn, asyncio.get_running_loop(), "strict", None, "strict", 1 << 21, 1 << 15)


async def new_channel(conn: asyncssh.SSHClientConnection) -> tuple[SSHClientChannel[bytes], Heard]:
    """A session channel on which nothing was asked for."""
    channel = _unopened(conn)
    heard = Heard()
    await channel._open(b"session")
    channel._session = heard
    await channel._start_reading()
    return channel, heard


async def asks(channel: SSHClientChannel[bytes], name: bytes, *args: bytes) -> bool:
    """Send a request (RFC 4254, section 5.4); gives whether it was granted."""
    async with asyncio.timeout(LIMIT_S):
        return bool(await channel._make_request(name, *args))


def send(channel: SSHClientChannel[bytes], data: bytes) -> None:
    """Send data, whatever was asked for."""
    channel.send_packet(MSG_CHANNEL_DATA, String(data))


def answers_in(heard: Heard, count: int) -> Callable[[], bool]:
    """Whether so many whole SFTP answers have come."""

    def there() -> bool:
        rest, seen = heard.said, 0
        while len(rest) >= 4 and len(rest) >= 4 + int.from_bytes(rest[:4], "big"):
            rest, seen = rest[4 + int.from_bytes(rest[:4], "big") :], seen + 1
        return seen >= count

    return there


def make_directory(path: Path, number: int = 1) -> bytes:
    """The SFTP packet that makes a directory."""
    return String(b"\x0e" + UInt32(number) + String(str(path)) + UInt32(0))
