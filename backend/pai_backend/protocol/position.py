"""Places in a document: offsets to lines and columns, and paths as text.

Lines end with LF, CRLF or a lone CR, as editors count them; columns count characters from 1. A byte
order mark is not a column.
"""

from __future__ import annotations

import json
import re
from bisect import bisect_right
from collections.abc import Sequence

BOM = "\ufeff"
PathStep = str | int
_LINE_END = re.compile(r"\r\n?|\n")
_IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_]*", re.ASCII)
_SHOWN = 40
"""Longest piece of a document's own words that a message repeats; a value is never repeated at all."""


class Positions:
    """Line and column of offsets into one text; the line table is made on first use."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._starts: list[int] | None = None

    def line_column(self, at: int) -> tuple[int, int]:
        """1-based line and column of the character at offset ``at`` (the end of the text included)."""
        if self._starts is None:
            self._starts = [0, *(found.end() for found in _LINE_END.finditer(self._text))]
        line = bisect_right(self._starts, at)
        start = self._starts[line - 1]
        if line == 1 and self._text.startswith(BOM):
            start = 1
        return line, max(at - start, 0) + 1


def shown(word: str) -> str:
    """A key or label as a message may show it: printable, at most 40 characters, in double quotes."""
    short = word if len(word) <= _SHOWN else word[: _SHOWN - 1] + "…"
    return json.dumps(printable(short), ensure_ascii=False)


def printable(text: str) -> str:
    """``text`` in one line, with a replacement character for each that does not print."""
    return "".join(char if char.isprintable() else "\ufffd" for char in text)


def path_text(path: Sequence[PathStep]) -> str:
    """``("taskRoles", 0, "my key")`` as ``$.taskRoles[0]["my key"]``; long keys are shortened."""
    parts = ["$"]
    for step in path:
        if isinstance(step, int):
            parts.append(f"[{step}]")
        elif len(step) <= _SHOWN and _IDENTIFIER.fullmatch(step):
            parts.append(f".{step}")
        else:
            parts.append(f"[{shown(step)}]")
    return "".join(parts)
