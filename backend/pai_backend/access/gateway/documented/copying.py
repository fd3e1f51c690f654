"""One channel of the client's that is one of the task's: bytes, ends, signals and exit status are copied."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import asyncssh

from pai_backend.access.gateway.activity import LoginActivity
from pai_backend.access.gateway.reading_only import ReadingOnly
from pai_backend.access.gateway.sessions import CUT_STATUS


class ChannelEnd(asyncssh.SSHTCPSession[bytes], asyncssh.SSHUNIXSession[bytes]):
    """One of two channels that are each other's; also of a connection to a port or socket."""

    def __init__(self, count: Callable[[int], None], gone: Callable[[], None] = lambda: None) -> None:
        """``count`` is called with the size of all that comes, ``gone`` when the channel is."""
        self._count, self._gone = count, gone
        self.chan: Any = None
        """asyncssh's channel of one kind or another; None before it is open, and at its end."""
        self.other: ChannelEnd | None = None
        self._early: list[tuple[bytes, asyncssh.DataType]] = []
        self._ended_early = False
        self.is_full = False
        """Whether the channel is full."""
        self.reads: ReadingOnly | None = None
        """What makes requests harmless that would change files."""

    def connection_made(self, chan: Any) -> None:
        """Called by asyncssh."""
        self.chan = chan

    def session_started(self) -> None:
        """Called by asyncssh, which reads on after it, whatever is done here."""

    def meet(self, other: ChannelEnd) -> None:
        """The other end is open: let bytes pass."""
        self.other, other.other = other, self
        for end in (self, other):
            if end.chan is None:
                end.leave()
            else:
                end.pass_early()

    def pass_early(self) -> None:
        """Pass on what has come before the other end was there."""
        early, self._early = self._early, []
        for data, datatype in early:
            self._pass(data, datatype)
        if self._ended_early:
            self.eof_received()
        if self.other is not None and not self.other.is_full:
            self.chan.resume_reading()

    def data_received(self, data: bytes, datatype: asyncssh.DataType) -> None:
        """Called by asyncssh."""
        self._count(len(data))
        if self.other is not None:
            self._pass(data, datatype)
        else:
            self._early.append((data, datatype))
            self.chan.pause_reading()

    def _pass(self, data: bytes, datatype: asyncssh.DataType) -> None:
        if self.reads is not None:
            data = self.reads.filtered(data)
        if self.other is not None and self.other.is_open:
            self.other.chan.write(data, datatype)

    @property
    def is_open(self) -> bool:
        """Whether bytes can be written to it: asyncssh calls a channel closing from its end of data on."""
        return self.chan is not None and not self.chan.is_closing()

    @property
    def _peer(self) -> Any:
        """The other channel, as long as it has not gone."""
        return self.other.chan if self.other is not None else None

    def eof_received(self) -> bool:
        """Called by asyncssh; whether the other direction goes on."""
        self._ended_early = self.other is None
        if self.other is not None and self.other.is_open:
            self.other.chan.write_eof()
        return True

    def pause_writing(self) -> None:
        """Called by asyncssh when this channel is full: the other one is not read."""
        self.is_full = True
        if self._peer is not None:
            self._peer.pause_reading()

    def resume_writing(self) -> None:
        """Called by asyncssh when it has drained."""
        self.is_full = False
        if self._peer is not None:
            self._peer.resume_reading()

    def connection_lost(self, exc: Exception | None) -> None:
        """Called by asyncssh when the channel is gone: the other one ends behind what was written to it."""
        self.chan = None
        self._gone()
        self.leave()

    def leave(self) -> None:
        """End the other channel. Idempotent."""
        if self._peer is not None:
            self._peer.close()


class TaskSession(ChannelEnd, asyncssh.SSHClientSession[bytes]):
    """The task's end of a session: how its program ends is told to the client last."""

    def __init__(self, count: Callable[[int], None]) -> None:
        super().__init__(count)
        self._tell: Callable[[Any], None] = lambda chan: chan.close()

    def exit_status_received(self, status: int) -> None:
        """Called by asyncssh; output may still follow."""
        self._tell = lambda chan: chan.exit(status)

    def exit_signal_received(self, signal: str, core_dumped: bool, msg: str, lang: str) -> None:
        """As ``exit_status_received``."""
        self._tell = lambda chan: chan.exit_with_signal(signal, core_dumped, msg, lang)

    def leave(self) -> None:
        """As :class:`ChannelEnd` has it."""
        if self._peer is not None:
            self._tell(self._peer)


class ClientSession(ChannelEnd, asyncssh.SSHServerSession[bytes]):
    """The client's end of a session."""

    def __init__(
        self,
        activity: LoginActivity,
        refusal: Callable[[str, str], str],
        open_task: Callable[[ClientSession], Awaitable[TaskSession]],
        gone: Callable[[], None],
    ) -> None:
        """``refusal`` says why a request may not be made, ``open_task`` opens the task's end."""
        super().__init__(lambda size: activity.add(size, to_task=True), gone)
        self._refusal, self._open_task = refusal, open_task
        self.has_terminal = False

    def pty_requested(self, term_type: str, term_size: Any, term_modes: Any) -> bool:
        """Called by asyncssh."""
        self.has_terminal = not self._refusal("pty-req", "")
        return self.has_terminal

    def shell_requested(self) -> bool:
        """Called by asyncssh."""
        return not self._refusal("shell", "")

    def exec_requested(self, command: str) -> bool:
        """Called by asyncssh."""
        return not self._refusal("exec", command)

    def subsystem_requested(self, subsystem: str) -> bool:
        """Called by asyncssh."""
        return not self._refusal("subsystem", subsystem)

    def session_started(self) -> None:
        """Called by asyncssh when the client has been told that its request is granted."""
        self._beginning = asyncio.create_task(self._begin(), name="gateway-session")

    async def _begin(self) -> None:
        try:
            task = await self._open_task(self)
        except (asyncssh.Error, OSError) as exc:
            if self.is_open:
                self.chan.write_stderr(f"pai: the task does not take it: {exc}\r\n".encode())
            if self.chan is not None:
                self.chan.exit(CUT_STATUS)
            return
        self.meet(task)

    def signal_received(self, signal: str) -> None:
        """Called by asyncssh."""
        if self._peer is not None:
            self._peer.send_signal(signal)

    def break_received(self, msec: int) -> bool:
        """Called by asyncssh."""
        if self._peer is not None:
            self._peer.send_break(msec)
        return True

    def terminal_size_changed(self, width: int, height: int, pixwidth: int, pixheight: int) -> None:
        """Called by asyncssh."""
        if self._peer is not None:
            self._peer.change_terminal_size(width, height, pixwidth, pixheight)
