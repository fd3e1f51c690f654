"""What a plain scalar of YAML stands for: the core schema of YAML 1.2, section 10.3.2.

``on``, ``yes``, ``0777`` and dates are not what YAML 1.1 readers make of them: they are texts and, here, the
number 777. As in JSON documents there is one kind of number, so that ``1e3`` is the integer it equals.
"""

from __future__ import annotations

import re
from typing import Final

from pai_backend.model.text import Text
from pai_backend.protocol import tree
from pai_backend.protocol.diagnose import SyntaxTrouble

NULLS: Final = ("", "~", "null", "Null", "NULL")
_WORDS: Final[dict[str, bool | None]] = {
    **dict.fromkeys(NULLS),
    **dict.fromkeys(("true", "True", "TRUE"), True),
    **dict.fromkeys(("false", "False", "FALSE"), False),
}
_FIRST = frozenset("0123456789+-.")
_SHORT = 16  # characters; the commonest numbers by far, cheap to tell, and exact as a double
_DECIMAL = re.compile(r"[-+]?+(?:[0-9]++|(?:\.[0-9]++|[0-9]++(?>\.[0-9]*+|))(?>[eE][-+]?+[0-9]++|))")
_BASED = re.compile(r"0o[0-7]++|0x[0-9a-fA-F]++")
_NOT_FINITE = re.compile(r"[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN)")
_LONGEST = 100  # characters, as in tree.number
_SPELLING = re.compile(r"(?:[&!]\S*+\s++|)*+([-+.\w]++)", re.ASCII)

Plain = str | int | float | bool | None


def plain(raw: str, at: int) -> Plain | SyntaxTrouble:
    """The value of the plain scalar ``raw`` at offset ``at``, or why it is not taken (no number that could be kept)."""
    if raw[:1] not in _FIRST:
        return _WORDS.get(raw, raw)
    digits = raw.replace(".", "", 1)
    if len(raw) < _SHORT and digits.isascii() and digits.isdigit():
        real = float(raw)
        return int(real) if real.is_integer() else real
    if _DECIMAL.fullmatch(raw):
        return tree.number(raw.removeprefix("+"), at)
    if _BASED.fullmatch(raw):
        return _based(raw, at)
    if _NOT_FINITE.fullmatch(raw):
        return SyntaxTrouble(
            at, Text("NaN and Infinity are not taken as numbers"), Text("Use a finite number, or put it in quotes.")
        )
    return raw


def spelling(text: str, at: int) -> str:
    """The number at offset ``at`` of a document as its author wrote it (``1.10``, not ``1.1``).

    A password of digits or a version is put into commands as it stands in the document.
    """
    found = _SPELLING.match(text, at)
    return found[1] if found is not None else ""


def _based(raw: str, at: int) -> int | SyntaxTrouble:
    """The octal or hexadecimal number ``raw``; its size is bounded like that of the others."""
    if len(raw) > _LONGEST:
        return SyntaxTrouble(
            at, Text("a number of more than {most} characters", most=_LONGEST), Text("Shorten it, or write it as text.")
        )
    return _kept(int(raw, 0), at)


def _kept(number: int, at: int) -> int | SyntaxTrouble:
    """``number``, when it is one that the decimal reader would keep."""
    kept = tree.number(str(number), at)
    return kept if isinstance(kept, SyntaxTrouble) else number
