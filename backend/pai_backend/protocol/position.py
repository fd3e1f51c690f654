"""Places in a document: offsets to lines and columns, and paths as text.

Lines end with LF, CRLF or a lone CR, as editors count them; columns count characters from 1. A byte
order mark is not a column.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence

BOM = "\ufeff"
PathStep = str | int
_IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_]*", re.ASCII)
_BLOCK = 16_384  # characters
_SHOWN = 40
"""Longest piece of a document's own words that a message repeats; a value is never repeated at all."""


class Positions:
    """Line and column of offsets into one text.

    Lines are counted when they are asked for, a block of text at a time, and never listed: a text may be a million
    line ends, and most texts are without fault.
    """

    def __init__(self, text: str) -> None:
        self._text = text
        # Per block: how many lines end before it, and where the line begins that its first character is in.
        self._blocks: list[tuple[int, int]] = [(0, 1 if text.startswith(BOM) else 0)]

    def line_column(self, at: int) -> tuple[int, int]:
        """1-based line and column of the character at offset ``at`` (the end of the text included)."""
        block = at // _BLOCK
        while len(self._blocks) <= block:
            self._blocks.append(self._counted(len(self._blocks) * _BLOCK))
        ended, start = self._counted(at)
        return ended + 1, max(at - start, 0) + 1

    def _counted(self, at: int) -> tuple[int, int]:
        """How many lines end before ``at`` and where its line begins; from the last block counted before it."""
        text = self._text
        block = min(at // _BLOCK, len(self._blocks) - 1)
        ended, start = self._blocks[block]
        since = block * _BLOCK
        # A CR that an LF follows ends no line, even when the LF is beyond ``at``.
        ended += text.count("\n", since, at) + text.count("\r", since, at) - text.count("\r\n", since, at + 1)
        carriage = text.rfind("\r", since, at)
        if text.startswith("\n", carriage + 1) and carriage + 1 == at:
            carriage = text.rfind("\r", since, carriage)
        return ended, max(start, text.rfind("\n", since, at) + 1, carriage + 1)


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
