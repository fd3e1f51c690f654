"""Jump mode, the task's end: a channel of the gateway's own login, to a server for one key (``engine.jumps``)."""

from __future__ import annotations

from typing import Protocol

import asyncssh

from pai_backend.access.gateway.legs import TaskLeg
from pai_backend.engine.jumps import JUMP_SOCKET

WINDOW_BYTES = 1 << 21  # as at the client's end


class JumpClient(Protocol):
    """The client's end."""

    def from_task(self, data: bytes) -> None:
        """Bytes of the task."""
        ...

    def task_gone(self) -> None:
        """The task's end has closed."""
        ...

    def hold_client(self, *, hold: bool) -> None:
        """Read nothing more of the client, or go on."""
        ...


class TaskJump(asyncssh.SSHUNIXSession[bytes]):
    """The channel, and the login to the task that it alone uses: both end together.

    Nothing is read before ``start``.
    """

    def __init__(self) -> None:
        self._back: TaskLeg | None = None
        self._channel: asyncssh.SSHUNIXChannel[bytes] | None = None
        self._client: JumpClient | None = None
        self._is_lost = False

    async def begin(self, back: TaskLeg, public_key: str) -> None:
        """Open the channel on a login to the task. Raises asyncssh.Error."""
        self._back = back
        await back.connection.create_unix_connection(lambda: self, JUMP_SOCKET, encoding=None, window=WINDOW_BYTES)
        self.write(f"{public_key}\n".encode("ascii"))

    def connection_made(self, chan: asyncssh.SSHUNIXChannel[bytes]) -> None:
        """Called by asyncssh when the task has opened it."""
        self._channel = chan

    def session_started(self) -> None:
        """Called by asyncssh before it reads."""
        self.pause_reading()

    def start(self, client: JumpClient) -> None:
        """Deliver what has come, and what comes, to the client's end."""
        self._client = client
        if self._is_lost:
            client.task_gone()
        else:
            self.resume_reading()

    def write(self, data: bytes) -> None:
        """Send bytes to the task; dropped once that end is gone."""
        if self._channel is not None and not self._channel.is_closing():
            self._channel.write(data)

    def pause_reading(self) -> None:
        """Read nothing more of the task."""
        if self._channel is not None:
            self._channel.pause_reading()

    def resume_reading(self) -> None:
        """Read of the task again."""
        if self._channel is not None:
            self._channel.resume_reading()

    def close(self) -> None:
        """End the login to the task, and the jump with it. Idempotent."""
        if self._back is not None:
            self._back.close()

    # ---- asyncssh's callbacks for the task's end -----------------------------------------------
    def data_received(self, data: bytes, datatype: asyncssh.DataType) -> None:
        """Called by asyncssh with bytes of the task."""
        if self._client is not None:
            self._client.from_task(data)

    def eof_received(self) -> bool:
        """Called by asyncssh at the end of file of the task's server: it has ended."""
        return False

    def pause_writing(self) -> None:
        """Called by asyncssh when the task is full."""
        if self._client is not None:
            self._client.hold_client(hold=True)

    def resume_writing(self) -> None:
        """Called by asyncssh when it takes again."""
        if self._client is not None:
            self._client.hold_client(hold=False)

    def connection_lost(self, exc: Exception | None) -> None:
        """Called by asyncssh when the channel is gone."""
        self.lost()
        self.close()

    def lost(self) -> None:
        """The channel, or the login that it was on, is gone. Idempotent."""
        self._channel = None
        if not self._is_lost:
            self._is_lost = True
            if self._client is not None:
                self._client.task_gone()
