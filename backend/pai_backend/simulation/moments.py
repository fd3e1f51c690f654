"""Simulated time: the queue wants dates, a trace has seconds. And what happens at one instant, in which order."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from enum import IntEnum
from heapq import heappop, heappush
from typing import NamedTuple

BEGINNING = datetime(2000, 1, 1, tzinfo=UTC)
"""Second 0 of every trace: any date will do."""


def date(at_s: float) -> datetime:
    """The date of a second of the trace. Raises OverflowError beyond the calendar."""
    return BEGINNING + timedelta(seconds=at_s)


def seconds(at: datetime) -> float:
    """The second of the trace."""
    return (at - BEGINNING).total_seconds()


class MomentKind(IntEnum):
    """What happens; of one instant in this order, so that what ends makes room for what comes."""

    END = 0
    EVICTION = 1
    CHANGE = 2
    """Of nodes, or of the configuration."""
    ARRIVAL = 3
    CANCELLATION = 4
    LOOK = 5
    """The patience of a waiting group is over."""
    RESERVATION = 6
    """One begins or ends."""


class Foreseen(NamedTuple):
    """Something foreseen; ``number`` keeps the order in which it was, ``subject`` is a group or a line of the trace."""

    at: datetime
    kind: MomentKind
    number: int
    subject: str
    run: int


class Agenda:
    """What is foreseen, soonest first."""

    def __init__(self) -> None:
        self._heap: list[Foreseen] = []
        self._number = 0
        self._looks = 0

    def add(self, at: datetime, kind: MomentKind, subject: str = "", run: int = 0) -> int:
        """Something will happen; its number, by which news can be told from what was foreseen before."""
        self._number += 1
        self._looks += kind is MomentKind.LOOK
        heappush(self._heap, Foreseen(at, kind, self._number, subject, run))
        return self._number

    @property
    def next(self) -> datetime | None:
        """When something happens again; None when only looks at the patience of waiting groups are left."""
        return self._heap[0].at if len(self._heap) > self._looks else None

    def take(self, now: datetime) -> Foreseen | None:
        """The next thing that happens at this time."""
        if not self._heap or self._heap[0].at != now:
            return None
        happening = heappop(self._heap)
        self._looks -= happening.kind is MomentKind.LOOK
        return happening
