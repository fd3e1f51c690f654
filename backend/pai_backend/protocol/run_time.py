"""``expectedRunTime``: how long its author expects a job to run, as ``2h30m``.

There is one way to write it, whole numbers with their units: a bare number would be taken for minutes by one reader and
for seconds by the next. It is an expectation, which estimates of others' waiting rest on; it never ends a job.
"""

from __future__ import annotations

import re
from typing import Final

from pai_backend.protocol.fields import Path, Reader
from pai_backend.protocol.locate import Node, Unreadable

NAME: Final = "expectedRunTime"
"""The field, in ``extras.jupyterPai`` of v1 and v2."""
LONGEST_S: Final = 365 * 86_400
"""A year; what is meant to run longer has no end that anybody could wait for."""

_UNITS: Final = {"d": 86_400, "h": 3_600, "m": 60, "s": 1}
_TEXT: Final = re.compile("".join(f"(?:([0-9]{{1,8}}){unit})?" for unit in _UNITS))
_HINT: Final = "Write days, hours, minutes and seconds as whole numbers with their units, like 2h30m, 45m or 1d."


def read_run_time(node: Node, path: Path, reader: Reader) -> int | None:
    """Seconds of the value at ``path``; None, with a fault, when it is no such time."""
    if isinstance(node.value, Unreadable):
        return None
    found = _TEXT.fullmatch(node.value) if isinstance(node.value, str) and node.value else None
    if found is None:
        message = f"{NAME} has no unit" if _is_number(node.value) else f"{NAME} is no time that is known here"
        reader.fault(path, node.at, message, _HINT)
        return None
    seconds = sum(int(number or 0) * size for number, size in zip(found.groups(), _UNITS.values(), strict=True))
    if not 1 <= seconds <= LONGEST_S:
        reader.fault(path, node.at, f"{NAME} must be from 1 second to 365 days", "Leave it out when it is not known.")
        return None
    return seconds


def run_time_text(seconds: int) -> str:
    """The time as a document has it: 9000 is ``2h30m``."""
    parts = []
    for unit, size in _UNITS.items():
        count, seconds = divmod(seconds, size)
        parts += [f"{count}{unit}"] if count else []
    return "".join(parts)


def _is_number(value: object) -> bool:
    return (isinstance(value, int | float) and not isinstance(value, bool)) or (
        isinstance(value, str) and value.strip().isdecimal()
    )
