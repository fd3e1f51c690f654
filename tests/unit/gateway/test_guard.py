"""What of a limited login's messages may pass, and what who asked is answered."""

from __future__ import annotations

from dataclasses import replace

import pytest
from asyncssh.constants import (
    MSG_CHANNEL_CLOSE,
    MSG_CHANNEL_DATA,
    MSG_CHANNEL_EXTENDED_DATA,
    MSG_CHANNEL_FAILURE,
    MSG_CHANNEL_OPEN,
    MSG_CHANNEL_OPEN_CONFIRMATION,
    MSG_CHANNEL_OPEN_FAILURE,
    MSG_CHANNEL_REQUEST,
    MSG_CHANNEL_SUCCESS,
    MSG_GLOBAL_REQUEST,
    MSG_REQUEST_FAILURE,
    MSG_REQUEST_SUCCESS,
    OPEN_ADMINISTRATIVELY_PROHIBITED,
    OPEN_RESOURCE_SHORTAGE,
)
from asyncssh.packet import Boolean, SSHPacket, String, UInt32

from pai_backend.access.broker.rights import EVERYTHING, NOTHING, Limits, Sftp
from pai_backend.access.gateway.guard import NOT_PASSED_ON, Guard
from pai_backend.engine.ssh_wire import PacketDecodeError

FILES = replace(NOTHING, sftp=Sftp.WRITE)
READS = replace(NOTHING, sftp=Sftp.READ)
SFTP = String("sftp")
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


def _with_session(limits: Limits, client: int = 7, task: int = 3) -> Guard:
    """The rules of a login that has one session open."""
    guard = Guard(limits, (), 10)
    _open_session(guard, client, task)
    return guard


def _open_session(guard: Guard, client: int, task: int) -> None:
    if guard.from_client(MSG_CHANNEL_OPEN, _open("session", number=client))[0] is not None:
        guard.from_task(
            MSG_CHANNEL_OPEN_CONFIRMATION, UInt32(client) + UInt32(task) + UInt32(1 << 21) + UInt32(1 << 15)
        )


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
        (replace(EVERYTHING, pty=False), _request("pty_req", PTY), False),  # asyncssh takes it for pty-req
        (replace(EVERYTHING, x11=False), _request("x11_req", Boolean(False)), False),
        (replace(EVERYTHING, agent=False), _request("auth_agent_req_at_openssh_dot_com"), False),
        (replace(EVERYTHING, x11=False), _request("env", String("BASH_ENV") + String("/tmp/x")), False),
        (FILES, _request("env", String("LD_PRELOAD") + String("/tmp/x.so")), False),
        (FILES, _request("env", String("LANGUAGE") + String("en")), False),
        (FILES, _request("env", String("LANG") + String("de_DE.UTF-8@euro")), True),
        (FILES, _request("env", String("LC_ALL") + String("C")), True),
        (FILES, _request("env", String("LC_ALL") + String("../../tmp/x")), False),
        (EVERYTHING, _request("env", String("BASH_ENV") + String("/tmp/x")), True),
        (FILES, _request("signal", String("KILL")), False),
        (FILES, _request("break", UInt32(1)), False),
        (FILES, _request("winadj@putty.projects.tartarus.org"), False),
        (FILES, _request("window-change", UInt32(1) * 4), True),
    ],
)
def test_requests_pass_by_the_limits(limits: Limits, request_: bytes, passes: bool) -> None:
    assert _passes(_with_session(limits), request_) == passes


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


@pytest.mark.parametrize(
    "name",
    [
        *("tcpip-forward", "streamlocal-forward@openssh.com"),
        *("tcpip_forward", "streamlocal_forward_at_openssh_dot_com"),  # asyncssh takes them for those
    ],
)
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


def test_channels_are_counted_until_both_ends_have_closed_them_or_they_are_refused() -> None:
    guard = Guard(EVERYTHING, (), 2)
    _open_session(guard, 1, 11)
    assert _refusal(guard, _open("session", number=2)) is None
    refusal = _refusal(guard, _open("direct-streamlocal@openssh.com", number=3))
    assert refusal is not None
    assert refusal[:2] == (3, OPEN_RESOURCE_SHORTAGE)
    assert "has 2 channels open, the maximum" in refusal[2]
    guard.from_task(MSG_CHANNEL_CLOSE, UInt32(1))
    assert _refusal(guard, _open("session", number=3)) is not None
    guard.from_client(MSG_CHANNEL_CLOSE, UInt32(11))
    assert _refusal(guard, _open("session", number=3)) is None
    guard.from_task(MSG_CHANNEL_OPEN_FAILURE, UInt32(2) + UInt32(2) + String("") + String(""))
    assert _refusal(guard, _open("session", number=4)) is None


def test_channels_that_the_task_opens_are_counted_too() -> None:
    guard = Guard(EVERYTHING, (), 2)
    arrived = [guard.from_task(MSG_CHANNEL_OPEN, _open("forwarded-tcpip", number=n)) for n in (1, 2, 3)]
    assert [allowed is not None for allowed, _ in arrived] == [True, True, False]
    assert arrived[2][1] is not None
    assert arrived[2][1][1].startswith(UInt32(3) + UInt32(OPEN_RESOURCE_SHORTAGE))
    guard.from_client(MSG_CHANNEL_OPEN_CONFIRMATION, UInt32(1) + UInt32(50) + UInt32(0) * 2)
    guard.from_client(MSG_CHANNEL_OPEN_FAILURE, UInt32(2) + UInt32(2) + String("") + String(""))
    assert _refusal(guard, _open("session", number=51)) is None
    assert _refusal(guard, _open("session", number=52)) is not None
    guard.from_client(MSG_CHANNEL_CLOSE, UInt32(1))
    guard.from_task(MSG_CHANNEL_CLOSE, UInt32(50))
    assert _refusal(guard, _open("session", number=52)) is None


def test_a_number_means_one_channel_at_a_time() -> None:
    guard = Guard(EVERYTHING, (), 10)
    _open_session(guard, 1, 11)
    with pytest.raises(PacketDecodeError):
        guard.from_client(MSG_CHANNEL_OPEN, _open("session", number=1))
    with pytest.raises(PacketDecodeError):
        guard.from_task(MSG_CHANNEL_OPEN_CONFIRMATION, UInt32(1) + UInt32(12) + UInt32(0) * 2)
    with pytest.raises(PacketDecodeError):
        guard.from_client(MSG_CHANNEL_OPEN_CONFIRMATION, UInt32(11) + UInt32(2) + UInt32(0) * 2)


@pytest.mark.parametrize("limits", [EVERYTHING, FILES, READS, replace(EVERYTHING, pty=False)])
@pytest.mark.parametrize("second", ["subsystem", "shell", "exec"])
def test_one_program_runs_on_a_channel(limits: Limits, second: str) -> None:
    guard = _with_session(limits)
    assert _passes(guard, _request("subsystem", SFTP))
    assert not _passes(guard, _request(second, SFTP))  # before the answer to the first
    guard.from_task(MSG_CHANNEL_SUCCESS, UInt32(7))
    assert not _passes(guard, _request(second, SFTP))
    _open_session(guard, 8, 4)
    assert guard.from_client(MSG_CHANNEL_REQUEST, _request("subsystem", SFTP, number=4))[0] is not None


@pytest.mark.parametrize(("limits", "again"), [(EVERYTHING, True), (FILES, True), (READS, False)])
def test_a_program_that_did_not_start_can_be_asked_for_again_but_not_behind_a_filter(
    limits: Limits, again: bool
) -> None:
    guard = _with_session(limits)
    assert _passes(guard, _request("env", String("LANG") + String("C")))
    assert _passes(guard, _request("subsystem", SFTP))
    guard.from_task(MSG_CHANNEL_FAILURE, UInt32(7))  # of the variable
    assert not _passes(guard, _request("subsystem", SFTP))
    guard.from_task(MSG_CHANNEL_FAILURE, UInt32(7))
    guard.from_task(MSG_CHANNEL_FAILURE, UInt32(7))
    assert _passes(guard, _request("subsystem", SFTP)) == again


def test_a_program_asked_for_without_an_answer_counts_as_started() -> None:
    guard = _with_session(EVERYTHING)
    silent = UInt32(3) + String("exec") + Boolean(False) + String("true")
    assert guard.from_client(MSG_CHANNEL_REQUEST, silent) == (silent, None)
    allowed, _ = guard.from_client(MSG_CHANNEL_REQUEST, silent)
    assert allowed == UInt32(3) + String(NOT_PASSED_ON) + Boolean(False)


REMOVE = String(b"\x0d" + UInt32(1) + String("file"))


def test_reading_only_holds_from_the_first_byte_of_a_channel_to_its_last() -> None:
    guard = _with_session(READS)
    data = UInt32(3) + String(REMOVE)
    assert guard.from_client(MSG_CHANNEL_DATA, data) == (None, None)  # asyncssh keeps it for the subsystem
    assert _passes(guard, _request("subsystem", SFTP))
    half = len(data) // 2
    first = UInt32(3) + UInt32(half - 8) + data[8:half]
    guard.from_client(MSG_CHANNEL_DATA, first)
    assert not _passes(guard, _request("subsystem", SFTP))  # would begin the filter anew, and not the server
    rest, _ = guard.from_client(MSG_CHANNEL_DATA, UInt32(3) + UInt32(len(data) - half) + data[half:])
    assert rest is not None
    changed, _ = guard.from_client(MSG_CHANNEL_DATA, data)
    assert changed is not None
    assert len(changed) == len(data)
    assert changed != data
    assert guard.from_client(MSG_CHANNEL_DATA, UInt32(4) + data[4:]) == (None, None)
    extended = UInt32(3) + UInt32(1) + String(REMOVE)
    assert guard.from_client(MSG_CHANNEL_EXTENDED_DATA, extended) == (None, None)
    guard.from_client(MSG_CHANNEL_CLOSE, UInt32(3))
    assert guard.from_client(MSG_CHANNEL_DATA, data) == (None, None)
    guard.from_task(MSG_CHANNEL_CLOSE, UInt32(7))
    _open_session(guard, 7, 3)
    assert guard.from_client(MSG_CHANNEL_DATA, data) == (None, None)


def _asks(guard: Guard, name: str, *, wants_reply: bool = True) -> bool:
    """Whether a global request passes; it is answered with success if it does, and with failure otherwise."""
    allowed, _ = guard.from_client(MSG_GLOBAL_REQUEST, String(name) + Boolean(wants_reply) + String("") + UInt32(0))
    assert allowed is not None
    passes = NOT_PASSED_ON not in allowed
    if wants_reply:
        guard.from_task(MSG_REQUEST_SUCCESS if passes else MSG_REQUEST_FAILURE, b"")
    return passes


@pytest.mark.parametrize(
    "name", ["tcpip-forward", "streamlocal-forward@openssh.com", "streamlocal_forward_at_openssh_dot_com"]
)
def test_listeners_and_channels_are_bounded_together(name: str) -> None:
    guard = Guard(EVERYTHING, (), 3)
    assert [_asks(guard, name), _asks(guard, name, wants_reply=False)] == [True, True]
    _open_session(guard, 1, 11)
    assert not _asks(guard, name)
    assert _asks(guard, "keepalive@openssh.com")
    assert _refusal(guard, _open("session", number=9)) is not None
    assert _asks(guard, f"cancel-{name}")
    assert _refusal(guard, _open("session", number=9)) is None


def test_a_listener_that_the_task_refuses_does_not_count() -> None:
    guard = Guard(EVERYTHING, (), 1)
    for _ in range(3):
        asked = String("tcpip-forward") + Boolean(True) + String("") + UInt32(1)
        assert guard.from_client(MSG_GLOBAL_REQUEST, asked) == (asked, None)
        guard.from_task(MSG_REQUEST_FAILURE, b"")
    assert _refusal(guard, _open("session", number=9)) is None


@pytest.mark.parametrize("name", ["LC_ALL=", "LC_X=1", "LC_", "LC_A\0", "LC_é", "lc_all", "LANGUAGE", "LC_" + "A" * 99])
def test_a_name_that_is_no_locale_s_does_not_pass(name: str) -> None:
    guard = _with_session(FILES)
    assert not _passes(guard, _request("env", String(name) + String("C")))


@pytest.mark.parametrize("limits", [FILES, READS])
def test_a_request_on_a_channel_that_is_not_open_breaks_the_protocol(limits: Limits) -> None:
    with pytest.raises(PacketDecodeError):
        Guard(limits, (), 10).from_client(MSG_CHANNEL_REQUEST, _request("subsystem", SFTP))


@pytest.mark.parametrize("kind", [MSG_CHANNEL_OPEN, MSG_CHANNEL_REQUEST, MSG_GLOBAL_REQUEST])
def test_a_message_that_is_cut_short_is_no_message(kind: int) -> None:
    with pytest.raises(PacketDecodeError):
        Guard(NOTHING, (), 10).from_client(kind, b"\0\0\0\x09sess")
