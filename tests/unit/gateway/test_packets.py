"""Packets as asyncssh makes and reads them, in both directions, for each cipher that is done in few steps."""

from __future__ import annotations

import inspect
import os

import pytest
from asyncssh.connection import SSHConnection
from asyncssh.encryption import Encryption, get_encryption, get_encryption_params

from pai_backend.access.gateway.packets import HEAD_BYTES, TAG_BYTES, Seal, seal_of

CIPHERS = [b"aes128-gcm@openssh.com", b"aes256-gcm@openssh.com", b"chacha20-poly1305@openssh.com"]
NUMBERS = [0, 1, 77, 0xFFFFFFFF]


def pair(cipher: bytes) -> tuple[Encryption, Encryption]:
    """Two ends of one direction, with the same key and nonce."""
    key_bytes, iv_bytes = get_encryption_params(cipher)[:2]
    key, iv = os.urandom(key_bytes), os.urandom(iv_bytes)
    first, second = (get_encryption(cipher, key, iv, b"", b"", False) for _ in range(2))
    return first, second


def sealing(encryption: Encryption) -> Seal:
    seal = seal_of(encryption)
    assert seal is not None
    return seal


@pytest.mark.parametrize("cipher", CIPHERS, ids=bytes.decode)
def test_asyncssh_reads_what_is_sealed_and_its_packets_are_opened(cipher: bytes) -> None:
    ours, theirs = pair(cipher)
    seal = sealing(ours)
    for number in NUMBERS:  # asyncssh's own state goes on with each, so the order of both ways must be right
        text = os.urandom(64)
        sealed = seal.seal(text, number)
        first, length = theirs.decrypt_header(number, sealed[:16], HEAD_BYTES)
        assert int.from_bytes(length, "big") == len(text)
        assert theirs.decrypt_packet(number, first, sealed[16:-TAG_BYTES], HEAD_BYTES, sealed[-TAG_BYTES:]) == text
    ours, theirs = pair(cipher)
    seal = sealing(ours)
    for number in NUMBERS:
        text = os.urandom(48)
        packet, tag = theirs.encrypt_packet(number, len(text).to_bytes(HEAD_BYTES, "big"), text)
        received = memoryview(packet + tag)
        assert seal.length(received[:HEAD_BYTES], number) == len(text)
        assert seal.open(received, number) == seal.open(received, number) == text
        seal.opened()


@pytest.mark.parametrize("cipher", CIPHERS, ids=bytes.decode)
@pytest.mark.parametrize("place", [0, HEAD_BYTES, 40, -1], ids=["length", "first", "middle", "tag"])
def test_what_was_changed_on_its_way_is_not_opened(cipher: bytes, place: int) -> None:
    ours, theirs = pair(cipher)
    sealed = bytearray(sealing(theirs).seal(os.urandom(64), 5))
    sealed[place] ^= 1
    assert sealing(ours).open(memoryview(bytes(sealed)), 5) is None


def test_other_ciphers_stay_with_asyncssh() -> None:
    assert seal_of(None) is None
    key_bytes, iv_bytes = get_encryption_params(b"aes128-ctr", b"hmac-sha2-256")[:2]
    other = get_encryption(b"aes128-ctr", bytes(key_bytes), bytes(iv_bytes), b"hmac-sha2-256", bytes(32), False)
    assert seal_of(other) is None


def test_the_undocumented_parts_of_asyncssh_are_as_packets_need_them() -> None:
    """One place that fails when a new asyncssh changes how it receives or sends."""
    assert list(inspect.signature(SSHConnection._recv_pkthdr).parameters) == ["self"]
    assert list(inspect.signature(SSHConnection._send).parameters) == ["self", "data"]
    assert "while self._inpbuf and self._recv_handler():" in inspect.getsource(SSHConnection._recv_data)
    assert "self._recv_handler = self._recv_pkthdr" in inspect.getsource(SSHConnection._finish_recv_packet)
    sent = inspect.getsource(SSHConnection.send_packet)
    assert "self._rekey_bytes_sent >= self._rekey_bytes" in sent
    assert "time.monotonic() >= self._rekey_time" in sent
    assert "self._send_seq = (seq + 1) & 0xffffffff" in sent
