"""What a login is told to be for, and which messages count as its use."""

from __future__ import annotations

import pytest
from asyncssh.constants import (
    MSG_CHANNEL_DATA,
    MSG_CHANNEL_EXTENDED_DATA,
    MSG_CHANNEL_OPEN,
    MSG_CHANNEL_REQUEST,
    MSG_CHANNEL_WINDOW_ADJUST,
    MSG_GLOBAL_REQUEST,
)
from asyncssh.packet import Boolean, String, UInt32

from pai_backend.access.gateway.activity import MOST_REQUESTS, Activity, Kind, Request, kind_of

OPENSSH = "SSH-2.0-OpenSSH_9.2p1 Debian-2"
SESSION = Request("session")


@pytest.mark.parametrize(
    ("version", "requests", "kind"),
    [
        (OPENSSH, [], Kind.NONE),
        (OPENSSH, [SESSION], Kind.NONE),
        (OPENSSH, [SESSION, Request("pty-req"), Request("env"), Request("shell")], Kind.SHELL),
        (OPENSSH, [SESSION, Request("shell")], Kind.SHELL),
        (OPENSSH, [SESSION, Request("exec", "nvidia-smi")], Kind.EXEC),
        (OPENSSH, [SESSION, Request("exec", "bash")], Kind.EXEC),
        (OPENSSH, [SESSION, Request("exec", "scp -t /data")], Kind.EXEC),
        (OPENSSH, [SESSION, Request("subsystem", "sftp")], Kind.SFTP),
        (OPENSSH, [SESSION, Request("subsystem", "netconf")], Kind.EXEC),
        (OPENSSH, [Request("direct-tcpip")], Kind.FORWARD),
        (OPENSSH, [Request("jump")], Kind.JUMP),
        (OPENSSH, [SESSION, Request("exec", "bash"), Request("direct-tcpip")], Kind.VSCODE),
        (OPENSSH, [SESSION, Request("exec", "~/.vscode-server/bin/x/code-server")], Kind.VSCODE),
        (OPENSSH, [SESSION, Request("exec", "sh -c 'ls ~/.cursor-server'")], Kind.VSCODE),
        ("SSH-2.0-SSHJ_0.32.0", [SESSION, Request("exec", "uname -sm")], Kind.JETBRAINS),
        (OPENSSH, [SESSION, Request("exec", "python ~/.pycharm_helpers/packaging_tool.py list")], Kind.JETBRAINS),
    ],
)
def test_what_a_login_is_for(version: str, requests: list[Request], kind: Kind) -> None:
    assert kind_of(version, requests) == kind


def test_bytes_of_channels_are_use_and_nothing_else_is() -> None:
    activity = Activity()
    activity.from_client(MSG_CHANNEL_OPEN, String("session") + UInt32(0) * 3)
    activity.from_client(MSG_CHANNEL_WINDOW_ADJUST, UInt32(0) + UInt32(1 << 20))
    activity.from_client(MSG_GLOBAL_REQUEST, String("keepalive@openssh.com") + Boolean(True))
    activity.from_task(MSG_CHANNEL_WINDOW_ADJUST, UInt32(0) + UInt32(1 << 20))
    assert activity.uses == 0
    activity.from_client(MSG_CHANNEL_DATA, UInt32(0) + String(b"in"))
    activity.from_task(MSG_CHANNEL_EXTENDED_DATA, UInt32(0) + UInt32(1) + String(b"error"))
    assert (activity.uses, activity.bytes_in, activity.bytes_out) == (2, 2, 5)


def test_first_requests_are_kept_and_no_more() -> None:
    activity = Activity(client_version=OPENSSH)
    activity.from_client(MSG_CHANNEL_OPEN, String("session") + UInt32(0) * 3)
    command = b"echo \xff" + b"y" * 5000
    for _ in range(100):
        activity.from_client(MSG_CHANNEL_REQUEST, UInt32(0) + String("exec") + Boolean(True) + String(command))
    assert len(activity.requests) == MOST_REQUESTS
    assert activity.requests[0] == SESSION
    assert len(activity.requests[1].subject) == 400
    assert activity.kind is Kind.EXEC
