"""Jump mode, the client's end: a forwarded connection that is the raw stream to an SSH server of the task.

The client's own SSH runs through it to the task, so the gateway sees ciphertext only. What the gateway decides
is whether there is a stream at all: a login with limits gets none, for limits cannot be kept there. ``jump`` is the
task's end.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import cast

import asyncssh

from pai_backend.access.gateway.activity import LoginActivity
from pai_backend.access.gateway.joined.relay import Leg
from pai_backend.access.gateway.jump import TaskJump
from pai_backend.access.gateway.transport import FlushingTransport, gathered
from pai_backend.engine.ssh_wire import MSG_CHANNEL_DATA, uint32

WINDOW_BYTES, PACKET_BYTES = 1 << 21, 1 << 15  # what OpenSSH offers for such a channel
OUTLET_BYTES = 1 << 20
"""More is not kept for a client that does not take it, whatever window it offers."""


class JumpChannel(asyncssh.SSHTCPChannel[bytes]):
    """The client's channel, whose data leave in as few steps as those of a joined leg."""

    def write(self, data: bytes, datatype: asyncssh.DataType = None) -> None:
        """Send what the client's window has room for, straight from ``data``; asyncssh keeps what it has none for."""
        rest = memoryview(data)
        if not self._send_buf and self._send_state == "open" and self._conn is not None:
            head = uint32(self._send_chan or 0)
            while rest and self._send_window:
                piece = rest[: min(self._send_window, self._send_pktsize)]
                rest = rest[len(piece) :]
                self._send_window -= len(piece)
                self._conn.send_packet(MSG_CHANNEL_DATA, head, uint32(len(piece)), cast("bytes", piece))
        if rest:
            super().write(bytes(rest), datatype)


def jump_channel(conn: asyncssh.SSHServerConnection) -> JumpChannel:
    """A channel of a client's connection."""
    return JumpChannel(conn, conn._loop, None, "strict", WINDOW_BYTES, PACKET_BYTES)


class Pipe(asyncssh.SSHTCPSession[bytes]):
    """The client's end of a jump. Each end holds the other back when it is full.

    ``gone`` is called once when the channel is.
    """

    def __init__(self, task: TaskJump, activity: LoginActivity, gone: Callable[[], None]) -> None:
        self._activity, self._gone = activity, gone
        self._channel: asyncssh.SSHTCPChannel[bytes] | None = None
        self._outlet: FlushingTransport | None = None
        self._task = task
        self._is_full = self._waits = False
        """Whether the channel is full, and whether the connection is."""

    def connection_made(self, chan: asyncssh.SSHTCPChannel[bytes]) -> None:
        """Called by asyncssh when the client has been told that the connection stands."""
        self._channel, self._outlet = chan, cast("Leg", chan.get_connection()).outlet

    def session_started(self) -> None:
        """Called by asyncssh when data may flow."""
        self._task.start(self)

    def data_received(self, data: bytes, datatype: asyncssh.DataType) -> None:
        """Called by asyncssh with bytes of the client."""
        self._activity.bytes_in += len(data)
        self._activity.uses += 1
        self._task.write(data)

    def eof_received(self) -> bool:
        """Called by asyncssh at the client's end of file: its own SSH has ended, and half a connection is useless.

        Bytes that it has not read yet are dropped: a client that was killed reads nothing and would never be closed.
        """
        self._task.close()
        if self._channel is not None:
            self._channel.abort()
        return False

    def connection_lost(self, exc: Exception | None) -> None:
        """Called by asyncssh when the channel is gone."""
        self._channel = self._outlet = None
        self._task.close()
        self._gone()

    def pause_writing(self) -> None:
        """Called by asyncssh when the client's window is used up."""
        self._is_full = True
        self._task.pause_reading()

    def resume_writing(self) -> None:
        """Called by asyncssh when the client takes again."""
        self._is_full = False
        self._go_on()

    def _wait(self) -> None:
        """Read nothing more of the task before what is written has left."""
        if not self._waits and self._channel is not None:
            self._waits = True
            self._task.pause_reading()
            cast("Leg", self._channel.get_connection()).drained.append(self._drained)

    def _drained(self) -> None:
        self._waits = False
        self._go_on()

    def _go_on(self) -> None:
        if not (self._is_full or self._waits):
            self._task.resume_reading()

    def from_task(self, data: bytes) -> None:
        """Bytes of the task."""
        if self._channel is not None and self._outlet is not None:
            self._activity.bytes_out += len(data)
            self._activity.uses += 1
            with gathered(self._outlet):
                self._channel.write(data)
            if self._outlet.get_write_buffer_size() > OUTLET_BYTES:
                self._wait()

    def task_gone(self) -> None:
        """The task's end has closed: so does the client's, behind what was written."""
        if self._channel is not None:
            self._channel.close()

    def hold_client(self, *, hold: bool) -> None:
        """Read nothing more of the client, or go on."""
        if self._channel is not None:
            if hold:
                self._channel.pause_reading()
            else:
                self._channel.resume_reading()
