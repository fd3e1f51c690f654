"""The relay's rewriting of messages, and the parts of asyncssh it stands on."""

from __future__ import annotations

import inspect

import pytest
from asyncssh.connection import SSHClientConnection, SSHConnection, SSHServerConnection
from asyncssh.constants import MSG_CHANNEL_OPEN, MSG_CHANNEL_OPEN_CONFIRMATION
from asyncssh.packet import Boolean, SSHPacket, String, UInt32

from pai_backend.access.gateway.guard import NOT_PASSED_ON
from pai_backend.access.gateway.joined.relay import (
    MAX_PACKET_BYTES,
    _EveryNumber,
    _with_bounded_packets,
    global_request,
)


@pytest.mark.parametrize("offered", [0, 1, 32768, MAX_PACKET_BYTES, 0xFFFFFFFF])
def test_only_the_packet_size_of_an_open_is_ever_changed(offered: int) -> None:
    rest = String("127.0.0.1") + UInt32(80) + b"\xff" * 9
    bounded = UInt32(min(offered, MAX_PACKET_BYTES))
    head = String(b"direct-tcpip") + UInt32(3) + UInt32(1 << 21)
    assert _with_bounded_packets(MSG_CHANNEL_OPEN, head + UInt32(offered) + rest) == head + bounded + rest
    head = UInt32(3) + UInt32(4) + UInt32(1 << 21)
    assert _with_bounded_packets(MSG_CHANNEL_OPEN_CONFIRMATION, head + UInt32(offered)) == head + bounded


def testglobal_requests_pass_unchanged_but_those_about_host_keys() -> None:
    forward = String(b"tcpip-forward") + Boolean(True) + String(b"") + UInt32(0)
    assert global_request(forward) == (b"tcpip-forward", True, forward)
    keys = String(b"hostkeys-00@openssh.com") + Boolean(False) + String(b"the task's host key")
    name, wants_reply, payload = global_request(keys)
    assert (name, wants_reply) == (b"hostkeys-00@openssh.com", False)
    assert b"host key" not in payload


@pytest.mark.parametrize("name", [b"hostkeys_prove_00@openssh.com", b"hostkeys-00_at_openssh_dot_com"])
def test_questions_about_host_keys_pass_in_no_spelling_that_asyncssh_takes(name: bytes) -> None:
    _, _, payload = global_request(String(name) + Boolean(True))
    assert payload == String(NOT_PASSED_ON) + Boolean(True)


def test_every_channel_number_leads_to_the_leg() -> None:
    table = _EveryNumber("leg")
    assert table[0] == table[0xFFFFFFFF] == "leg"
    assert list(table.values()) == []


def test_the_undocumented_parts_of_asyncssh_are_as_the_relay_needs_them() -> None:
    """One place that fails when a new asyncssh changes what the relay overrides or calls."""
    assert list(inspect.signature(SSHConnection.process_packet).parameters) == ["self", "pkttype", "pktid", "packet"]
    assert list(inspect.signature(SSHConnection.send_packet).parameters) == ["self", "pkttype", "args", "handler"]
    assert list(inspect.signature(SSHConnection._send_kexinit).parameters) == ["self"]
    assert list(inspect.signature(SSHConnection.send_newkeys).parameters) == ["self", "k", "h"]
    assert list(inspect.signature(SSHConnection._make_global_request).parameters) == ["self", "request", "args"]
    assert list(inspect.signature(SSHConnection._recv_data).parameters) == ["self"]
    assert list(inspect.signature(SSHConnection._cancel_login_timer).parameters) == ["self"]
    assert list(inspect.signature(SSHConnection.send_userauth_failure).parameters) == ["self", "partial_success"]
    proof = ["self", "username", "key_data", "msg", "signature"]
    assert list(inspect.signature(SSHServerConnection.validate_public_key).parameters) == proof
    certified = inspect.signature(SSHServerConnection._validate_openssh_certificate)
    assert list(certified.parameters) == ["self", "username", "cert"]
    for leg in (SSHClientConnection, SSHServerConnection):
        assert list(inspect.signature(leg.__init__).parameters)[:3] == ["self", "loop", "options"]
    source = inspect.getsource(SSHConnection._recv_packet)
    assert "handler = self._channels[recv_chan]" in source
    assert "handler.process_packet(pkttype, seq, packet)" in source
    made = inspect.getsource(SSHConnection.__init__)
    for name in ("_channels", "_transport", "_kex_complete", "_inpbuf"):
        assert f"self.{name}" in made
    for name in ("_recv_encryption", "_send_encryption", "_decompressor", "_compressor", "_recv_seq", "_send_seq"):
        assert f"self.{name}" in made
    for name in ("_max_recv_pktlen", "_rekey_bytes", "_rekey_bytes_sent", "_rekey_seconds", "_rekey_time"):
        assert f"self.{name}" in made
    for name in ("_auth_complete", "_auth_final", "_client_kexinit", "_server_kexinit"):
        assert f"self.{name}" in made
    assert SSHPacket(b"\x01\x02").get_full_payload() == b"\x01\x02"
