"""A line beside a terminal's own output never overruns the client's window, and no byte of the task is changed."""

from __future__ import annotations

from dataclasses import dataclass, field

from asyncssh.constants import (
    MSG_CHANNEL_CLOSE,
    MSG_CHANNEL_DATA,
    MSG_CHANNEL_EOF,
    MSG_CHANNEL_EXTENDED_DATA,
    MSG_CHANNEL_OPEN,
    MSG_CHANNEL_OPEN_CONFIRMATION,
    MSG_CHANNEL_REQUEST,
    MSG_CHANNEL_WINDOW_ADJUST,
)
from asyncssh.packet import Boolean, SSHPacket, String, UInt32
from hypothesis import given
from hypothesis import strategies as st

from pai_backend.access.gateway.terminal_lines import ROOM_BYTES, TerminalLines

CLIENT, TASK, WINDOW = 3, 70, 64 * 1024


def opening(window: int, kind: bytes = b"session") -> bytes:
    return String(kind) + UInt32(CLIENT) + UInt32(window) + UInt32(32768)


@dataclass
class Ends:
    """A client and a task that keep to the protocol, with the terminal lines between them."""

    lines: TerminalLines = field(default_factory=TerminalLines)
    client_takes: int = WINDOW
    unread: int = 0
    task_may_send: int = 0

    def open(self, *, terminal: bool = True) -> None:
        passed = self.lines.from_client(MSG_CHANNEL_OPEN, opening(self.client_takes))
        assert passed is not None
        packet = SSHPacket(passed)
        assert (packet.get_string(), packet.get_uint32()) == (b"session", CLIENT)
        self.task_may_send = packet.get_uint32()
        assert packet.get_remaining_payload() == UInt32(32768)
        self.lines.from_task(MSG_CHANNEL_OPEN_CONFIRMATION, UInt32(CLIENT) + UInt32(TASK) + UInt32(0) + UInt32(0))
        request = UInt32(TASK) + String(b"pty-req" if terminal else b"exec") + Boolean(True)
        assert self.lines.from_client(MSG_CHANNEL_REQUEST, request) == request

    def arrive(self, count: int) -> None:
        assert count <= self.client_takes, "the client's window is overrun"
        self.client_takes -= count
        self.unread += count

    def send(self, count: int) -> None:
        count = min(count, self.task_may_send)
        self.task_may_send -= count
        self.lines.from_task(MSG_CHANNEL_DATA, UInt32(CLIENT) + String(b""))
        self.arrive(count)

    def read(self, count: int) -> None:
        count = min(count, self.unread)
        self.unread -= count
        self.client_takes += count
        if passed := self.lines.from_client(MSG_CHANNEL_WINDOW_ADJUST, UInt32(TASK) + UInt32(count)):
            packet = SSHPacket(passed)
            assert packet.get_uint32() == TASK
            self.task_may_send += packet.get_uint32()

    def say(self, text: str) -> int:
        said = 0
        for kind, payload in self.lines.say(text):
            packet = SSHPacket(payload)
            assert (kind, packet.get_uint32()) == (MSG_CHANNEL_EXTENDED_DATA, CLIENT)
            packet.get_uint32()
            line = packet.get_string()
            assert line == f"\r\npai: {text}\r\n".encode()
            self.arrive(len(line))
            said += len(line)
        return said


STEPS = st.lists(st.tuples(st.sampled_from(["send", "read", "say"]), st.integers(0, WINDOW)), max_size=60)


@given(STEPS)
def test_no_order_of_output_reading_and_lines_overruns_the_client(steps: list[tuple[str, int]]) -> None:
    ends = Ends()
    ends.open()
    for step, size in steps:
        if step == "say":
            ends.say("x" * (size % 300))
        else:
            getattr(ends, step)(size)
    ends.read(ends.unread)
    assert ends.task_may_send == ends.client_takes - ROOM_BYTES, "what was said has been given back"
    assert ends.say("again")


def test_a_line_is_said_while_the_task_fills_the_window() -> None:
    ends = Ends()
    ends.open()
    ends.send(WINDOW)
    assert ends.task_may_send == 0
    assert ends.say("x" * 200)
    assert ends.say("x" * 400) == 0, "there is room for no more until the client has read"


def test_nothing_is_said_where_no_person_reads() -> None:
    ends = Ends()
    ends.open(terminal=False)
    assert ends.say("hello") == 0
    ends = Ends()
    ends.open()
    ends.lines.from_task(MSG_CHANNEL_EOF, UInt32(CLIENT))
    assert ends.say("hello") == 0
    ends.lines.from_task(MSG_CHANNEL_CLOSE, UInt32(CLIENT))
    assert ends.say("hello") == 0


def test_other_channels_and_small_windows_are_left_as_they_are() -> None:
    lines = TerminalLines()
    for payload in (opening(WINDOW, b"direct-tcpip"), opening(ROOM_BYTES)):
        assert lines.from_client(MSG_CHANNEL_OPEN, payload) == payload
    adjust = UInt32(TASK) + UInt32(10)
    assert lines.from_client(MSG_CHANNEL_WINDOW_ADJUST, adjust) == adjust
