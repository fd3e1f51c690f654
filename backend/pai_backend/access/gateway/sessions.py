"""Which sessions a login has open, learnt by reading the messages that pass (RFC 4254 §5 and §6). No I/O.

Needed for one thing only: when the gateway has to end a login, every open session gets a correct
ending: a line on a terminal's stderr, an exit status, and CLOSE, within the client's window.
Channel numbers are those the two ends chose: the relay changes none.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from pai_backend.engine.ssh_wire import (
    EXTENDED_DATA_STDERR,
    MSG_CHANNEL_CLOSE,
    MSG_CHANNEL_DATA,
    MSG_CHANNEL_EOF,
    MSG_CHANNEL_EXTENDED_DATA,
    MSG_CHANNEL_OPEN,
    MSG_CHANNEL_OPEN_CONFIRMATION,
    MSG_CHANNEL_OPEN_FAILURE,
    MSG_CHANNEL_REQUEST,
    MSG_CHANNEL_WINDOW_ADJUST,
    OPEN_CONNECT_FAILED,
    Packet,
    boolean,
    string,
    uint32,
)

Message = tuple[int, bytes]
"""(message number, payload without that number)."""

CUT_STATUS = 255  # what ssh itself exits with when a connection breaks


@dataclass(slots=True)
class _Session:
    """One session channel: its two numbers and what a correct ending depends on."""

    client: int
    window: int
    """Bytes the client still takes."""
    task: int | None = None
    terminal: bool = False
    eof: bool = False
    exited: bool = False
    closed_by_client: bool = False


class Sessions:
    """The session channels of one login. Raises PacketDecodeError on a message that is cut short."""

    __slots__ = ("_by_client", "_by_task")

    def __init__(self) -> None:
        self._by_client: dict[int, _Session] = {}
        self._by_task: dict[int, _Session] = {}

    @property
    def terminals(self) -> int:
        """How many open sessions have a terminal: there a person reads along."""
        return sum(session.terminal for session in self._by_client.values())

    def from_client(self, kind: int, payload: bytes) -> None:
        """Note a message on its way from the client to the task."""
        packet = Packet(payload)
        if kind == MSG_CHANNEL_OPEN:
            if packet.get_string() == b"session":
                number, window = packet.get_uint32(), packet.get_uint32()
                self._by_client[number] = _Session(number, window)
            return
        session = self._by_task.get(packet.get_uint32())
        if session is None:
            return
        if kind == MSG_CHANNEL_WINDOW_ADJUST:
            session.window += packet.get_uint32()
        elif kind == MSG_CHANNEL_REQUEST and packet.get_string() == b"pty-req":
            session.terminal = True
        elif kind == MSG_CHANNEL_CLOSE:
            session.closed_by_client = True

    def from_task(self, kind: int, payload: bytes) -> None:
        """Note a message on its way from the task to the client."""
        if kind == MSG_CHANNEL_OPEN:
            return
        packet = Packet(payload)
        session = self._by_client.get(packet.get_uint32())
        if session is None:
            return
        if kind in (MSG_CHANNEL_DATA, MSG_CHANNEL_EXTENDED_DATA):
            if kind == MSG_CHANNEL_EXTENDED_DATA:
                packet.get_uint32()
            session.window -= packet.get_uint32()
        elif kind == MSG_CHANNEL_OPEN_CONFIRMATION:
            session.task = packet.get_uint32()
            self._by_task[session.task] = session
        elif kind == MSG_CHANNEL_EOF:
            session.eof = True
        elif kind == MSG_CHANNEL_REQUEST:
            session.exited |= packet.get_string() in (b"exit-status", b"exit-signal")
        elif kind in (MSG_CHANNEL_CLOSE, MSG_CHANNEL_OPEN_FAILURE):
            self._forget(session)

    def _forget(self, session: _Session) -> None:
        del self._by_client[session.client]
        if session.task is not None:
            self._by_task.pop(session.task, None)

    def farewell(self, text: str) -> Iterator[Message]:
        """Messages that end every open session towards the client, each session in its right order."""
        line = f"\r\npai: {text}\r\n".encode()
        for session in list(self._by_client.values()):
            number = uint32(session.client)
            if session.task is None:
                yield (
                    MSG_CHANNEL_OPEN_FAILURE,
                    number + uint32(OPEN_CONNECT_FAILED) + string(text.encode()) + string(b""),
                )
            else:
                if not session.closed_by_client:
                    if session.terminal and not session.eof and session.window >= len(line):
                        yield MSG_CHANNEL_EXTENDED_DATA, number + uint32(EXTENDED_DATA_STDERR) + string(line)
                    if not session.exited:
                        status = string(b"exit-status") + boolean(False) + uint32(CUT_STATUS)
                        yield MSG_CHANNEL_REQUEST, number + status
                yield MSG_CHANNEL_CLOSE, number
            self._forget(session)
