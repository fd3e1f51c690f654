"""A line for a terminal beside what its task says, within the flow control of both ends (RFC 4254 §5.2). No I/O.

What the gateway says itself takes room in a client's window that the task believes to be its own, and a task that
filled it would overrun the client. So a part of each session's first window is withheld from the task, and only that is
spent; what the client gives back for it is withheld again. The task's bytes pass as they are, at every size.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from pai_backend.access.gateway.sessions import Message
from pai_backend.engine.ssh_wire import (
    EXTENDED_DATA_STDERR,
    MSG_CHANNEL_CLOSE,
    MSG_CHANNEL_EOF,
    MSG_CHANNEL_EXTENDED_DATA,
    MSG_CHANNEL_OPEN,
    MSG_CHANNEL_OPEN_CONFIRMATION,
    MSG_CHANNEL_OPEN_FAILURE,
    MSG_CHANNEL_REQUEST,
    MSG_CHANNEL_WINDOW_ADJUST,
    Packet,
    string,
    uint32,
)

ROOM_BYTES = 512
_LEAST_WINDOW = 16 * ROOM_BYTES  # of a smaller one nothing is withheld; OpenSSH offers 2 MiB, PuTTY 16 KiB


@dataclass(slots=True)
class _Window:
    """What is withheld of one session's window."""

    client: int
    spent: int = 0
    """Bytes said that the client has not given back yet."""
    terminal: bool = False
    ended: bool = False


class TerminalLines:
    """The sessions of one login that can be told something. Raises PacketDecodeError on a message that is cut short."""

    def __init__(self) -> None:
        self._by_client: dict[int, _Window] = {}
        self._by_task: dict[int, _Window] = {}

    def from_client(self, kind: int, payload: bytes) -> bytes | None:
        """What to pass on instead of a message on its way to the task; None for nothing."""
        if kind == MSG_CHANNEL_OPEN:
            return self._opened(payload)
        if kind not in (MSG_CHANNEL_WINDOW_ADJUST, MSG_CHANNEL_REQUEST):
            return payload
        packet = Packet(payload)
        task = packet.get_uint32()
        room = self._by_task.get(task)
        if room is None:
            return payload
        if kind == MSG_CHANNEL_REQUEST:
            room.terminal |= packet.get_string() == b"pty-req"
            return payload
        more = packet.get_uint32()
        back = min(room.spent, more)
        room.spent -= back
        return uint32(task) + uint32(more - back) if more > back or not back else None

    def _opened(self, payload: bytes) -> bytes:
        packet = Packet(payload)
        kind, client, window = packet.get_string(), packet.get_uint32(), packet.get_uint32()
        if kind != b"session" or window < _LEAST_WINDOW:
            return payload
        self._by_client[client] = _Window(client)
        return string(kind) + uint32(client) + uint32(window - ROOM_BYTES) + packet.get_remaining_payload()

    def from_task(self, kind: int, payload: bytes) -> None:
        """Note a message on its way to the client."""
        if kind not in (
            *(MSG_CHANNEL_OPEN_CONFIRMATION, MSG_CHANNEL_OPEN_FAILURE),
            *(MSG_CHANNEL_EOF, MSG_CHANNEL_CLOSE),
        ):
            return
        packet = Packet(payload)
        client = packet.get_uint32()
        room = self._by_client.get(client)
        if room is None:
            return
        if kind == MSG_CHANNEL_OPEN_CONFIRMATION:
            self._by_task[packet.get_uint32()] = room
        elif kind == MSG_CHANNEL_EOF:
            room.ended = True
        else:
            del self._by_client[client]
            self._by_task = {task: other for task, other in self._by_task.items() if other is not room}

    def say(self, text: str) -> Iterator[Message]:
        """Messages to the client that show a line on each terminal with room for it, and nowhere else."""
        line = f"\r\npai: {text}\r\n".encode()
        for room in self._by_task.values():
            if room.terminal and not room.ended and ROOM_BYTES - room.spent >= len(line):
                room.spent += len(line)
                yield (
                    MSG_CHANNEL_EXTENDED_DATA,
                    uint32(room.client) + uint32(EXTENDED_DATA_STDERR) + string(line),
                )
