"""What clients send that asyncssh 2.24 takes for something else: wrong guesses, and what is no key.

Clients such as Dropbear's begin the key exchange before they know what the server wants. Such a first packet stands
only when both sides prefer the same algorithms (RFC 4253 §7.1). asyncssh lets it stand when the client's first method
was chosen, although the server had preferred another or another type of host key: it answers a packet that the client
has given up, and then ends the connection at the one sent in its place.
"""

from __future__ import annotations

import contextlib

from asyncssh.connection import SSHServerConnection
from asyncssh.packet import SSHPacket
from asyncssh.public_key import (
    SSHKey,
    SSHOpenSSHCertificate,
    decode_ssh_certificate,
    decode_ssh_public_key,
)

from pai_backend.engine.ssh_wire import MSG_KEXINIT, Packet

_COOKIE_BYTES = 16
_LISTS_BETWEEN = 8  # ciphers, MACs, compressions and languages, each for both directions


def guessed_wrong(client_kexinit: bytes, server_kexinit: bytes) -> bool:
    """Whether the client has sent a first packet that does not count, by the KEXINIT messages of both sides.

    Raises PacketDecodeError for a message that is cut short.
    """
    methods, host_keys, guessed = _preferred(client_kexinit)
    our_methods, our_host_keys, _ = _preferred(server_kexinit)
    return guessed and (methods[:1] != our_methods[:1] or host_keys[:1] != our_host_keys[:1])


def _preferred(kexinit: bytes) -> tuple[list[bytes], list[bytes], bool]:
    """Methods and types of host keys, the preferred first, and whether a first packet follows by itself."""
    packet = Packet(kexinit)
    packet.get_byte()
    packet.get_bytes(_COOKIE_BYTES)
    methods, host_keys = packet.get_namelist(), packet.get_namelist()
    for _ in range(_LISTS_BETWEEN):
        packet.get_namelist()
    return methods, host_keys, packet.get_boolean()


_NO_KEY = (ValueError, OverflowError)
"""What asyncssh and cryptography make of numbers that are no key's: an exponent of 0, a point beside its curve."""


def key_in(data: bytes) -> SSHKey | None:
    """The key that a client offers, by itself or in a certificate; None for what cannot be read as either."""
    with contextlib.suppress(*_NO_KEY):
        certificate = decode_ssh_certificate(data)
        return certificate.key if isinstance(certificate, SSHOpenSSHCertificate) else None
    with contextlib.suppress(*_NO_KEY):
        return decode_ssh_public_key(data)
    return None


class Guessing(SSHServerConnection):
    """A server's end of a connection that knows a wrong guess when it sees one, and what is no key at all."""

    async def validate_public_key(self, username: str, key_data: bytes, msg: bytes, signature: bytes) -> bool:
        """Called by asyncssh for a key that is offered or has signed: an invalid one is refused without a fault."""
        return key_in(key_data) is not None and await super().validate_public_key(username, key_data, msg, signature)

    async def _process_kexinit(self, kind: int, number: int, packet: SSHPacket) -> None:
        """Called by asyncssh, which takes no further packet until this is over."""
        await super()._process_kexinit(kind, number, packet)
        self._ignore_first_kex = guessed_wrong(self._client_kexinit, self._server_kexinit)

    _packet_handlers = dict(SSHServerConnection._packet_handlers) | {MSG_KEXINIT: _process_kexinit}
