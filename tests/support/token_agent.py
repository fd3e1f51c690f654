"""An SSH agent that holds the key of a security token made of software, so that real clients can log in with one.

Formats: draft-ietf-sshm-ssh-agent (the agent's messages), OpenSSH's PROTOCOL.u2f (keys, and what a token signs).
"""

from __future__ import annotations

import asyncio
import base64
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path

from asyncssh.packet import Byte, MPInt, SSHPacket, String, UInt32
from cryptography.hazmat.primitives.asymmetric import ec, ed25519
from cryptography.hazmat.primitives.asymmetric.utils import decode_dss_signature
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

Key = ed25519.Ed25519PrivateKey | ec.EllipticCurvePrivateKey

APPLICATION = "ssh:"
TOUCHED, VERIFIED = 0x01, 0x04
"""Flags of an assertion: somebody touched the token; and gave it a PIN or finger."""

_FAILURE, _LIST, _KEYS, _SIGN, _SIGNED = 5, 11, 12, 13, 14


@dataclass
class Token:
    """A key of a type of security tokens. What it asserts when it signs may be changed at any time."""

    key: Key
    flags: int = TOUCHED
    application: str = APPLICATION
    counter: int = field(default=0, init=False)

    @property
    def kind(self) -> str:
        """The key's type."""
        if isinstance(self.key, ec.EllipticCurvePrivateKey):
            return "sk-ecdsa-sha2-nistp256@openssh.com"
        return "sk-ssh-ed25519@openssh.com"

    @property
    def blob(self) -> bytes:
        """The public key as SSH writes it."""
        public = self.key.public_key()
        if isinstance(public, ec.EllipticCurvePublicKey):
            point = public.public_bytes(Encoding.X962, PublicFormat.UncompressedPoint)
            return String(self.kind) + String("nistp256") + String(point) + String(APPLICATION)
        return String(self.kind) + String(public.public_bytes_raw()) + String(APPLICATION)

    @property
    def line(self) -> str:
        """The line of a ``.pub`` file."""
        return f"{self.kind} {base64.b64encode(self.blob).decode()}"

    def signature(self, message: bytes) -> bytes:
        """What the token asserts of a message, signed."""
        self.counter += 1
        asserted = Byte(self.flags) + UInt32(self.counter)
        signed = sha256(self.application.encode()).digest() + asserted + sha256(message).digest()
        if isinstance(self.key, ec.EllipticCurvePrivateKey):
            r, s = decode_dss_signature(self.key.sign(signed, ec.ECDSA(SHA256())))
            made = MPInt(r) + MPInt(s)
        else:
            made = self.key.sign(signed)
        return String(self.kind) + String(made) + asserted


@asynccontextmanager
async def token_agent(token: Token, path: Path) -> AsyncIterator[None]:
    """Answer clients at this socket as long as the block runs."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while True:
                size = int.from_bytes(await reader.readexactly(4), "big")
                writer.write(String(_answer(token, await reader.readexactly(size))))
                await writer.drain()
        except asyncio.IncompleteReadError:
            writer.close()  # the client has gone

    async with await asyncio.start_unix_server(serve, path):
        yield


def _answer(token: Token, request: bytes) -> bytes:
    packet = SSHPacket(request)
    kind = packet.get_byte()
    if kind == _LIST:
        return Byte(_KEYS) + UInt32(1) + String(token.blob) + String("a token")
    if kind == _SIGN and packet.get_string() == token.blob:
        return Byte(_SIGNED) + String(token.signature(packet.get_string()))
    return Byte(_FAILURE)
