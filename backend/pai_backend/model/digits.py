"""Whole numbers as strangers write them: in headers, queries and documents."""

from __future__ import annotations

LONGEST = 18
"""Digits of the longest number that is read; each has 63 bits at most. Python refuses to read 4,301 of them."""


def whole_number(text: str) -> int | None:
    """The number of a text of ASCII digits alone; None for any other, and for one of more than ``LONGEST`` digits.

    ``str.isdigit`` is also true of ``²``, which ``int`` does not read.
    """
    return int(text) if len(text) <= LONGEST and text.isascii() and text.isdigit() else None
