"""Which bytes of a login are use of its job."""

from __future__ import annotations

from asyncssh.constants import MSG_CHANNEL_DATA, MSG_CHANNEL_REQUEST, MSG_CHANNEL_WINDOW_ADJUST
from asyncssh.packet import Boolean, String, UInt32

from pai_backend.access.gateway.activity import ChannelRequest, LoginActivity
from pai_backend.access.gateway.noting import TRICKLE_BYTES, TRICKLE_S, LoginUsage


def data(count: int) -> bytes:
    return UInt32(0) + String(b"x" * count)


def test_a_byte_is_use_and_what_is_no_data_is_none() -> None:
    activity, usage = LoginActivity(), LoginUsage()
    assert not usage.grown(activity, 0)
    activity.from_client(MSG_CHANNEL_DATA, data(1))
    assert usage.grown(activity, 1)
    activity.from_client(MSG_CHANNEL_WINDOW_ADJUST, UInt32(0) + UInt32(100_000))
    activity.from_client(MSG_CHANNEL_REQUEST, UInt32(0) + String(b"keepalive@openssh.com") + Boolean(True))
    assert not usage.grown(activity, 2)
    activity.from_task(MSG_CHANNEL_DATA, data(1))
    assert usage.grown(activity, 3)


def test_heartbeats_within_channels_are_no_use_and_work_there_is() -> None:
    for first in (ChannelRequest("jump"), ChannelRequest("exec", "bash ~/.vscode-server/start")):
        activity, usage = LoginActivity(requests=[first]), LoginUsage()
        usage.grown(activity, 0)
        for beat in range(1, 3600 // 5):
            for _ in range(2):  # of each connection, 13 bytes and a frame's header there and back
                activity.from_client(MSG_CHANNEL_DATA, data(19))
                activity.from_task(MSG_CHANNEL_DATA, data(15))
            assert not usage.grown(activity, beat * 5.0)
        activity.from_task(MSG_CHANNEL_DATA, data(TRICKLE_BYTES + 1))
        assert usage.grown(activity, 3600)
        assert not usage.grown(activity, 3600 + TRICKLE_S)
