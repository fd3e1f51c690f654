"""A document as both its readers leave it: values with their places, and what is wrong with them.

The readers are ``locate`` (JSON) and ``yaml_tree``. Places are offsets, and for users lines and columns. Lines end with
LF, CRLF or a lone CR, as editors count them; columns count characters from 1. A byte order mark is not a column.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from pai_backend.model.text import Text
from pai_backend.protocol.diagnose import SyntaxTrouble

MAX_DEPTH: Final = 64
MAX_FLAWS: Final = 100
"""Reading stops here: beyond it the faults are no longer about what the author wrote."""

BOM = "\ufeff"
PathStep = str | int
_IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_]*", re.ASCII)
_BLOCK = 16_384  # characters
_SHOWN = 40
"""Longest piece of a document's own words that a message repeats; a value is never repeated at all."""

NUMBER: Final = r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?"
"""The numbers of JSON (RFC 8259, section 6) as a regular expression."""

_LONGEST = 100  # characters; a double needs 24 at most, more is never intended
_EXACT = 2**53  # up to here a double holds every integer
_HALF_PAIR = re.compile("[\ud800-\udfff]")


class Unreadable:
    """The value of a node whose text was faulty; the fault is already recorded."""


UNREADABLE: Final = Unreadable()

Plain = str | int | float | bool | None
Value = Plain | Unreadable | list["Node"] | dict[str, "Node"]


@dataclass(slots=True)
class Node:
    """A value and where it starts; ``key_at`` is where its key starts when it is a member of an object."""

    value: Value
    at: int
    key_at: int = -1

    def plain(self) -> object:
        """The value as JSON has it, without places."""
        if isinstance(self.value, list):
            return [node.plain() for node in self.value]
        if isinstance(self.value, dict):
            return {key: node.plain() for key, node in self.value.items()}
        return self.value


@dataclass(frozen=True)
class Flaw:
    """A fault of the JSON itself, or what is passed over: where, inside what, what to do."""

    path: tuple[PathStep, ...]
    at: int
    message: Text
    hint: Text


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
