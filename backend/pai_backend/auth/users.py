"""The caller of a request."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True)
class User:
    """Someone who has proved who they are.

    ``application``: by a token made for a program, which may not make or revoke tokens (OpenPAI's rule).
    """

    name: str
    admin: bool = False
    application: bool = False
    token: str = field(default="", repr=False, compare=False)
    """Digest of the token."""

    @property
    def maker(self) -> str:
        """What is written beside things that are to end with an application token: its digest, else nothing."""
        return self.token if self.application else ""
