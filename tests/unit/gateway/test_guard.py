"""What of a limited login's messages may pass, and what who asked is answered."""

from __future__ import annotations

from dataclasses import replace

import pytest
from asyncssh.constants import (
    MSG_CHANNEL_CLOSE,
    MSG_CHANNEL_DATA,
    MSG_CHANNEL_OPEN,
    MSG_CHANNEL_OPEN_FAILURE,
    MSG_CHANNEL_REQUEST,
    MSG_GLOBAL_REQUEST,
    OPEN_ADMINISTRATIVELY_PROHIBITED,
    OPEN_RESOURCE_SHORTAGE,
)
from asyncssh.packet import Boolean, PacketDecodeError, SSHPacket, String, UInt32

from pai_backend.access.broker.rights import EVERYTHING, NOTHING, Limits, Sftp
from pai_backend.access.gateway.guard import NOT_PASSED_ON, Guard

PTY = String("xterm") + UInt32(80) * 4 + String(b"")


def _open(kind: str, rest: bytes = b"", number: int = 7) -> bytes:
    return String(kind) + UInt32(number) + UInt32(1 << 21) + UInt32(1 << 15) + rest


def _tcp(host: str, port: int) -> bytes:
    return _open("direct-tcpip", String(host) + UInt32(port) + String("127.0.0.1") + UInt32(50000))


def _request(name: str, rest: bytes = b"", number: int = 3) -> bytes:
    return UInt32(number) + String(name) + Boolean(True) + rest


def _refusal(guard: Guard, payload: bytes) -> tuple[int, int, str] | None:
    """Number, code and text of a channel's refusal; None when it passes unchanged."""
    allowed, answer = guard.from_client(MSG_CHANNEL_OPEN, payload)
    if answer is None:
        assert allowed == payload
        return None
    assert allowed is None
    kind, body = answer
    assert kind == MSG_CHANNEL_OPEN_FAILURE
    packet = SSHPacket(body)
    return packet.get_uint32(), packet.get_uint32(), packet.get_string().decode()


def _passes(guard: Guard, payload: bytes) -> bool:
    """Whether a request passes unchanged; else it must be made unknown, with its number and wish for an answer."""
    allowed, answer = guard.from_client(MSG_CHANNEL_REQUEST, payload)
    assert answer is None
    if allowed == payload:
        return True
    assert allowed == UInt32(3) + String(NOT_PASSED_ON) + Boolean(True)
    return False


@pytest.mark.parametrize(
    ("kind", "payload"),
    [
        (MSG_CHANNEL_OPEN, _open("nobody-knows@example.org")),
        (MSG_CHANNEL_OPEN, _tcp("10.0.0.1", 1)),
        (MSG_CHANNEL_REQUEST, _request("exec", String("true"))),
        (MSG_CHANNEL_REQUEST, _request("subsystem", String("sftp"))),
        (MSG_GLOBAL_REQUEST, String("tcpip-forward") + Boolean(True) + String("") + UInt32(0)),
        (MSG_CHANNEL_DATA, UInt32(3) + String(b"\0" * 9)),
    ],
)
def test_a_login_without_limits_is_left_alone(kind: int, payload: bytes) -> None:
    guard = Guard(EVERYTHING, (), 10)
    assert guard.from_client(kind, payload) == (payload, None)
    assert guard.from_task(kind, payload) == (payload, None)


@pytest.mark.parametrize(
    ("limits", "request_", "passes"),
    [
        (replace(EVERYTHING, pty=False), _request("pty-req", PTY), False),
        (replace(EVERYTHING, pty=False), _request("shell"), True),
        (replace(EVERYTHING, commands=False), _request("shell"), False),
        (replace(EVERYTHING, commands=False), _request("exec", String("id")), False),
        (replace(EVERYTHING, commands=False), _request("subsystem", String("netconf")), False),
        (replace(EVERYTHING, commands=False), _request("subsystem", String("sftp")), True),
        (replace(EVERYTHING, sftp=Sftp.NONE), _request("subsystem", String("sftp")), False),
        (replace(EVERYTHING, agent=False), _request("auth-agent-req@openssh.com"), False),
        (replace(EVERYTHING, x11=False), _request("x11-req", Boolean(False)), False),
        (replace(EVERYTHING, x11=False), _request("env", String("A") + String("b")), True),
        (NOTHING, _request("window-change", UInt32(1) * 4), True),
    ],
)
def test_requests_pass_by_the_limits(limits: Limits, request_: bytes, passes: bool) -> None:
    assert _passes(Guard(limits, (), 10), request_) == passes


@pytest.mark.parametrize(
    ("host", "port", "passes"),
    [
        ("localhost", 8888, True),
        ("127.0.0.1", 8888, True),
        ("127.8.8.8", 8888, True),
        ("::1", 8888, True),
        ("localhost", 8889, False),
        ("10.0.0.1", 8888, False),
        ("localhost.example.org", 8888, False),
        ("", 8888, False),
    ],
)
def test_forwarding_reaches_the_labelled_ports_of_the_task_alone(host: str, port: int, passes: bool) -> None:
    guard = Guard(replace(NOTHING, ports=("jupyter",)), {8888}, 10)
    refusal = _refusal(guard, _tcp(host, port))
    if passes:
        assert refusal is None
    else:
        text = "This login may not reach that port. Ports it may reach, by label: jupyter."
        assert refusal == (7, OPEN_ADMINISTRATIVELY_PROHIBITED, text)


def test_kinds_of_channels_are_refused_by_the_limits() -> None:
    ports_only = Guard(replace(NOTHING, ports=("jupyter",)), {8888}, 10)
    refusal = _refusal(ports_only, _open("session"))
    assert refusal is not None
    assert "ports only" in refusal[2]
    assert _refusal(Guard(replace(NOTHING, sftp=Sftp.READ), (), 10), _open("session")) is None
    socket = _open("direct-streamlocal@openssh.com", String("/run/x") + String("") + UInt32(0))
    assert _refusal(Guard(replace(EVERYTHING, pty=False), (), 10), socket) is None
    assert _refusal(Guard(replace(EVERYTHING, listen=False), (), 10), socket) is not None
    assert _refusal(Guard(replace(EVERYTHING, pty=False), (), 10), _open("tun@openssh.com")) is not None


@pytest.mark.parametrize("name", ["tcpip-forward", "streamlocal-forward@openssh.com"])
def test_listening_in_the_task_is_answered_with_a_failure_in_its_turn(name: str) -> None:
    guard = Guard(replace(EVERYTHING, listen=False), (), 10)
    request = String(name) + Boolean(True) + String("x") + UInt32(0)
    assert guard.from_client(MSG_GLOBAL_REQUEST, request) == (String(NOT_PASSED_ON) + Boolean(True), None)
    other = String("keepalive@openssh.com") + Boolean(True)
    assert guard.from_client(MSG_GLOBAL_REQUEST, other) == (other, None)


@pytest.mark.parametrize("kind", ["auth-agent@openssh.com", "x11", "forwarded-tcpip", "unheard-of"])
def test_a_task_opens_nothing_that_its_user_may_not_ask_for(kind: str) -> None:
    limits = replace(EVERYTHING, agent=False, x11=False, listen=False)
    allowed, answer = Guard(limits, (), 10).from_task(MSG_CHANNEL_OPEN, _open(kind))
    assert allowed is None
    assert answer is not None
    assert answer[1].startswith(UInt32(7) + UInt32(OPEN_ADMINISTRATIVELY_PROHIBITED))


def test_channels_are_counted_until_they_are_closed_or_refused() -> None:
    guard = Guard(EVERYTHING, (), 2)
    assert _refusal(guard, _open("session", number=1)) is None
    assert _refusal(guard, _open("session", number=2)) is None
    refusal = _refusal(guard, _open("session", number=3))
    assert refusal is not None
    assert refusal[:2] == (3, OPEN_RESOURCE_SHORTAGE)
    guard.from_task(MSG_CHANNEL_CLOSE, UInt32(1))
    assert _refusal(guard, _open("session", number=3)) is None
    guard.from_task(MSG_CHANNEL_OPEN_FAILURE, UInt32(2) + UInt32(2) + String("") + String(""))
    assert _refusal(guard, _open("session", number=4)) is None


def test_only_files_are_filtered_and_only_while_their_channel_is_open() -> None:
    guard = Guard(replace(NOTHING, sftp=Sftp.READ), (), 10)
    assert _passes(guard, _request("subsystem", String("sftp")))
    remove = UInt32(13) + b"\x0d" + UInt32(1) + String("file")
    data = String(remove)
    changed, _ = guard.from_client(MSG_CHANNEL_DATA, UInt32(3) + data)
    assert changed is not None
    assert len(changed) == len(UInt32(3) + data)
    assert changed != UInt32(3) + data
    assert guard.from_client(MSG_CHANNEL_DATA, UInt32(4) + data) == (UInt32(4) + data, None)
    guard.from_client(MSG_CHANNEL_CLOSE, UInt32(3))
    assert guard.from_client(MSG_CHANNEL_DATA, UInt32(3) + data) == (UInt32(3) + data, None)


@pytest.mark.parametrize("kind", [MSG_CHANNEL_OPEN, MSG_CHANNEL_REQUEST, MSG_GLOBAL_REQUEST])
def test_a_message_that_is_cut_short_is_no_message(kind: int) -> None:
    with pytest.raises(PacketDecodeError):
        Guard(NOTHING, (), 10).from_client(kind, b"\0\0\0\x09sess")
