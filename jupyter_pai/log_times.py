"""The time before each line of a log."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Sequence
from datetime import datetime
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from jupyter_pai.wire_types import LogTimeWire

_LINE = re.compile(rb"[^\r\n]*(?:\r\n|[\r\n]|\Z)")
_UNKNOWN = b" " * len("2026-11-29T12:00:00+00:00 ")


class TimedLines:
    """Puts before each line of one log, which comes in pieces, the local time at which it came."""

    def __init__(self) -> None:
        self._times: dict[int, bytes] = {}
        self._offsets: list[int] = []
        self._begins = True  # a line does
        self._returned = False  # by a carriage return, of which the newline may come yet

    def learn(self, times: Sequence[LogTimeWire], start: int) -> None:
        """Take over when output came; what is stamped from now on begins at byte ``start`` or behind it."""
        known = max(0, bisect_right(self._offsets, start) - 1)
        for offset in self._offsets[:known]:  # they are of what was stamped before
            del self._times[offset]
        for each in times:
            moment = datetime.fromisoformat(each["at"]).astimezone()
            self._times[each["offset"]] = f"{moment.isoformat(timespec='seconds')} ".encode()
        self._offsets = sorted(self._times)

    def stamped(self, data: bytes, offset: int) -> bytes:
        """The piece that begins at byte ``offset``; spaces stand for a time that is not known.

        A progress bar, which goes back to the beginning of its line, gets a time whenever it does.
        """
        found = []
        for line in _LINE.finditer(data):
            text = line.group()
            if text and self._begins and not (self._returned and text == b"\n"):
                found.append(self._word(offset + line.start()))
            if text:
                found.append(text)
                self._begins, self._returned = text.endswith((b"\r", b"\n")), text.endswith(b"\r")
        return b"".join(found)

    def _word(self, offset: int) -> bytes:
        place = bisect_right(self._offsets, offset)
        return self._times[self._offsets[place - 1]] if place else _UNKNOWN
