"""Sealing what must not be readable in the database: Fernet (AES-128-CBC with HMAC-SHA256) under one or more keys.

The newest key seals, every key opens. Each sealed row says which key it was sealed with, by an identifier that tells
nothing of the key: so a missing key is known before anything is read, and a rotation knows what is left to do.
Knows neither the database nor where keys come from.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass

from cryptography.fernet import Fernet, InvalidToken, MultiFernet

ID_LENGTH = 16
"""Characters of a key's identifier: 64 bits, far more than enough to tell a handful of keys apart."""


class UnknownKey(Exception):
    """Something is sealed with a key that is not here, or was changed since. Never holds what was sealed."""


class BadKey(ValueError):
    """A text is no Fernet key. Never holds the text."""


@dataclass(frozen=True)
class Sealed:
    """Something sealed, and the identifier of the key it was sealed with."""

    data: bytes
    by: str


class Cipher:
    """Seals with the first of its keys, opens with any of them. Safe in threads."""

    def __init__(self, keys: Sequence[str]) -> None:
        """``keys``: Fernet keys, newest first. Raises BadKey for an invalid text, and for no key at all."""
        if not keys:
            raise BadKey("there is no key")
        try:
            self._fernet = MultiFernet([Fernet(key) for key in keys])
        except ValueError:
            raise BadKey("not a Fernet key: 32 bytes as 44 characters of URL-safe base64") from None
        self._ids = tuple(key_id(key) for key in keys)

    def __repr__(self) -> str:
        """The identifiers alone."""
        return f"Cipher({', '.join(self._ids)})"

    @property
    def newest(self) -> str:
        """Identifier of the key that seals."""
        return self._ids[0]

    @property
    def ids(self) -> frozenset[str]:
        """Identifiers of all keys."""
        return frozenset(self._ids)

    def seal(self, plain: bytes) -> bytes:
        """The sealed form; another one at each call, a third longer than ``plain``."""
        return self._fernet.encrypt(plain)

    def sealed(self, plain: bytes) -> Sealed:
        """The sealed form together with its key."""
        return Sealed(self.seal(plain), self.newest)

    def open(self, sealed: bytes) -> bytes:
        """What was sealed, byte for byte. Raises UnknownKey."""
        try:
            return self._fernet.decrypt(bytes(sealed))
        except InvalidToken:
            raise UnknownKey("sealed with a key that is not here, or damaged") from None

    def reseal(self, sealed: bytes) -> bytes:
        """The same under the newest key. Raises UnknownKey."""
        try:
            return self._fernet.rotate(bytes(sealed))
        except InvalidToken:
            raise UnknownKey("sealed with a key that is not here, or damaged") from None


def new_key() -> str:
    """A new random key."""
    return Fernet.generate_key().decode("ascii")


def key_id(key: str) -> str:
    """What stands for a key in the database and in messages: a digest, from which the key cannot be found."""
    return hashlib.sha256(b"pai-key-id\0" + key.encode("ascii")).hexdigest()[:ID_LENGTH]
