"""Workspace names: what a user reserves so that editors and bookmarks find whichever job holds it."""

from __future__ import annotations

import re
from typing import Final

from pai_backend.model.text import Text

MOST: Final = 24
"""Characters; those of a job's alias (``model.alias``), which a free name becomes as it is."""
PATTERN: Final = re.compile(r"(?!root$|j[0-9a-f]{16}$)[a-z0-9]+(?:-[a-z0-9]+)*", re.ASCII)
"""Part of a host name and of a login name. ``root`` and a job's uid mean something else at the gateway."""
ALLOWED: Final = Text("small letters, digits and single '-' between them")


def is_address(text: str) -> bool:
    """Whether this can be a workspace name."""
    return len(text) <= MOST and PATTERN.fullmatch(text) is not None
