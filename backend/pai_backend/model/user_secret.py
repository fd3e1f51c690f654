"""Secrets that a user keeps on the backend: how they are named, how large they may be, and how a document uses one."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from pai_backend.model.text import Text

PATTERN: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,62}", re.ASCII)
ALLOWED: Final = Text("1 to 63 letters, digits, '.', '_' and '-', and begin with a letter or digit")
MOST: Final = 100
"""Secrets of one user, and variables of one document that hold them."""
LONGEST: Final = 65_536
"""Bytes of one value, and of all secrets of one job: what a scrubber searches logs for (``model.scrub``)."""


def is_secret_name(text: str) -> bool:
    """Whether a user may keep a secret under this name."""
    return PATTERN.fullmatch(text) is not None


@dataclass(frozen=True)
class SecretUse:
    """A place of a document that takes a secret of the user who submits it."""

    name: str
    path: tuple[str | int, ...]
    line: int
    column: int


def used_names(uses: Sequence[SecretUse]) -> tuple[str, ...]:
    """Each name once, in the order of the document."""
    return tuple(dict.fromkeys(use.name for use in uses))
