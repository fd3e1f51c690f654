"""Bearer tokens: the token file, configured tokens, and finding the user behind one.

Only SHA-256 digests are kept in memory, and every digest is compared in constant time, so that neither a
dump nor a clock tells a token.
"""

from __future__ import annotations

import hashlib
import hmac
import logging
import os
import secrets
import stat
from collections.abc import Iterable
from pathlib import Path

from pai_backend.auth.users import User

log = logging.getLogger(__name__)

TOKEN_BYTES = 32  # 256 bits: as strong as the digest that stands for it


class TokenFileError(Exception):
    """The token file cannot be used; the message names the file, the reason and the remedy."""


class TokenTable:
    """Users by their tokens."""

    def __init__(self, entries: Iterable[tuple[str, User]]) -> None:
        self._digests = [(_digest(token), user) for token, user in entries]

    def user(self, token: str) -> User | None:
        """The user of this token. Takes the same time whichever token matches, or none."""
        asked, found = _digest(token), None
        for digest, user in self._digests:
            if hmac.compare_digest(asked, digest):
                found = user
        return found

    def users(self) -> list[User]:
        """Everybody who has a token here."""
        return [user for _, user in self._digests]


def _digest(token: str) -> bytes:
    return hashlib.sha256(token.encode("utf-8", "surrogateescape")).digest()


def read_or_make(path: Path) -> str:
    """The token in this file, which is made with mode 0600 when absent.

    Whole or not there at any instant, and the same for all processes that start at once: the text is written
    under another name and linked into place, which only one of them can do.
    Raises TokenFileError.
    """
    try:
        if not path.exists():
            _make(path)
        return _read(path)
    except OSError as error:
        raise TokenFileError(f"{path}: the token file cannot be used: {error.strerror}") from None


def _make(path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    draft = path.with_name(f".{path.name}.{os.getpid()}.{secrets.token_hex(4)}")
    descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        with os.fdopen(descriptor, "w", encoding="ascii") as file:
            file.write(secrets.token_urlsafe(TOKEN_BYTES) + "\n")
            file.flush()
            os.fsync(file.fileno())
        os.link(draft, path)
    except FileExistsError:
        log.debug("another process made the token file first")
    finally:
        draft.unlink()


def _read(path: Path) -> str:
    mode = path.stat().st_mode
    if mode & (stat.S_IRWXG | stat.S_IRWXO):
        path.chmod(0o600)
        log.warning("%s could be read by others; its mode is 0600 now. Delete it to have a new token made.", path)
    token = path.read_text(encoding="utf-8", errors="replace").strip()
    if not token:
        raise TokenFileError(f"{path}: the token file is empty; delete it to have a new one made")
    return token
