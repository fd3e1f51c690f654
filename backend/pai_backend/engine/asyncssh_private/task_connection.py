"""A connection to a task's SSH server with bounds, by parts of asyncssh that are not documented (ADR 0032)."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable

import asyncssh
from asyncssh.packet import SSHPacket

from pai_backend.engine.asyncssh_private.guesses import Guessing
from pai_backend.engine.ssh_wire import MSG_CHANNEL_OPEN

MOST_CHANNELS = 1000  # of a connection, as gateway.max_channels has it: this process serves all tasks of the node


class TaskConnection(Guessing):
    """The server's end of one connection, with a bound on its channels, on what it listens with, and on what is kept
    for a client that takes nothing.
    """

    _taken: asyncio.Event | None = None
    """Set when what was written has left; None while there is no more than the transport likes."""

    def pause_writing(self) -> None:
        """Called by the transport when it holds enough."""
        self._taken = asyncio.Event()

    def resume_writing(self) -> None:
        """Called by the transport when that has left."""
        taken, self._taken = self._taken, None
        if taken is not None:
            taken.set()

    def connection_lost(self, exc: Exception | None = None) -> None:
        """Called by the transport at its end: waiting ends."""
        self.resume_writing()
        super().connection_lost(exc)

    async def wait_taken(self) -> None:
        """Return when the client takes what is written; its window, which it says itself, may be 4 GiB."""
        if self._taken is not None:
            await self._taken.wait()

    @property
    def is_full(self) -> bool:
        """Whether nothing more may be opened."""
        return len(self._channels) + len(self._local_listeners) >= MOST_CHANNELS

    def process_packet(self, pkttype: int, pktid: int, packet: SSHPacket) -> bool | Awaitable[None]:
        """Called by asyncssh for every message."""
        if pkttype == MSG_CHANNEL_OPEN and self.is_full:
            packet.get_string()
            text = f"This connection has {MOST_CHANNELS} channels open, the maximum."
            self.send_channel_open_failure(packet.get_uint32(), asyncssh.OPEN_RESOURCE_SHORTAGE, text, "")
            return True
        return super().process_packet(pkttype, pktid, packet)
