"""What the numbers and texts of a document stand for, and which of them are not taken."""

from __future__ import annotations

import re
from typing import Final

from pai_backend.model.text import Text
from pai_backend.protocol.diagnose import SyntaxTrouble

NUMBER: Final = r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?"
"""The numbers of JSON (RFC 8259, section 6) as a regular expression."""

_LONGEST = 100  # characters; a double needs 24 at most, more is never intended
_EXACT = 2**53  # up to here a double holds every integer
_HALF_PAIR = re.compile("[\ud800-\udfff]")


def number(raw: str, at: int) -> SyntaxTrouble | int | float:
    """The number that ``raw`` (JSON number syntax) stands for, or why it is not taken.

    JSON has one kind of number, so ``8192.0`` and ``1e3`` are the integers they equal. Integers are exact
    whatever their size; numbers beyond the range of a double are refused: nothing behind this could keep them.
    """
    if len(raw) > _LONGEST:
        return SyntaxTrouble(
            at, Text("a number of more than {most} characters", most=_LONGEST), Text("Shorten it, or write it as text.")
        )
    if raw.lstrip("-").isdigit():
        return int(raw)
    real = float(raw)
    if real in (float("inf"), float("-inf")):
        return SyntaxTrouble(at, Text("a number too large to be kept"), Text("Use a smaller one, or write it as text."))
    return int(real) if real.is_integer() and abs(real) <= _EXACT else real


def content(text: str, at: int) -> SyntaxTrouble | None:
    """What is wrong with the decoded ``text`` of the string at ``at``: characters no program can be given."""
    if "\0" in text:
        return SyntaxTrouble(
            at, Text(r"the text contains the character \u0000"), Text("Remove it; no program can be given it.")
        )
    if not text.isascii() and _HALF_PAIR.search(text):
        hint = Text(r"Write both halves (\ud83d\ude00) or the character itself.")
        return SyntaxTrouble(at, Text(r"the text contains half of a \u… character pair"), hint)
    return None
