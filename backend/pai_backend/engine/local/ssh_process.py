"""What an SSH session is to a program: input and events in their order, output that waits for a slow client.

asyncssh's own class for that takes SFTP into the process that serves all tasks of the node: see ``files``.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

import asyncssh

from pai_backend.engine.local.terminals import SUBSYSTEM

SFTP = "sftp"
TERMINAL = SUBSYSTEM
UNREAD_BYTES = 1 << 18
"""More is not taken from a client whose program does not read."""

_log = logging.getLogger(__name__)


class Process(asyncssh.SSHServerSession[bytes]):
    """One session. ``run`` is called with it when the client has been told that its request is granted."""

    channel: asyncssh.SSHServerChannel[bytes]

    def __init__(self, run: Callable[[Process], Awaitable[None]]) -> None:
        self._run = run
        self._running: asyncio.Future[None] | None = None
        self._input: deque[bytes | Exception] = deque()
        self._unread = 0
        self._has_ended = self._is_lost = False
        self._more, self._drained = asyncio.Event(), asyncio.Event()
        self._drained.set()

    # ---- asyncssh's callbacks ------------------------------------------------------------------
    def connection_made(self, chan: asyncssh.SSHServerChannel[bytes]) -> None:
        """Called by asyncssh first."""
        self.channel = chan

    def pty_requested(self, term_type: str, term_size: Any, term_modes: Any) -> bool:
        """Called by asyncssh; a login that may run a command may have a terminal."""
        return True

    def shell_requested(self) -> bool:
        """Called by asyncssh."""
        return True

    def exec_requested(self, command: str) -> bool:
        """Called by asyncssh."""
        return True

    def subsystem_requested(self, subsystem: str) -> bool:
        """Called by asyncssh; there are no others."""
        return subsystem in (SFTP, TERMINAL)

    def session_started(self) -> None:
        """Called by asyncssh when the client has been told that its request is granted."""
        self._running = asyncio.ensure_future(self._run(self))
        self._running.add_done_callback(self._note_end)

    def _note_end(self, running: asyncio.Future[None]) -> None:
        error = None if running.cancelled() else running.exception()
        if error is None:
            return
        if isinstance(error, asyncssh.Error | OSError):
            _log.debug("a session has lost its client: %s", error)
        else:
            _log.error("a session failed", exc_info=error)
        self.channel.abort()

    def data_received(self, data: bytes, datatype: asyncssh.DataType) -> None:
        """Called by asyncssh with what the client sends."""
        self._unread += len(data)
        if self._unread >= UNREAD_BYTES:
            self.channel.pause_reading()
        self._take(data)

    def _take(self, item: bytes | Exception) -> None:
        self._input.append(item)
        self._more.set()

    def eof_received(self) -> bool:
        """Called by asyncssh at the end of the client's input; the program may still write."""
        self._has_ended = True
        self._more.set()
        return True

    def connection_lost(self, exc: Exception | None) -> None:
        """Called by asyncssh last."""
        if exc is not None and not self._has_ended:
            self._input.append(exc)
        self._is_lost = True
        self.eof_received()
        self._drained.set()

    def break_received(self, msec: int) -> bool:
        """Called by asyncssh."""
        self._take(asyncssh.BreakReceived(msec))
        return True

    def signal_received(self, signal: str) -> None:
        """Called by asyncssh."""
        self._take(asyncssh.SignalReceived(signal))

    def terminal_size_changed(self, width: int, height: int, pixwidth: int, pixheight: int) -> None:
        """Called by asyncssh."""
        self._take(asyncssh.TerminalSizeChanged(width, height, pixwidth, pixheight))

    def pause_writing(self) -> None:
        """Called by asyncssh when the client's window is used up."""
        self._drained.clear()

    def resume_writing(self) -> None:
        """Called by asyncssh when the client takes again."""
        self._drained.set()

    # ---- for the program -----------------------------------------------------------------------
    @property
    def command(self) -> str | None:
        """What to run; None for a shell or a subsystem."""
        return self.channel.get_command()

    @property
    def subsystem(self) -> str | None:
        """The subsystem that is asked for."""
        return self.channel.get_subsystem()

    @property
    def env(self) -> Mapping[str, str]:
        """Variables that the client has sent."""
        return self.channel.get_environment()

    @property
    def term_type(self) -> str | None:
        """The client's terminal; None without one."""
        return self.channel.get_terminal_type()

    @property
    def term_size(self) -> tuple[int, int, int, int]:
        """Columns, rows, and both in pixels."""
        return self.channel.get_terminal_size()

    @property
    def term_modes(self) -> Mapping[int, int]:
        """Settings of the terminal (RFC 4254 §8)."""
        return self.channel.get_terminal_modes()

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        """What is known of the channel or its connection."""
        return self.channel.get_extra_info(name, default)

    async def read(self) -> bytes:
        """Some input; empty at its end.

        Raises TerminalSizeChanged, SignalReceived and BreakReceived where they came, and what has broken the
        connection.
        """
        while not self._input and not self._has_ended:
            self._more.clear()
            await self._more.wait()
        if not self._input:
            return b""
        item = self._input.popleft()
        if isinstance(item, Exception):
            raise item
        self._unread -= len(item)
        if self._unread < UNREAD_BYTES and not self._is_lost:
            self.channel.resume_reading()
        return item

    def write(self, data: bytes, *, is_stderr: bool = False) -> None:
        """Send output. Raises OSError once the client has gone."""
        self.channel.write(data, asyncssh.EXTENDED_DATA_STDERR if is_stderr else None)

    async def drain(self) -> None:
        """Return when the client takes more. Raises OSError once it has gone."""
        await self._drained.wait()
        if self._is_lost:
            raise BrokenPipeError("the client has gone")

    def write_eof(self) -> None:
        """End the output."""
        self.channel.write_eof()

    def exit(self, status: int) -> None:
        """Say how the program has ended."""
        self.channel.exit(status)

    def exit_with_signal(self, signal: str) -> None:
        """Say which signal has ended it."""
        self.channel.exit_with_signal(signal)
