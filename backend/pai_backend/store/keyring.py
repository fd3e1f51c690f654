"""Where the keys of the cipher come from, and having the right ones while they are being rotated.

A source is a file (made at the first start) or the configuration. The ring holds the cipher of the keys as they were
read last, and reads them again when something is met that they do not open: a key that was put into the file
while this process runs is picked up without a restart.
"""

from __future__ import annotations

import asyncio
import fcntl
import os
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Protocol, TypeVar

from pai_backend.model.errors import Bug, Unavailable
from pai_backend.model.text import Text
from pai_backend.platform import secret_files
from pai_backend.store.cipher import BadKey, Cipher, UnknownKey, new_key

T = TypeVar("T")

LARGE_BYTES = 65_536
"""More than this is sealed and opened in a thread: it takes over 0.4 ms (measured on two slow cores)."""


class SecretKeyError(Exception):
    """The keys of what is stored cannot be used; the message names the place, the reason and the remedy."""


class KeySource(Protocol):
    """Where keys are kept. Its methods block for a moment."""

    place: str
    """How messages call it: a file or a key of the configuration."""

    def read(self) -> tuple[str, ...]:
        """The keys, newest first; none when none has ever been made. Raises SecretKeyError."""
        ...

    def make(self) -> tuple[str, ...]:
        """The keys, after making the first one unless there is one. Raises SecretKeyError."""
        ...


class GivenKeys:
    """Keys that the configuration holds itself."""

    def __init__(self, keys: Sequence[str], place: str = "the configuration") -> None:
        self._keys = tuple(keys)
        self.place = place

    def read(self) -> tuple[str, ...]:
        """As they were given."""
        return self._keys

    def make(self) -> tuple[str, ...]:
        """As they were given: nothing is made here."""
        return self._keys


class KeyFile:
    """A file with one key a line, newest first, for its owner only. Empty lines and those after ``#`` mean nothing."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.place = str(path)

    def read(self) -> tuple[str, ...]:
        """Raises SecretKeyError for a file that is there and cannot be used."""
        try:
            text = secret_files.read_guarded(self.path)
        except FileNotFoundError:
            return ()
        except OSError as error:
            raise self._unusable(error) from None
        lines = [line.strip() for line in text.splitlines()]
        keys = tuple(line for line in lines if line and not line.startswith("#"))
        if not keys:
            raise SecretKeyError(f"{self.path}: the file holds no key; restore it from a backup")
        return keys

    def make(self) -> tuple[str, ...]:
        """The same for all processes that start at once, and on the disk before anything is sealed with it."""
        try:
            secret_files.make_once(self.path, f"{new_key()}\n")
        except OSError as error:
            raise self._unusable(error) from None
        return self.read()

    def add(self) -> tuple[str, ...]:
        """Put a new key before the others, which stay. Call it within :meth:`alone`. Raises SecretKeyError."""
        keys = (new_key(), *self.read())
        try:
            secret_files.replace(self.path, "".join(f"{key}\n" for key in keys))
        except OSError as error:
            raise SecretKeyError(
                f"{self.path}: a new key cannot be written there: {error.strerror}; "
                "put one on the first line yourself, keep the others below it, and try again"
            ) from None
        return keys

    @contextmanager
    def alone(self) -> Iterator[None]:
        """Be the only process that changes the file: of two at once one would throw the other's new key away.

        Raises SecretKeyError when another one is at it.
        """
        lock = self.path.with_name(f"{self.path.name}.lock")
        try:
            descriptor = os.open(lock, os.O_RDWR | os.O_CREAT, 0o600)
        except OSError as error:
            raise self._unusable(error) from None
        try:
            self._lock(descriptor)
            yield
        finally:
            os.close(descriptor)

    def _lock(self, descriptor: int) -> None:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise SecretKeyError(f"{self.path}: another process is rotating the keys; let it finish") from None

    def _unusable(self, error: OSError) -> SecretKeyError:
        return SecretKeyError(f"{self.path}: the file of the secret keys cannot be used: {error.strerror}")


class KeyRing:
    """The cipher of the present keys."""

    def __init__(self, source: KeySource) -> None:
        self._source = source
        self._cipher: Cipher | None = None

    @property
    def cipher(self) -> Cipher:
        """The cipher of the keys that were read last. Raises Bug before :meth:`load`."""
        if self._cipher is None:
            raise Bug("the store is not open")
        return self._cipher

    async def load(self, used: frozenset[str]) -> None:
        """Read the keys, or make the first one when nothing is sealed yet.

        ``used``: identifiers of the keys that stored values are sealed with.
        Raises SecretKeyError when one of these is not there; nothing has been changed then.
        """
        keys = await asyncio.to_thread(self._source.read)
        if not keys and used:
            raise SecretKeyError(
                f"{self._source.place}: the file is missing, and the database holds values that were sealed with its "
                "keys; restore it from a backup (nothing was changed)"
            )
        if not keys:
            keys = await asyncio.to_thread(self._source.make)
        self._cipher = self._made(keys)
        missing = used - self._cipher.ids
        if missing:
            raise SecretKeyError(
                f"{self._source.place}: the key {', '.join(sorted(missing))} is not there, and the database holds "
                "values that were sealed with it; put it back below the newest one, and give the same keys to all "
                "processes of this database (nothing was changed)"
            )

    async def open(self, sealed: bytes) -> bytes:
        """What was sealed. Raises Unavailable when no key opens it, in the file as it is now."""
        return await self.tried(lambda cipher: _opening(cipher, sealed))

    async def tried(self, work: Callable[[Cipher], Awaitable[T]]) -> T:
        """What ``work`` makes of the cipher; it is repeated with the keys as they are now when it met a new one.

        Raises Unavailable when these do not help, and whatever else ``work`` raises.
        """
        try:
            return await work(self.cipher)
        except UnknownKey:
            await self._renew()
        try:
            return await work(self.cipher)
        except UnknownKey:
            raise Unavailable(
                Text(
                    "A stored value is sealed with a key that is not in {place}, or it is damaged.",
                    place=self._source.place,
                ),
                hint=Text(
                    "Put the key back below the newest one, and start the backend again: it names what is missing."
                ),
            ) from None

    async def _renew(self) -> None:
        try:
            self._cipher = self._made(await asyncio.to_thread(self._source.read))
        except SecretKeyError as error:
            raise Unavailable(
                Text("The secret keys cannot be read: {error}.", error=error), hint=Text("Restore them.")
            ) from None

    def _made(self, keys: Sequence[str]) -> Cipher:
        try:
            return Cipher(keys)
        except BadKey as error:
            raise SecretKeyError(f"{self._source.place}: {error}; restore it from a backup") from None


async def _opening(cipher: Cipher, sealed: bytes) -> bytes:
    if len(sealed) > LARGE_BYTES:
        return await asyncio.to_thread(cipher.open, sealed)
    return cipher.open(sealed)
