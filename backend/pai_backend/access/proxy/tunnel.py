"""Raw bytes both ways once both sides have left HTTP: WebSocket frames, subprotocols and close codes stay exact.

Data is told from pings in each direction without touching a byte.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Protocol

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


_DATA = frozenset({0x0, 0x1, 0x2})  # continuation, text, binary (RFC 6455 §5.2); all others are control frames
_MASKED = 0x80
_TWO_BYTES, _EIGHT_BYTES = 126, 127


class Frames:
    """The frames of one direction, from the first byte after the handshake."""

    def __init__(self) -> None:
        self._head = bytearray()
        self._left = 0
        self._is_data = False

    def feed(self, piece: bytes) -> bool:
        """Whether something of a message's content is in the next piece of the stream."""
        used, at = False, 0
        while at < len(piece):
            if self._left:
                step = min(self._left, len(piece) - at)
                self._left -= step
                at += step
                used |= self._is_data
                continue
            self._head.append(piece[at])
            at += 1
            length = _payload_length(self._head)
            if length is not None:
                self._is_data, self._left = self._head[0] & 0x0F in _DATA, length
                self._head.clear()
        return used


def _payload_length(head: bytearray) -> int | None:
    """The length of the payload once the whole header of a frame is there."""
    if len(head) < 2:
        return None
    short = head[1] & 0x7F
    wide = {_TWO_BYTES: 2, _EIGHT_BYTES: 8}.get(short, 0)
    if len(head) < 2 + wide + (4 if head[1] & _MASKED else 0):
        return None
    return int.from_bytes(head[2 : 2 + wide], "big") if wide else short
