"""RSA key pairs made before they are asked for: making one takes 70 to 600 ms (RSA-3072, measured on two busy cores).

They are made in a thread (OpenSSL lets others run meanwhile), one ahead, from the moment one may soon be needed.
"""

from __future__ import annotations

import asyncio

from cryptography.hazmat.primitives.asymmetric.rsa import generate_private_key
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from pydantic import SecretStr

RSA_BITS = 3072  # 128 bits of security (NIST SP 800-57 part 1 rev. 5, table 2)
RSA_EXPONENT = 65537


class RsaStock:
    """At most one pair at a time, which was not given out. Used from one event loop."""

    def __init__(self) -> None:
        self._making: asyncio.Task[SecretStr] | None = None

    def warm(self) -> None:
        """Begin to make a pair unless there is one. Returns at once."""
        if self._making is None or _has_failed(self._making):
            self._making = asyncio.create_task(asyncio.to_thread(_make_hidden), name="rsa-stock")

    async def take(self) -> str:
        """A pair that is only the caller's (OpenSSH private PEM): at once when :meth:`warm` was called in time."""
        self.warm()
        mine, self._making = self._making, None
        assert mine is not None
        return (await mine).get_secret_value()


def make_rsa() -> str:
    """A new RSA pair (OpenSSH private PEM without passphrase). Blocks; for a thread."""
    key = generate_private_key(RSA_EXPONENT, RSA_BITS)
    return key.private_bytes(Encoding.PEM, PrivateFormat.OpenSSH, NoEncryption()).decode("ascii")


def _make_hidden() -> SecretStr:
    """As :func:`make_rsa`; the representation of a finished task shows its result."""
    return SecretStr(make_rsa())


def _has_failed(made: asyncio.Task[SecretStr]) -> bool:
    return made.done() and (made.cancelled() or made.exception() is not None)
