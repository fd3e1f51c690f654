"""A first packet of the key exchange that was sent on a guess counts only when both sides prefer the same."""

from __future__ import annotations

import pytest
from asyncssh.connection import SSHServerConnection
from asyncssh.constants import MSG_KEXINIT
from asyncssh.packet import Boolean, Byte, MPInt, NameList, String, UInt32

from pai_backend.access.gateway.joined.front import JoinedClient
from pai_backend.engine.asyncssh_private.guesses import Guessing, guessed_wrong, key_in
from pai_backend.engine.ssh_wire import PacketDecodeError

CURVE, NEW, NIST = b"curve25519-sha256", b"mlkem768x25519-sha256", b"ecdh-sha2-nistp256"
ED25519, RSA = b"ssh-ed25519", b"rsa-sha2-512"


def kexinit(methods: list[bytes], host_keys: list[bytes], follows: bool = False) -> bytes:
    lists = b"".join(map(NameList, ([b"aes128-ctr"],) * 2 + ([b"hmac-sha2-256"],) * 2 + ([b"none"],) * 2 + ([],) * 2))
    head = Byte(MSG_KEXINIT) + bytes(16) + NameList(methods) + NameList(host_keys)
    return head + lists + Boolean(follows) + UInt32(0)


@pytest.mark.parametrize(
    ("methods", "host_keys", "wrong"),
    [
        ([CURVE], [ED25519], False),
        ([CURVE, NEW], [ED25519, RSA], False),
        ([NEW, CURVE], [ED25519], True),  # the client's would be chosen all the same
        ([CURVE], [RSA, ED25519], True),
        ([NIST], [RSA], True),
        ([], [ED25519], True),
    ],
)
def test_a_guess_is_wrong_when_the_server_prefers_anything_else(
    methods: list[bytes], host_keys: list[bytes], wrong: bool
) -> None:
    ours = kexinit(methods, host_keys)
    assert guessed_wrong(kexinit([CURVE, NIST], [ED25519, RSA], follows=True), ours) is wrong
    assert not guessed_wrong(kexinit([CURVE, NIST], [ED25519, RSA]), ours)


def test_a_message_that_is_cut_short_is_an_error() -> None:
    with pytest.raises(PacketDecodeError):
        guessed_wrong(kexinit([CURVE], [ED25519])[:-5], kexinit([CURVE], [ED25519]))


@pytest.mark.parametrize("connection", [JoinedClient, Guessing], ids=["gateway", "local task"])
def test_connections_of_clients_are_told_of_every_exchange(connection: type[SSHServerConnection]) -> None:
    assert connection._packet_handlers[MSG_KEXINIT] is Guessing._process_kexinit
    ours, theirs = connection._packet_handlers, SSHServerConnection._packet_handlers
    assert {kind: ours[kind] for kind in ours if kind != MSG_KEXINIT} == {
        kind: theirs[kind] for kind in theirs if kind != MSG_KEXINIT
    }


@pytest.mark.parametrize(
    "data",
    [
        String("ssh-rsa") + MPInt(0) + MPInt((1 << 2047) + 1),
        String("ssh-rsa") + MPInt(65537) + MPInt(-1),
        String("ssh-dss") + MPInt(1 << 30_000) + MPInt(5) + MPInt(2) + MPInt(5),
        String("ecdsa-sha2-nistp256") + String("nistp256") + String(b"\x04" + bytes(64)),
        String("sk-ssh-ed25519@openssh.com") + String(bytes(32)) + String(b"\xff"),
        String(b"ssh-\xff"),
        b"",
    ],
)
def test_numbers_that_are_no_key_are_none_and_no_fault(data: bytes) -> None:
    assert key_in(data) is None
