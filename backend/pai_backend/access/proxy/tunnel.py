"""Raw bytes both ways once both sides have left HTTP: WebSocket frames, subprotocols and close codes stay exact."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Protocol

from pai_backend.access.proxy.frames import Frames
from pai_backend.access.proxy.upstream import TunnelSide


class TunnelEnd(Protocol):
    """One end of a tunnel: a connection that is open."""

    def connect(self, other: TunnelSide) -> bytes:
        """Pass all that comes to another side from now on. Returns what came before."""
        ...

    def write(self, data: bytes) -> None:
        """Send these; what does not go at once is kept."""
        ...

    def pause_reading(self) -> None:
        """Stop reading for now."""
        ...

    def resume_reading(self) -> None:
        """Go on."""
        ...

    def close(self) -> None:
        """Close it when all is sent."""
        ...


async def tunnel(client: TunnelEnd, task: TunnelEnd, early: bytes, used: Callable[[], None] | None = None) -> None:
    """Pass bytes until either side ends, then close both. ``early`` came from the task already.

    Each side is read no further while the other does not take it, so neither can fill the memory. ``used`` is called
    for what is no ping.
    """
    done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
    to_client, to_task = _Way(client, done, used), _Way(task, done, used)
    try:
        if early:
            to_client.write(early)
        if early := task.connect(to_client):
            to_client.write(early)
        if early := client.connect(to_task):
            to_task.write(early)
        await done
    finally:
        client.close()
        task.close()


class _Way:
    """One direction; sees where messages are."""

    def __init__(self, end: TunnelEnd, done: asyncio.Future[None], used: Callable[[], None] | None) -> None:
        self._end, self._done, self._used = end, done, used
        self._frames = Frames()
        self.write: Callable[[bytes], None] = end.write if used is None else self._write
        self.pause_reading, self.resume_reading = end.pause_reading, end.resume_reading

    def _write(self, data: bytes) -> None:
        assert self._used is not None
        if self._frames.feed(data):
            self._used()
        self._end.write(data)

    def ended(self) -> None:
        """The side that this comes from has ended."""
        if not self._done.done():
            self._done.set_result(None)
