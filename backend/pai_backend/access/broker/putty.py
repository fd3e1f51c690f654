"""Private keys in PuTTY's own format, versions 3 (PuTTY 0.75 and newer) and 2, without a passphrase. Pure.

Source: the PuTTY manual, appendix C, "PPK file format". A file without passphrase has a checksum (MAC) all the same:
its key is empty in version 3, and derived from the empty passphrase in version 2.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
from typing import Literal

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
    load_ssh_private_key,
)

from pai_backend.model.errors import Bug

Version = Literal[2, 3]
_LINE = 64
_V2_MAC_KEY = hashlib.sha1(b"putty-private-key-file-mac-key", usedforsecurity=False).digest()


def ppk(private_pem: str, comment: str, version: Version = 3) -> str:
    """The ``.ppk`` file of an OpenSSH private key of ours (Ed25519 or RSA). ``comment`` is one printable line."""
    key = load_ssh_private_key(private_pem.encode("ascii"), password=None)
    if not isinstance(key, Ed25519PrivateKey | RSAPrivateKey):
        raise Bug(f"keys of type {type(key).__name__} are not supported here")
    line = key.public_key().public_bytes(Encoding.OpenSSH, PublicFormat.OpenSSH).decode("ascii")
    algorithm, encoded = line.split()[:2]
    public, private = base64.b64decode(encoded), _private(key)
    covered = [algorithm.encode(), b"none", comment.encode(), public, private]
    return "".join(
        f"{part}\n"
        for part in (
            f"PuTTY-User-Key-File-{version}: {algorithm}",
            "Encryption: none",
            f"Comment: {comment}",
            *_block("Public-Lines", public),
            *_block("Private-Lines", private),
            f"Private-MAC: {_mac(b''.join(map(_string, covered)), version)}",
        )
    )


def _mac(covered: bytes, version: Version) -> str:
    if version == 2:
        return hmac.new(_V2_MAC_KEY, covered, hashlib.sha1).hexdigest()
    return hmac.new(b"", covered, hashlib.sha256).hexdigest()


def _private(key: Ed25519PrivateKey | RSAPrivateKey) -> bytes:
    """The private blob: for RSA d, p, q and the inverse of q; for Ed25519 the seed."""
    if isinstance(key, RSAPrivateKey):
        numbers = key.private_numbers()
        return b"".join(map(_mpint, (numbers.d, numbers.p, numbers.q, numbers.iqmp)))
    return _string(key.private_bytes(Encoding.Raw, PrivateFormat.Raw, NoEncryption()))


def _string(data: bytes) -> bytes:
    """RFC 4251 §5, ``string``."""
    return len(data).to_bytes(4, "big") + data


def _mpint(number: int) -> bytes:
    """RFC 4251 §5, ``mpint``, of a positive number."""
    return _string(number.to_bytes(number.bit_length() // 8 + 1, "big"))


def _block(name: str, data: bytes) -> list[str]:
    """A block of base64 with the number of its lines."""
    text = base64.b64encode(data).decode("ascii")
    lines = [text[start : start + _LINE] for start in range(0, len(text), _LINE)]
    return [f"{name}: {len(lines)}", *lines]
