"""Times in documents, as ``2h30m``.

There is one way to write them, whole numbers with their units: a bare number would be taken for minutes by one reader
and for seconds by the next.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from pai_backend.model.duration import UNITS
from pai_backend.protocol.fields import Path, Reader
from pai_backend.protocol.locate import Node, Unreadable

YEAR_S: Final = 365 * 86_400
"""The longest time that any field takes; what is meant to last longer has no end that anybody could wait for."""

_TEXT: Final = re.compile("".join(f"(?:([0-9]{{1,8}}){unit})?" for unit in UNITS))
_HINT: Final = "Write days, hours, minutes and seconds as whole numbers with their units, like 2h30m, 45m or 1d."


@dataclass(frozen=True)
class Span:
    """A field that holds a time of at least ``least_s`` seconds and at most a year.

    ``in_words`` is that least, ``hint`` what to do about a time that is none of these.
    """

    name: str
    least_s: int
    in_words: str
    hint: str


def read_duration(node: Node, path: Path, span: Span, reader: Reader) -> int | None:
    """Seconds of the value at ``path``; None, with a fault, when it is no such time."""
    if isinstance(node.value, Unreadable):
        return None
    found = _TEXT.fullmatch(node.value) if isinstance(node.value, str) and node.value else None
    if found is None:
        wrong = "has no unit" if _is_number(node.value) else "is not a known duration"
        reader.fault(path, node.at, f"{span.name} {wrong}", _HINT)
        return None
    seconds = sum(int(number or 0) * size for number, size in zip(found.groups(), UNITS.values(), strict=True))
    if not span.least_s <= seconds <= YEAR_S:
        reader.fault(path, node.at, f"{span.name} must be from {span.in_words} to 365 days", span.hint)
        return None
    return seconds


def _is_number(value: object) -> bool:
    return (isinstance(value, int | float) and not isinstance(value, bool)) or (
        isinstance(value, str) and value.strip().isdecimal()
    )
