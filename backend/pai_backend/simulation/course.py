"""The course of a simulation as points that can be drawn: moments, or averages when there are too many."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from pai_backend.simulation.meter import Moment
from pai_backend.simulation.report import Point

MOST_MOMENTS = 400
"""Points of the course that is reported; more are averaged."""


def course(moments: Sequence[Moment], first: float, last: float, vcs: int) -> tuple[Point, ...]:
    """The moments up to ``last`` themselves, or averages over equal parts of the time when there are too many."""
    moments = [each for each in moments if each.at_s <= last]
    if len(moments) <= MOST_MOMENTS:
        return tuple(_point(each.at_s, _columns(each), vcs) for each in moments)
    width = (last - first) / MOST_MOMENTS
    sums = [[0.0] * (2 * vcs + 3) for _ in range(MOST_MOMENTS)]
    for moment, until in zip(moments, [*(each.at_s for each in moments[1:]), last], strict=True):
        for part, seconds in _parts(moment.at_s - first, until - first, width):
            for column, value in enumerate(_columns(moment)):
                sums[part][column] += value * seconds
    return tuple(_point(first + part * width, [value / width for value in row], vcs) for part, row in enumerate(sums))


def _columns(moment: Moment) -> tuple[float, ...]:
    return (*moment.used, *moment.opportunistic, moment.broken, moment.gpus, moment.waiting)


def _point(at_s: float, columns: Sequence[float], vcs: int) -> Point:
    broken, gpus, waiting = columns[2 * vcs :]
    return Point(
        at_s=at_s,
        used=tuple(columns[:vcs]),
        opportunistic=tuple(columns[vcs : 2 * vcs]),
        broken=broken,
        gpus=gpus,
        waiting=waiting,
    )


def _parts(start: float, end: float, width: float) -> Iterable[tuple[int, float]]:
    """The parts of the time that an interval lies in, with the seconds that it has in each."""
    part = min(int(start / width), MOST_MOMENTS - 1)
    while start < end:
        border = end if part == MOST_MOMENTS - 1 else min(end, (part + 1) * width)
        if border > start:
            yield part, border - start
            start = border
        part += 1
