"""Jump mode: a forwarded connection that is the raw stream to a task's SSH server.

The client's own SSH runs through it to the task, so the gateway sees ciphertext only. What the gateway decides
is whether there is a stream at all: a login with limits gets none, for limits cannot be kept there.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import asyncssh

from pai_backend.access.gateway.activity import Activity
from pai_backend.access.gateway.transport import StreamTransport
from pai_backend.engine.base import Connection


class Pipe(asyncssh.SSHTCPSession[bytes]):
    """The client's end, and below it the task's as :class:`_Far`. Each holds the other back when it is full.

    ``gone`` is called once when the channel is.
    """

    def __init__(self, connection: Connection, activity: Activity, gone: Callable[[], None]) -> None:
        self._activity, self._gone = activity, gone
        self._channel: asyncssh.SSHTCPChannel[bytes] | None = None
        self._task_end = StreamTransport(connection, _Far(self))

    def connection_made(self, chan: asyncssh.SSHTCPChannel[bytes]) -> None:
        """Called by asyncssh when the client has been told that the connection stands."""
        self._channel = chan

    def session_started(self) -> None:
        """Called by asyncssh when data may flow."""
        self._task_end.start()

    def data_received(self, data: bytes, datatype: asyncssh.DataType) -> None:
        """Called by asyncssh with bytes of the client."""
        self._activity.bytes_in += len(data)
        self._activity.uses += 1
        self._task_end.write(data)

    def eof_received(self) -> bool:
        """Called by asyncssh when the client sends no more: its own SSH has ended, and half a connection is of no use.

        What it has not taken yet is dropped, for a client that was killed takes nothing and would never be gone.
        """
        self._task_end.close()
        if self._channel is not None:
            self._channel.abort()
        return False

    def connection_lost(self, exc: Exception | None) -> None:
        """Called by asyncssh when the channel is gone."""
        self._channel = None
        self._task_end.close()
        self._gone()

    def pause_writing(self) -> None:
        """Called by asyncssh when the client takes no more."""
        self._task_end.pause_reading()

    def resume_writing(self) -> None:
        """Called by asyncssh when it takes again."""
        self._task_end.resume_reading()

    def from_task(self, data: bytes) -> None:
        """Bytes of the task."""
        if self._channel is not None:
            self._activity.bytes_out += len(data)
            self._activity.uses += 1
            self._channel.write(data)

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


class _Far(asyncio.Protocol):
    """asyncio's callbacks for the task's end."""

    def __init__(self, pipe: Pipe) -> None:
        self._pipe = pipe

    def data_received(self, data: bytes) -> None:
        self._pipe.from_task(data)

    def connection_lost(self, exc: Exception | None) -> None:
        self._pipe.task_gone()

    def pause_writing(self) -> None:
        self._pipe.hold_client(hold=True)

    def resume_writing(self) -> None:
        self._pipe.hold_client(hold=False)
