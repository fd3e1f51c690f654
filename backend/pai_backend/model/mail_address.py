"""Mail addresses."""

from __future__ import annotations

import re
from typing import Final

LONGEST: Final = 320
_ADDRESS: Final = re.compile(r"[^\s@<>\",;:\\()\[\]\x00-\x1f\x7f]+@[^\s@<>\",;:\\()\[\]\x00-\x1f\x7f]+")


def is_mail_address(text: str) -> bool:
    """Whether mail can be addressed so: one plain address (RFC 5321 §4.1.2 without quoted names), no list, no name."""
    return len(text) <= LONGEST and _ADDRESS.fullmatch(text) is not None and text.isprintable()
