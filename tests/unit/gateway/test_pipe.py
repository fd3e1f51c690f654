"""A jump's way down: data in packets of the client's size, within its window, in their order."""

from __future__ import annotations

import asyncio
import inspect
import os
from typing import Any, cast

import pytest
from asyncssh.channel import SSHChannel
from asyncssh.connection import SSHConnection
from asyncssh.constants import MSG_CHANNEL_DATA
from asyncssh.packet import SSHPacket

from pai_backend.access.gateway.activity import LoginActivity
from pai_backend.access.gateway.joined.front import JoinedClient
from pai_backend.access.gateway.joined.pipe import OUTLET_BYTES, JumpChannel, Pipe, jump_channel
from pai_backend.access.gateway.transport import FlushingTransport
from tests.unit.gateway.test_lean import front

pytestmark = pytest.mark.asyncio

WINDOW, PACKET = 100_000, 32_768


class Sent:
    """What a channel has sent, by its messages."""

    def __init__(self, leg: JoinedClient) -> None:
        self.pieces: list[bytes] = []
        setattr(leg, "send_packet", self._note)  # noqa: B010 - what goes on the wire is asyncssh's and packets'

    def _note(self, kind: int, *args: bytes, handler: object = None) -> None:
        packet = SSHPacket(b"".join(args))
        assert (kind, packet.get_uint32()) == (MSG_CHANNEL_DATA, 7)
        self.pieces.append(packet.get_string())
        packet.check_end()


async def open_channel() -> tuple[JumpChannel, Sent]:
    """A channel that the client has opened as its number 7."""
    leg = await front()
    leg._transport = asyncio.Transport()
    channel = jump_channel(leg)
    channel._send_chan, channel._send_window, channel._send_pktsize = 7, WINDOW, PACKET
    channel._send_state = channel._recv_state = "open"
    channel._session = cast("Any", Taking())
    return channel, Sent(leg)


class Taking:
    """A session that notes when it is to hold back."""

    def __init__(self) -> None:
        self.held = False

    def pause_writing(self) -> None:
        self.held = True

    def resume_writing(self) -> None:
        self.held = False


def widen(channel: JumpChannel, more: int) -> None:
    channel._process_window_adjust(0, 0, SSHPacket(more.to_bytes(4, "big")))


@pytest.mark.parametrize("size", [1, PACKET, PACKET + 1, WINDOW])
async def test_what_the_window_has_room_for_leaves_at_once(size: int) -> None:
    channel, sent = await open_channel()
    data = os.urandom(size)
    channel.write(data)
    assert b"".join(sent.pieces) == data
    assert max(map(len, sent.pieces)) <= PACKET
    assert len(sent.pieces) == -(-size // PACKET)
    assert channel._send_window == WINDOW - size


async def test_what_it_has_none_for_waits_and_comes_in_order() -> None:
    channel, sent = await open_channel()
    session = cast("Taking", channel._session)
    data = os.urandom(3 * WINDOW)
    channel.write(data[: 2 * WINDOW])
    channel.write(data[2 * WINDOW :])
    assert b"".join(sent.pieces) == data[:WINDOW]
    assert session.held
    widen(channel, WINDOW)
    assert b"".join(sent.pieces) == data[: 2 * WINDOW]
    channel.write(b"later")
    widen(channel, 2 * WINDOW)
    assert b"".join(sent.pieces) == data + b"later"
    assert not session.held
    channel.write(b"at once")
    assert sent.pieces[-1] == b"at once"


async def test_nothing_is_written_to_a_channel_that_is_closing() -> None:
    channel, sent = await open_channel()
    channel._send_state = "close_pending"
    with pytest.raises(BrokenPipeError):
        channel.write(b"too late")
    assert sent.pieces == []


async def test_the_undocumented_parts_of_asyncssh_are_as_the_pipe_needs_them() -> None:
    """One place that fails when a new asyncssh keeps a channel's window in another way."""
    source = inspect.getsource(SSHChannel._flush_send_buf)
    assert "pktsize = min(self._send_window, self._send_pktsize)" in source
    assert "self._send_window -= len(data)" in source
    assert "self.send_packet(MSG_CHANNEL_DATA, String(data))" in source
    assert "payload = UInt32(self._send_chan) + b''.join(args)" in inspect.getsource(SSHChannel.send_packet)
    assert "if self._send_state != 'open':" in inspect.getsource(SSHChannel.write)
    assert list(inspect.signature(SSHChannel.write).parameters) == ["self", "data", "datatype"]
    opened = inspect.getsource(SSHConnection._process_channel_open)
    assert "if send_pktsize <= 0:\n            raise ProtocolError" in opened, "pieces of nothing would never end"
    made = list(inspect.signature(SSHChannel.__init__).parameters)
    assert made == ["self", "conn", "loop", "encoding", "errors", "window", "max_pktsize"]


class _Outlet(asyncio.Transport):
    """A connection that takes nothing until it is told to."""

    def __init__(self) -> None:
        super().__init__()
        self.unsent = 0

    def get_write_buffer_size(self) -> int:
        return self.unsent

    def is_closing(self) -> bool:
        return False

    def write(self, data: object) -> None:
        """Of what is written the test says how much is unsent."""


class _Jump:
    """A task's end that notes whether it is read."""

    def __init__(self) -> None:
        self.held = False

    def pause_reading(self) -> None:
        self.held = True

    def resume_reading(self) -> None:
        self.held = False


async def test_a_task_is_not_read_while_its_client_takes_nothing_whatever_window_it_offers() -> None:
    channel, _ = await open_channel()
    channel._send_window = 1 << 31
    leg, jump, outlet = cast("JoinedClient", channel._conn), _Jump(), _Outlet()
    pipe = Pipe(cast("Any", jump), LoginActivity(), lambda: None)
    pipe._channel, pipe._outlet = channel, cast("Any", FlushingTransport(outlet))
    pipe.from_task(b"x")
    assert not jump.held
    outlet.unsent = OUTLET_BYTES + 1
    pipe.from_task(b"x")
    assert jump.held
    pipe.pause_writing()
    outlet.unsent = 0
    leg._transport = None  # the stand-in cannot be read again
    leg.resume_writing()
    assert jump.held, "the window is used up, too"
    pipe.resume_writing()
    assert not jump.held
