"""A listening socket that loses no connection when it is closed.

asyncio's own server (Python 3.11) does: a connection that it accepts in the turn of the loop before the one in which
it is closed gets a transport that is neither served nor closed, and the client waits for ever. One from the turn
before that meets its protocol only after ``close()`` has returned, too late for who then ends all that are open.
"""

from __future__ import annotations

import asyncio
import errno
import logging
import socket
from collections.abc import Callable

_log = logging.getLogger(__name__)

BACKLOG = 100  # as asyncio's servers have it
RETRY_S = 1.0
"""How long nothing is accepted when the process has no descriptor or memory for it; clients wait in the backlog."""

_EXHAUSTED = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM})


class TaskAcceptor:
    """Accepts connections from when it is made until it is closed, and gives each to a protocol of its own."""

    def __init__(self, listening: socket.socket, factory: Callable[[], asyncio.BaseProtocol]) -> None:
        """Take over a bound socket. Raises OSError when it cannot listen; it is the caller's then."""
        listening.setblocking(False)
        listening.listen(BACKLOG)
        self._listening = listening
        self._factory = factory
        self._loop = asyncio.get_running_loop()
        self._arriving: set[asyncio.Task[None]] = set()
        self._retry: asyncio.TimerHandle | None = None
        self._open = True
        self._resume()

    def close(self) -> None:
        """Stop accepting; what the kernel has not handed over is refused. Idempotent."""
        if not self._open:
            return
        self._open = False
        if self._retry is not None:
            self._retry.cancel()
        self._loop.remove_reader(self._listening)
        self._listening.close()

    async def wait_closed(self) -> None:
        """Return when every connection that was accepted has met its protocol (``connection_made``)."""
        while self._arriving:
            await asyncio.wait(self._arriving)

    def _resume(self) -> None:
        self._retry = None
        self._loop.add_reader(self._listening, self._accept)

    def _accept(self) -> None:
        """Called by the loop when a connection is there, until none is."""
        try:
            connection, _ = self._listening.accept()
        except (BlockingIOError, InterruptedError, ConnectionAbortedError):
            return
        except OSError as error:
            if error.errno not in _EXHAUSTED:
                raise
            _log.warning("no connection is accepted for %.0f s: %s", RETRY_S, error.strerror)
            self._loop.remove_reader(self._listening)
            self._retry = self._loop.call_later(RETRY_S, self._resume)
            return
        connection.setblocking(False)
        task = asyncio.create_task(self._hand_over(connection))
        self._arriving.add(task)
        task.add_done_callback(self._arriving.discard)

    async def _hand_over(self, connection: socket.socket) -> None:
        try:
            await self._loop.connect_accepted_socket(self._factory, connection)
        except BaseException:
            connection.close()
            raise
