"""The sessions of a login as they pass by, and the correct ending of each."""

from __future__ import annotations

import asyncssh.constants as c
import pytest
from asyncssh.packet import Boolean, SSHPacket, String, UInt32
from hypothesis import given
from hypothesis import strategies as st

from pai_backend.access.gateway.sessions import Sessions
from pai_backend.engine.ssh_wire import PacketDecodeError

CLIENT, TASK = 5, 9  # two ends number the same channel differently
TEXT = "Job demo has ended."


def _opened(window: int = 1000, *, terminal: bool = True) -> Sessions:
    sessions = Sessions()
    sessions.from_client(c.MSG_CHANNEL_OPEN, String(b"session") + UInt32(CLIENT) + UInt32(window) + UInt32(32768))
    sessions.from_task(c.MSG_CHANNEL_OPEN_CONFIRMATION, UInt32(CLIENT) + UInt32(TASK) + UInt32(7) + UInt32(32768))
    if terminal:
        sessions.from_client(c.MSG_CHANNEL_REQUEST, UInt32(TASK) + String(b"pty-req") + Boolean(True))
    return sessions


def _kinds(sessions: Sessions) -> list[int]:
    messages = list(sessions.farewell(TEXT))
    assert all(SSHPacket(payload).get_uint32() == CLIENT for _, payload in messages)
    assert list(sessions.farewell(TEXT)) == []
    return [kind for kind, _ in messages]


LINE, STATUS, CLOSE = c.MSG_CHANNEL_EXTENDED_DATA, c.MSG_CHANNEL_REQUEST, c.MSG_CHANNEL_CLOSE


def test_a_terminal_gets_a_line_a_status_and_the_close_in_this_order() -> None:
    sessions = _opened()
    assert sessions.terminals == 1
    line = next(iter(sessions.farewell(TEXT)))[1]
    assert line == UInt32(CLIENT) + UInt32(1) + String(b"\r\npai: Job demo has ended.\r\n")
    assert _kinds(_opened()) == [LINE, STATUS, CLOSE]


def test_a_command_gets_no_line_among_its_output() -> None:
    assert _kinds(_opened(terminal=False)) == [STATUS, CLOSE]


def test_a_line_that_does_not_fit_the_clients_window_is_left_out() -> None:
    sessions = _opened(window=50)
    sessions.from_task(c.MSG_CHANNEL_DATA, UInt32(CLIENT) + String(b"x" * 30))
    assert _kinds(sessions) == [STATUS, CLOSE]
    sessions = _opened(window=50)
    sessions.from_task(c.MSG_CHANNEL_EXTENDED_DATA, UInt32(CLIENT) + UInt32(1) + String(b"x" * 30))
    sessions.from_client(c.MSG_CHANNEL_WINDOW_ADJUST, UInt32(TASK) + UInt32(30))
    assert _kinds(sessions) == [LINE, STATUS, CLOSE]


def test_nothing_is_said_after_the_tasks_eof_or_its_exit_status() -> None:
    sessions = _opened()
    sessions.from_task(c.MSG_CHANNEL_EOF, UInt32(CLIENT))
    assert _kinds(sessions) == [STATUS, CLOSE]
    sessions = _opened()
    sessions.from_task(c.MSG_CHANNEL_REQUEST, UInt32(CLIENT) + String(b"exit-status") + Boolean(False) + UInt32(0))
    assert _kinds(sessions) == [LINE, CLOSE]


def test_a_closed_session_is_forgotten() -> None:
    sessions = _opened()
    sessions.from_client(c.MSG_CHANNEL_CLOSE, UInt32(TASK))
    assert _kinds(sessions) == [CLOSE]
    sessions = _opened()
    sessions.from_task(c.MSG_CHANNEL_CLOSE, UInt32(CLIENT))
    assert (sessions.terminals, _kinds(sessions)) == (0, [])


def test_a_session_that_is_only_asked_for_is_refused() -> None:
    sessions = Sessions()
    sessions.from_client(c.MSG_CHANNEL_OPEN, String(b"session") + UInt32(CLIENT) + UInt32(1) + UInt32(1))
    assert _kinds(sessions) == [c.MSG_CHANNEL_OPEN_FAILURE]


def test_channels_of_other_kinds_are_none_of_its_business() -> None:
    sessions = Sessions()
    sessions.from_client(c.MSG_CHANNEL_OPEN, String(b"direct-tcpip") + UInt32(CLIENT) + UInt32(1) + UInt32(1))
    sessions.from_task(c.MSG_CHANNEL_OPEN_CONFIRMATION, UInt32(CLIENT) + UInt32(TASK) + UInt32(1) + UInt32(1))
    sessions.from_task(c.MSG_CHANNEL_OPEN, b"any")
    assert _kinds(sessions) == []


@given(st.integers(90, 100), st.binary(max_size=60), st.booleans())
def test_any_bytes_are_read_or_are_a_decoding_error(kind: int, payload: bytes, from_client: bool) -> None:
    sessions = _opened()
    read = sessions.from_client if from_client else sessions.from_task
    try:
        read(kind, payload)
    except PacketDecodeError:
        return
    for _, message in sessions.farewell(TEXT):
        SSHPacket(message).get_uint32()


def test_a_message_cut_short_is_a_decoding_error() -> None:
    with pytest.raises(PacketDecodeError):
        _opened().from_task(c.MSG_CHANNEL_DATA, UInt32(CLIENT) + b"\x00")
