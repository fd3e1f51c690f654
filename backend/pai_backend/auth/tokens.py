"""Bearer tokens: the token file, configured tokens, and finding the user behind one.

Only SHA-256 digests are kept in memory, and every digest is compared in constant time, so that neither a
dump nor a clock tells a token.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

from pai_backend.auth.users import User
from pai_backend.platform import secret_files

TOKEN_BYTES = 32  # 256 bits: as strong as the digest that stands for it


class TokenFileError(Exception):
    """The token file cannot be used; the message names the file, the reason and the remedy."""


class TokenTable:
    """Users by their tokens."""

    def __init__(self, entries: Iterable[tuple[str, User]]) -> None:
        self._digests = [(_digest(token), user) for token, user in entries]

    def user(self, token: str) -> User | None:
        """The user of this token. Takes the same time whichever token matches, or none."""
        return self.of_digest(_digest(token))

    def of_digest(self, asked: bytes) -> User | None:
        """The user of the token with this SHA-256."""
        found = None
        for digest, user in self._digests:
            if hmac.compare_digest(asked, digest):
                found = user
        return found if found is None else replace(found, token=asked.hex())

    def users(self) -> list[User]:
        """Everybody who has a token here."""
        return [user for _, user in self._digests]


def _digest(token: str) -> bytes:
    return hashlib.sha256(token.encode("utf-8", "surrogateescape")).digest()


def read_or_make(path: Path) -> str:
    """The token in this file, which is made with mode 0600 when absent; the same for all processes that start at once.

    Raises TokenFileError.
    """
    try:
        if not path.exists():
            secret_files.make_once(path, secrets.token_urlsafe(TOKEN_BYTES) + "\n")
        token = secret_files.read_guarded(path).strip()
    except OSError as error:
        raise TokenFileError(f"{path}: the token file cannot be used: {error.strerror}") from None
    if not token:
        raise TokenFileError(f"{path}: the token file is empty; delete it to have a new one made")
    return token
