"""What a simulation answers: figures of all and of each virtual cluster, each group's fate, and the course."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from pydantic import Field

from pai_backend.model.base import Model
from pai_backend.model.waiting import Waiting
from pai_backend.scheduling.simulate.meter import Meter, Moment

MOST_MOMENTS = 400
"""Points of the course that is reported; more are averaged."""
HOUR_S = 3600.0


class Waits(Model):
    """Seconds from arrival to the first start. Percentiles are nearest ranks: waits that occurred."""

    mean_s: float = 0.0
    p50_s: float = 0.0
    p95_s: float = 0.0
    max_s: float = 0.0


class Fate(Model):
    """What became of a group. Seconds from the beginning of the trace."""

    name: str
    vc: str
    gpus: int
    arrived_s: float
    duration_s: float
    started_s: float | None = Field(description="The first time; null for one that never started.")
    ended_s: float | None = Field(description="When it had run to its end; null for one that never started.")
    preempted: int = Field(description="How often it was ended for another, to begin anew.")
    displaced: int = Field(description="How often it lost its quota and ran on opportunistically.")
    lost_s: float = Field(description="Seconds that it ran in vain before it was ended for others.")


class Share(Model):
    """The figures of some groups."""

    vc: str = Field(description="Their virtual cluster; empty for all.")
    groups: int
    waits: Waits
    gpu_hours: float = Field(description="Of runs to the end.")
    preempted: int
    displaced: int
    lost_gpu_hours: float = Field(description="Of runs that were ended for others.")


class Point(Model):
    """Averages over a part of the time."""

    at_s: float = Field(description="Where that part begins.")
    used: tuple[float, ...] = Field(description="GPUs by virtual cluster, in the order of `vcs`.")
    waiting: float = Field(description="GPUs that waiting groups ask for.")


class Report(Model):
    """How a trace would have gone. GPUs are leaf cells."""

    gpus: int
    span_s: float = Field(description="From the first arrival to the last end.")
    utilisation: float = Field(description="Share of all GPU time that was used, opportunistic and lost runs included.")
    fragmentation: float = Field(description="Share of the idle GPU time that was on machines partly in use.")
    idle_while_wanted: float = Field(description="Share of all GPU time that was idle while groups waited for as much.")
    total: Share
    vcs: tuple[Share, ...]
    refused: tuple[Waiting, ...] = Field(description="Groups that could not start in an empty cluster, and why.")
    fates: tuple[Fate, ...] = Field(description="All groups, by arrival.")
    course: tuple[Point, ...]


def report(meter: Meter, fates: Sequence[Fate], refused: Sequence[Waiting]) -> Report:
    """Sum a simulation up."""
    first = min((fate.arrived_s for fate in fates), default=0.0)
    last = max((fate.ended_s for fate in fates if fate.ended_s is not None), default=first)
    all_time = (last - first) * meter.gpus
    sums = meter.sums
    idle = all_time - sums.used
    return Report(
        gpus=meter.gpus,
        span_s=last - first,
        utilisation=_part(sums.used, all_time),
        fragmentation=_part(sums.scattered, idle),
        idle_while_wanted=_part(sums.wanted, all_time),
        total=_share("", fates),
        vcs=tuple(_share(vc, [fate for fate in fates if fate.vc == vc]) for vc in meter.vcs),
        refused=tuple(refused),
        fates=tuple(fates),
        course=_course(meter.moments, first, last, len(meter.vcs)),
    )


def _part(some: float, whole: float) -> float:
    """A share from 0 to 1; sums of floating point numbers may miss both ends by a hair."""
    return min(max(some / whole, 0.0), 1.0) if whole > 0 else 0.0


def _share(vc: str, fates: Sequence[Fate]) -> Share:
    waits = sorted(fate.started_s - fate.arrived_s for fate in fates if fate.started_s is not None)
    return Share(
        vc=vc,
        groups=len(fates),
        waits=_waits(waits),
        gpu_hours=sum(fate.duration_s * fate.gpus for fate in fates if fate.ended_s is not None) / HOUR_S,
        preempted=sum(fate.preempted for fate in fates),
        displaced=sum(fate.displaced for fate in fates),
        lost_gpu_hours=sum(fate.lost_s * fate.gpus for fate in fates) / HOUR_S,
    )


def _waits(ordered: Sequence[float]) -> Waits:
    if not ordered:
        return Waits()
    ranks = {part: ordered[max(-(-len(ordered) * part // 100) - 1, 0)] for part in (50, 95)}
    return Waits(mean_s=sum(ordered) / len(ordered), p50_s=ranks[50], p95_s=ranks[95], max_s=ordered[-1])


def _course(moments: Sequence[Moment], first: float, last: float, vcs: int) -> tuple[Point, ...]:
    """The moments themselves, or averages over equal parts of the time when there are too many."""
    if len(moments) <= MOST_MOMENTS:
        return tuple(Point(at_s=each.at_s, used=each.used, waiting=each.waiting) for each in moments)
    width = (last - first) / MOST_MOMENTS
    sums = [[0.0] * (vcs + 1) for _ in range(MOST_MOMENTS)]
    for moment, until in zip(moments, [*(each.at_s for each in moments[1:]), last], strict=True):
        for part, seconds in _parts(moment.at_s - first, min(until, last) - first, width):
            for column, value in enumerate((*moment.used, moment.waiting)):
                sums[part][column] += value * seconds
    rows = [[value / width for value in row] for row in sums]
    return tuple(
        Point(at_s=first + part * width, used=tuple(row[:-1]), waiting=row[-1]) for part, row in enumerate(rows)
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
