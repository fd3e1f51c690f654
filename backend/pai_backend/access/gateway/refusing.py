"""A session that cannot reach its task: it says why on stderr and exits with ssh's own status for failure."""

from __future__ import annotations

from collections.abc import Callable

import asyncssh

from pai_backend.access.gateway.sessions import CUT_STATUS


class RefusedSession(asyncssh.SSHServerSession[bytes]):
    """Accepts what clients ask before the request that gets the answer."""

    def __init__(self, text: str, gone: Callable[[], None] = lambda: None) -> None:
        """``gone`` is called when its channel is."""
        self._text, self._gone = text, gone
        self._chan: asyncssh.SSHServerChannel[bytes] | None = None

    def connection_made(self, chan: asyncssh.SSHServerChannel[bytes]) -> None:
        """Called by asyncssh first."""
        self._chan = chan

    def connection_lost(self, exc: Exception | None) -> None:
        """Called by asyncssh last."""
        self._gone()

    def pty_requested(self, *_: object) -> bool:
        """Accepted, so that the client goes on to the request that gets the answer."""
        return True

    def shell_requested(self) -> bool:
        """Accepted; answered in ``session_started``."""
        return True

    def exec_requested(self, command: str) -> bool:
        """Accepted; answered in ``session_started``."""
        return True

    def subsystem_requested(self, subsystem: str) -> bool:
        """Accepted; answered in ``session_started``."""
        return True

    def session_started(self) -> None:
        """Called by asyncssh after the client has read that its request was accepted."""
        assert self._chan is not None
        self._chan.write_stderr(f"pai: {self._text}\r\n".encode())
        self._chan.exit(CUT_STATUS)
