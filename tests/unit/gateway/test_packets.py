"""Packets as asyncssh makes and reads them, in both directions, for each cipher that is done in few steps."""

from __future__ import annotations

import asyncio
import contextlib
import inspect
import os
from collections import deque
from typing import cast

import pytest
from asyncssh.channel import SSHChannel
from asyncssh.connection import SSHConnection
from asyncssh.constants import MSG_CHANNEL_DATA, MSG_CHANNEL_REQUEST, MSG_IGNORE
from asyncssh.encryption import Encryption, get_encryption, get_encryption_params
from asyncssh.misc import ProtocolError
from asyncssh.packet import SSHPacket, UInt32

from pai_backend.access.gateway.joined import packets as module
from pai_backend.access.gateway.joined.packets import HEAD_BYTES, TAG_BYTES, Packets, Seal, seal_of

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


class Noting:
    """A channel that notes what it is given."""

    def __init__(self) -> None:
        self.given: list[tuple[int, int, bytes]] = []

    def process_packet(self, kind: int, number: int, packet: SSHPacket) -> bool:
        self.given.append((number, kind, packet.get_remaining_payload()))
        return True


def receiving(encryption: Encryption, channel: Noting) -> Packets:
    """A connection that is logged in, as far as receiving goes, with ``channel`` as its number 3."""
    connection = Packets.__new__(Packets)
    connection._recv_encryption, connection._recv_seq = encryption, 0
    connection._auth_final, connection._decompressor, connection._transport = True, None, asyncio.Transport()
    connection._inpbuf, connection._max_recv_pktlen, connection._recv_blocksize = b"", 1 << 18, 8
    connection._channels = cast("dict[int, SSHChannel[bytes]]", {3: channel})
    connection._in = None, None
    return connection


def packet_of(seal: Seal, number: int, kind: int, payload: bytes) -> bytes:
    padding = 4 + -(len(payload) + 6) % seal.block_bytes
    return seal.seal(bytes((padding, kind)) + payload + bytes(padding), number)


@pytest.mark.parametrize("cipher", CIPHERS, ids=bytes.decode)
@pytest.mark.parametrize("piece", [1, 7, 1448, 1 << 18])
def test_messages_come_whole_and_in_order_however_they_are_cut(cipher: bytes, piece: int) -> None:
    ours, theirs = pair(cipher)
    seal, channel = sealing(theirs), Noting()
    contents = [os.urandom(size) for size in (0, 1, 5, 300, 5000)]
    sent = b""
    for number, content in enumerate(contents):
        sent += packet_of(seal, 2 * number, MSG_CHANNEL_DATA, UInt32(3) + content)
        sent += packet_of(seal, 2 * number + 1, MSG_IGNORE, UInt32(0))
    last = packet_of(seal, 2 * len(contents), MSG_CHANNEL_REQUEST, UInt32(3) + b"request")
    connection = receiving(ours, channel)
    for start in range(0, len(sent), piece):
        connection._inpbuf += sent[start : start + piece]
        assert not connection._recv_pkthdr(), "asyncssh was given something to do"
    assert channel.given == [(2 * n, MSG_CHANNEL_DATA, content) for n, content in enumerate(contents)]
    assert (connection._inpbuf, connection._recv_seq) == (b"", 2 * len(contents))
    connection._inpbuf = last
    assert connection._recv_pkthdr(), "a request is asyncssh's business"
    assert connection._packet + connection._inpbuf == last


@pytest.mark.parametrize("cipher", CIPHERS, ids=bytes.decode)
def test_what_is_wrong_is_left_to_asyncssh_as_it_came(cipher: bytes) -> None:
    for wrong in ("tag", "number of a channel", "size", "nothing in it"):
        ours, theirs = pair(cipher)
        channel, number, seal = Noting(), 4 if wrong == "number of a channel" else 3, sealing(theirs)
        data = UInt32(number) + bytes(1 << 18 if wrong == "size" else 4)
        sent = bytearray(packet_of(seal, 0, MSG_CHANNEL_DATA, data) if wrong != "nothing in it" else seal.seal(b"", 0))
        sent[-1] ^= wrong == "tag"
        connection = receiving(ours, channel)
        connection._inpbuf = bytes(sent)
        with pytest.raises(ProtocolError) if wrong == "size" else contextlib.nullcontext():
            assert connection._recv_pkthdr()
        assert connection._packet + connection._inpbuf == sent or wrong == "size"
        assert (channel.given, connection._recv_seq) == ([], 0)


def test_other_ciphers_stay_with_asyncssh() -> None:
    assert seal_of(None) is None
    key_bytes, iv_bytes = get_encryption_params(b"aes128-ctr", b"hmac-sha2-256")[:2]
    other = get_encryption(b"aes128-ctr", bytes(key_bytes), bytes(iv_bytes), b"hmac-sha2-256", bytes(32), False)
    assert seal_of(other) is None


def test_the_oldest_of_too_many_seals_is_made_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_at_hand", deque())
    monkeypatch.setattr(module, "MOST_AT_HAND", 2)
    ends = [pair(CIPHERS[0]) for _ in range(3)]
    channels = [Noting() for _ in ends]
    legs = [receiving(ours, channel) for (ours, _), channel in zip(ends, channels, strict=True)]
    seals = [sealing(theirs) for _, theirs in ends]
    for number in range(2):
        for leg, seal in zip(legs, seals, strict=True):
            leg._inpbuf += packet_of(seal, number, MSG_CHANNEL_DATA, UInt32(3) + bytes((number,)))
            assert not leg._recv_pkthdr()
        assert [leg._in[1] is not None for leg in legs] == [False, True, True]
    assert all(channel.given == [(n, MSG_CHANNEL_DATA, bytes((n,))) for n in range(2)] for channel in channels)


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
