"""A user of the backend."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True)
class Account:
    """A user; one without a password hash signs in by a configured token alone."""

    name: str
    admin: bool = False
    email: str = ""
    password_hash: str = field(default="", repr=False)
    """Argon2id in the PHC string format (RFC 9106)."""
