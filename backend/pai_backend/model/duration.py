"""Lengths of time as people and documents write them."""

from __future__ import annotations

from typing import Final

UNITS: Final = {"d": 86_400, "h": 3_600, "m": 60, "s": 1}
"""Seconds of each unit, the largest first."""


def duration_text(seconds: int) -> str:
    """The time in whole units: 9000 is ``2h30m``; no seconds at all are ``0s``."""
    parts = []
    for unit, size in UNITS.items():
        count, seconds = divmod(seconds, size)
        parts += [f"{count}{unit}"] if count else []
    return "".join(parts) or "0s"
