"""The caller of a request."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class User:
    """Someone who has proved who they are.

    ``application``: by a token made for a program, which may not make or revoke tokens (OpenPAI's rule).
    """

    name: str
    admin: bool = False
    application: bool = False
