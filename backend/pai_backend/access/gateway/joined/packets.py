"""SSH packets of the connection layer, opened and sealed in few steps (RFC 4253 §6).

asyncssh copies all that was received twice for each packet, and sends an empty message before each that it sends,
which helps only where a cipher chains packets (RFC 4251 §9.3.1). Here the messages that carry data are opened where
they lie and sealed at once, for the ciphers that authenticate by themselves. What is rare, wrong, incomplete or of
another cipher stays untouched for asyncssh, which also keeps all state: sequence numbers, keys and the nonces of GCM.
"""

from __future__ import annotations

import os
import struct
import time
import weakref
from collections import deque
from typing import Any, Protocol

from asyncssh.crypto.chacha import ChachaCipher
from asyncssh.crypto.cipher import GCMCipher
from asyncssh.encryption import ChachaEncryption, Encryption, GCMEncryption
from asyncssh.misc import ProtocolError
from asyncssh.packet import PacketDecodeError, SSHPacket, SSHPacketLogger
from cryptography.exceptions import InvalidSignature, InvalidTag
from cryptography.hazmat.primitives.ciphers import Cipher, CipherContext
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.ciphers.algorithms import ChaCha20
from cryptography.hazmat.primitives.poly1305 import Poly1305

from pai_backend.access.gateway.joined.lean import Lean
from pai_backend.engine.ssh_wire import (
    MSG_CHANNEL_DATA,
    MSG_CHANNEL_EXTENDED_DATA,
    MSG_CHANNEL_WINDOW_ADJUST,
    MSG_GLOBAL_REQUEST,
    MSG_IGNORE,
)

HEAD_BYTES = 4  # the length of a packet, before it
TAG_BYTES = 16  # after it
LEAST_PADDING_BYTES = 4
RANDOM_BYTES = 4096  # asked for at once, for paddings
MOST_AT_HAND = 128  # seals kept for the next message; of AES-GCM one is 2.4 KiB and made in 1.5 us (cryptography 50)

_TAKEN = frozenset({MSG_CHANNEL_WINDOW_ADJUST, MSG_CHANNEL_DATA, MSG_CHANNEL_EXTENDED_DATA})


class Seal(Protocol):
    """One direction's cipher. ``number`` is the packet's sequence number."""

    block_bytes: int
    """A packet without its length is a multiple of this."""

    def length(self, head: memoryview, number: int) -> int:
        """How long the packet is that begins so, without ``head`` and tag."""

    def open(self, packet: memoryview, number: int) -> bytes | None:
        """What a packet says; None when it was changed on its way. Can be asked again until ``opened``."""

    def opened(self) -> None:
        """The next packet is another one."""

    def seal(self, text: bytes, number: int) -> bytes:
        """The packet that says ``text``."""


class Gcm:
    """AES-GCM as RFC 5647 has it: the length is readable and authenticated. The nonce is asyncssh's."""

    block_bytes = 16

    def __init__(self, cipher: GCMCipher) -> None:
        self._cipher = cipher
        self._aead = AESGCM(cipher._key)

    def length(self, head: memoryview, number: int) -> int:
        """As :class:`Seal` has it."""
        return int.from_bytes(head, "big")

    def open(self, packet: memoryview, number: int) -> bytes | None:
        """As :class:`Seal` has it."""
        try:
            return self._aead.decrypt(self._cipher._iv, packet[HEAD_BYTES:], packet[:HEAD_BYTES])
        except InvalidTag:
            return None

    def opened(self) -> None:
        """As :class:`Seal` has it."""
        self._cipher._update_iv()

    def seal(self, text: bytes, number: int) -> bytes:
        """As :class:`Seal` has it."""
        head = len(text).to_bytes(HEAD_BYTES, "big")
        packet = head + self._aead.encrypt(self._cipher._iv, text, head)
        self._cipher._update_iv()
        return packet


class Chacha:
    """``chacha20-poly1305@openssh.com`` (OpenSSH's PROTOCOL.chacha20poly1305): the length has a key of its own."""

    block_bytes = 8

    def __init__(self, cipher: ChachaCipher) -> None:
        self._key, self._head_key = cipher._key, cipher._adkey

    def length(self, head: memoryview, number: int) -> int:
        """As :class:`Seal` has it."""
        return int.from_bytes(_stream(self._head_key, number).update(head), "big")

    def open(self, packet: memoryview, number: int) -> bytes | None:
        """As :class:`Seal` has it."""
        stream = _stream(self._key, number)
        sealed = packet[:-TAG_BYTES]
        try:
            Poly1305.verify_tag(_poly1305_key(stream), sealed, bytes(packet[-TAG_BYTES:]))
        except InvalidSignature:
            return None
        return stream.update(sealed[HEAD_BYTES:])

    def opened(self) -> None:
        """As :class:`Seal` has it: packets have their numbers only."""

    def seal(self, text: bytes, number: int) -> bytes:
        """As :class:`Seal` has it."""
        stream = _stream(self._key, number)
        key = _poly1305_key(stream)
        head = _stream(self._head_key, number).update(len(text).to_bytes(HEAD_BYTES, "big"))
        sealed = head + stream.update(text)
        return sealed + Poly1305.generate_tag(key, sealed)


def _stream(key: bytes, number: int) -> CipherContext:
    """ChaCha20 from its block 0, with a packet's number as the nonce (in the original layout: 64 bits each)."""
    return Cipher(ChaCha20(key, struct.pack("<Q", 0) + struct.pack(">Q", number)), mode=None).encryptor()


def _poly1305_key(stream: CipherContext) -> bytes:
    """Block 0 of a stream is for the key; what is sealed begins at block 1."""
    return stream.update(bytes(64))[:32]


def seal_of(encryption: Encryption | None) -> Seal | None:
    """The same cipher in few steps; None for one that stays asyncssh's."""
    if isinstance(encryption, GCMEncryption):
        return Gcm(encryption._cipher)
    if isinstance(encryption, ChachaEncryption):
        return Chacha(encryption._cipher)
    return None


Sealing = tuple[Encryption | None, Seal | None]
"""The cipher that asyncssh uses, and the same as a seal."""

_NOT_YET: Sealing = None, None
_at_hand: deque[weakref.ref[Packets]] = deque()
"""Legs that have a seal, in the order in which they were made."""


_unused = bytearray()
"""Random bytes: asking the kernel for a few costs as much as for many, and each packet wants a few."""


def _random(size: int) -> bytes:
    """Random bytes, given out once."""
    if len(_unused) < size:
        _unused.extend(os.urandom(RANDOM_BYTES))
    some = bytes(_unused[-size:])
    del _unused[-size:]
    return some


class Packets(Lean):
    """A connection whose messages with data are sealed by :class:`Seal` after login."""

    __slots__ = ("_in", "_out")

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._in: Sealing = _NOT_YET
        self._out: Sealing = _NOT_YET

    def _seal_with(self, encryption: Encryption | None) -> Sealing:
        """The cipher as a seal. Only some legs keep theirs, because the first message of a leg can make it again."""
        if len(_at_hand) == MOST_AT_HAND:
            leg = _at_hand.popleft()()
            if leg is not None:
                leg._in = leg._out = _NOT_YET
        _at_hand.append(weakref.ref(self))
        return encryption, seal_of(encryption)

    # ---- received --------------------------------------------------------------------------------
    def _recv_pkthdr(self) -> bool:
        """Called by asyncssh where a packet begins: take those that carry data, and leave it the next one."""
        if not self._auth_final or self._decompressor is not None:
            return super()._recv_pkthdr()
        if self._in[0] is not self._recv_encryption:
            self._in = self._seal_with(self._recv_encryption)
        seal = self._in[1]
        return (seal is None or self._take(seal)) and super()._recv_pkthdr()

    def _take(self, seal: Seal) -> bool:
        """Work on messages that carry data up to one that does not; whether there is such a one, or one that is wrong.

        Raises ProtocolError as asyncssh does.
        """
        received, start = memoryview(self._inpbuf), 0
        try:
            while self._transport and len(received) - start >= HEAD_BYTES + TAG_BYTES:
                length = seal.length(received[start : start + HEAD_BYTES], self._recv_seq)
                end = start + HEAD_BYTES + length + TAG_BYTES
                if length > self._max_recv_pktlen:
                    return True
                if end > len(received):
                    return False
                text = seal.open(received[start:end], self._recv_seq)
                if not text or not self._take_text(text):
                    return True
                seal.opened()
                self._recv_seq = (self._recv_seq + 1) & 0xFFFFFFFF
                start = end
        finally:
            if start and self._transport:
                self._inpbuf = bytes(received[start:])
        return False

    def _take_text(self, text: bytes) -> bool:
        """Work on one message; False when it is not of those that carry data, or none at all."""
        if not 6 <= len(text) - text[0] <= len(text) - LEAST_PADDING_BYTES:
            return False
        kind = text[1]
        if kind == MSG_IGNORE:
            return True
        packet = SSHPacket(text[1 : -text[0]])
        packet.get_byte()
        if kind not in _TAKEN or (number := packet.get_uint32()) not in self._channels:
            return False
        try:
            self._channels[number].process_packet(kind, self._recv_seq, packet)
        except PacketDecodeError as exc:
            raise ProtocolError(str(exc)) from None
        return True

    # ---- sent ------------------------------------------------------------------------------------
    def send_packet(self, pkttype: int, *args: bytes, handler: SSHPacketLogger | None = None) -> None:
        """Called by asyncssh and the relay for every message; it is asyncssh's until keys and login are settled."""
        seal = self._sealing() if pkttype >= MSG_GLOBAL_REQUEST else None
        if seal is None:
            return super().send_packet(pkttype, *args, handler=handler)
        size = 2 + sum(map(len, args))
        padding = LEAST_PADDING_BYTES + -(size + LEAST_PADDING_BYTES) % seal.block_bytes
        text = b"".join((bytes((padding, pkttype)), *args, _random(padding)))
        self._send(seal.seal(text, self._send_seq))
        self._send_seq = (self._send_seq + 1) & 0xFFFFFFFF
        self._rekey_bytes_sent += len(text)
        return None

    def _sealing(self) -> Seal | None:
        """What to seal a message with; None while, or as soon as, asyncssh has something to do before it."""
        if not (self._auth_complete and self._kex_complete) or self._compressor is not None:
            return None
        if self._rekey_bytes_sent >= self._rekey_bytes:
            return None
        if self._rekey_seconds and time.monotonic() >= self._rekey_time:
            return None
        if self._out[0] is not self._send_encryption:
            self._out = self._seal_with(self._send_encryption)
        return self._out[1]
