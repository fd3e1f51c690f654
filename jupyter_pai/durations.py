"""Lengths of time as people write them: ``90s``, ``30m``, ``2h``, ``7d``. Pure."""

from __future__ import annotations

import re

from jupyter_pai.language import tr

_UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86_400}
_TEXT = re.compile(r"(\d{1,9})([smhd])", re.ASCII)


def seconds(text: str) -> int:
    """Seconds of a length of time. Raises ValueError, which says how to write one."""
    found = _TEXT.fullmatch(text.strip())
    if found is None or int(found[1]) == 0:
        raise ValueError(tr("{text} is not a duration; write one such as 90s, 30m, 2h or 7d", text=f"{text!r}"))
    return int(found[1]) * _UNITS[found[2]]


def duration_text(length: int) -> str:
    """A length of time in whole units: 9000 seconds are ``2h30m``."""
    parts = []
    for unit, size in sorted(_UNITS.items(), key=lambda each: -each[1]):
        count, length = divmod(length, size)
        parts += [f"{count}{unit}"] if count else []
    return "".join(parts) or "0s"
