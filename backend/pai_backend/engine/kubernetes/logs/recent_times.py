"""When output came that kubelets gave readers just now: what follows a log asks for it piece by piece. Pure."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

from pai_backend.model.ids import TaskUid

LOGS: Final = 500
TIMES: Final = 2_000
"""Of a log; with one a second the last half hour."""


@dataclass
class _Stretch:
    """Bytes of a log whose times are known: offsets and milliseconds since 1970."""

    start: int
    end: int
    times: list[tuple[int, int]] = field(default_factory=list)


class RecentTimes:
    """The last stretch of each of the logs that were read last."""

    def __init__(self) -> None:
        self._known: OrderedDict[TaskUid, _Stretch] = OrderedDict()

    def add(self, uid: TaskUid, end: int, size: int, times: Sequence[tuple[int, int]]) -> None:
        """``size`` bytes up to ``end`` were read, with these times: none where they came in the second before."""
        begin = end - size
        known = self._known.setdefault(uid, _Stretch(begin, begin))
        if begin > known.end:
            known.start, known.times = begin, []
        elif begin < known.end:
            times = [each for each in times if each[0] >= known.end]
        known.times = [*known.times, *times][-TIMES:]
        known.end = max(known.end, end)
        if len(known.times) == TIMES:
            known.start = known.times[0][0]
        self._known.move_to_end(uid)
        while len(self._known) > LOGS:
            self._known.popitem(last=False)

    def of(self, uid: TaskUid, start: int, end: int) -> list[tuple[int, int]] | None:
        """The times of these bytes, beginning with the last one before them; None where they are not all known."""
        known = self._known.get(uid)
        if known is None or known.start > start or known.end < end or not known.times or known.times[0][0] > start:
            return None
        first = max(place for place, (offset, _) in enumerate(known.times) if offset <= start)
        return [each for each in known.times[first:] if each[0] < end]
