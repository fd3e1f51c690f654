"""The caller of a request."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class User:
    """Someone who has proved who they are."""

    name: str
    admin: bool = False
