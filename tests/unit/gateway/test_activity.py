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

from pai_backend.access.gateway.activity import MOST_REQUESTS, ChannelRequest, LoginActivity, LoginUse, kind_of

OPENSSH = "SSH-2.0-OpenSSH_9.2p1 Debian-2"
SESSION = ChannelRequest("session")


@pytest.mark.parametrize(
    ("version", "requests", "kind"),
    [
        (OPENSSH, [], LoginUse.NONE),
        (OPENSSH, [SESSION], LoginUse.NONE),
        (OPENSSH, [SESSION, ChannelRequest("pty-req"), ChannelRequest("env"), ChannelRequest("shell")], LoginUse.SHELL),
        (OPENSSH, [SESSION, ChannelRequest("shell")], LoginUse.SHELL),
        (OPENSSH, [SESSION, ChannelRequest("exec", "nvidia-smi")], LoginUse.EXEC),
        (OPENSSH, [SESSION, ChannelRequest("exec", "bash")], LoginUse.EXEC),
        (OPENSSH, [SESSION, ChannelRequest("exec", "scp -t /data")], LoginUse.EXEC),
        (OPENSSH, [SESSION, ChannelRequest("subsystem", "sftp")], LoginUse.SFTP),
        (OPENSSH, [SESSION, ChannelRequest("subsystem", "netconf")], LoginUse.EXEC),
        (OPENSSH, [ChannelRequest("direct-tcpip")], LoginUse.FORWARD),
        (OPENSSH, [ChannelRequest("jump")], LoginUse.JUMP),
        (OPENSSH, [SESSION, ChannelRequest("exec", "bash"), ChannelRequest("direct-tcpip")], LoginUse.VSCODE),
        (OPENSSH, [SESSION, ChannelRequest("exec", "~/.vscode-server/bin/x/code-server")], LoginUse.VSCODE),
        (OPENSSH, [SESSION, ChannelRequest("exec", "sh -c 'ls ~/.cursor-server'")], LoginUse.VSCODE),
        ("SSH-2.0-SSHJ_0.32.0", [SESSION, ChannelRequest("exec", "uname -sm")], LoginUse.JETBRAINS),
        (
            OPENSSH,
            [SESSION, ChannelRequest("exec", "python ~/.pycharm_helpers/packaging_tool.py list")],
            LoginUse.JETBRAINS,
        ),
    ],
)
def test_what_a_login_is_for(version: str, requests: list[ChannelRequest], kind: LoginUse) -> None:
    assert kind_of(version, requests) == kind


def test_bytes_of_channels_are_use_and_nothing_else_is() -> None:
    activity = LoginActivity()
    activity.from_client(MSG_CHANNEL_OPEN, String("session") + UInt32(0) * 3)
    activity.from_client(MSG_CHANNEL_WINDOW_ADJUST, UInt32(0) + UInt32(1 << 20))
    activity.from_client(MSG_GLOBAL_REQUEST, String("keepalive@openssh.com") + Boolean(True))
    activity.from_task(MSG_CHANNEL_WINDOW_ADJUST, UInt32(0) + UInt32(1 << 20))
    assert activity.uses == 0
    activity.from_client(MSG_CHANNEL_DATA, UInt32(0) + String(b"in"))
    activity.from_task(MSG_CHANNEL_EXTENDED_DATA, UInt32(0) + UInt32(1) + String(b"error"))
    assert (activity.uses, activity.bytes_in, activity.bytes_out) == (2, 2, 5)


def test_first_requests_are_kept_and_no_more() -> None:
    activity = LoginActivity(client_version=OPENSSH)
    activity.from_client(MSG_CHANNEL_OPEN, String("session") + UInt32(0) * 3)
    command = b"echo \xff" + b"y" * 5000
    for _ in range(100):
        activity.from_client(MSG_CHANNEL_REQUEST, UInt32(0) + String("exec") + Boolean(True) + String(command))
    assert len(activity.requests) == MOST_REQUESTS
    assert activity.requests[0] == SESSION
    assert len(activity.requests[1].subject) == 400
    assert activity.kind is LoginUse.EXEC
