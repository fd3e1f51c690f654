"""From the raw course of a simulation to its figures."""

from __future__ import annotations

import math
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Sequence
from typing import NamedTuple

from pai_backend.model.waiting import Waiting
from pai_backend.scheduling.queue.entry import line_of
from pai_backend.scheduling.request import Key
from pai_backend.simulation.course import course
from pai_backend.simulation.fate import Fate, RunOutcome, Spell
from pai_backend.simulation.life import GroupLife
from pai_backend.simulation.meter import Meter
from pai_backend.simulation.report import GroupFigures, Report, Waits

HOUR_S = 3600.0


def report(meter: Meter, lives: Collection[GroupLife], refused: Sequence[Waiting]) -> Report:
    """Sum a simulation up."""
    names = {waiting.group for waiting in refused}
    counts = _overtaken([life for life in lives if life.arrival.name not in names])
    fates = [life.fate(counts) for life in lives]
    first, last = min((fate.arrived_s for fate in fates), default=0.0), meter.closed_s
    sums, owned = meter.closed, {vc: seconds / HOUR_S for vc, seconds in meter.closed.owned.items()}
    by_vc, by_user = _by(fates, lambda fate: fate.vc), _by(fates, lambda fate: fate.user)
    return Report(
        gpus=max((moment.gpus for moment in meter.moments), default=meter.gpus),
        span_s=max(last - first, 0.0),
        utilisation=_part(sums.used, sums.all),
        guaranteed=_part(sums.used - sums.opportunistic, sums.all),
        opportunistic=_part(sums.opportunistic, sums.all),
        broken=_part(sums.broken, sums.all),
        idle_while_wanted=_part(sums.wanted, sums.all),
        fragmentation=_part(sums.scattered, sums.all - sums.used - sums.broken),
        total=_share(fates, owned=sum(owned.values())),
        vcs=tuple(_share(by_vc[vc], vc=vc, owned=owned.get(vc, 0.0)) for vc in meter.vcs),
        users=tuple(_share(by_user[user], user=user) for user in sorted(by_user) if user),
        refused=tuple(refused),
        left=tuple(fate.name for fate in fates if fate.name not in names and _is_left(fate)),
        fates=tuple(fates),
        course=course(meter.moments, first, last, len(meter.vcs)),
    )


def _by(fates: Iterable[Fate], key: Callable[[Fate], str]) -> defaultdict[str, list[Fate]]:
    found: defaultdict[str, list[Fate]] = defaultdict(list)
    for fate in fates:
        found[key(fate)].append(fate)
    return found


def _is_left(fate: Fate) -> bool:
    return fate.ended_s is None and fate.cancelled_s is None and fate.stopped_s is None


def _overtaken(lives: Iterable[GroupLife]) -> dict[str, int]:
    """How often each was overtaken; a group that never started counts for as long as it waited."""
    stays: defaultdict[str, list[Stay]] = defaultdict(list)
    for life in lives:
        start = life.first_start_s
        until = start if start is not None else life.cancelled_s if life.cancelled_s is not None else math.inf
        stay = Stay(life.arrival.name, life.entry.key, life.arrived_s, until, start is not None)
        stays[line_of(life.entry.group)].append(stay)
    return {name: count for line in stays.values() for name, count in overtaken(line).items()}


def _part(some: float, whole: float) -> float:
    """A share from 0 to 1; sums of floating point numbers may miss both ends by a hair."""
    return min(max(some / whole, 0.0), 1.0) if whole > 0 else 0.0


def _share(fates: Sequence[Fate], *, vc: str = "", user: str = "", owned: float = 0.0) -> GroupFigures:
    waits = sorted(fate.started_s - fate.arrived_s for fate in fates if fate.started_s is not None)
    spells = [spell for fate in fates for spell in fate.spells]
    return GroupFigures(
        vc=vc,
        user=user,
        groups=len(fates),
        unstarted=len(fates) - len(waits),
        waits=_waits(waits),
        gpu_hours=_hours(spell for spell in spells if spell.outcome is RunOutcome.DONE),
        guaranteed_gpu_hours=_hours(spell for spell in spells if not spell.opportunistic),
        opportunistic_gpu_hours=_hours(spell for spell in spells if spell.opportunistic),
        owned_gpu_hours=owned,
        preempted=sum(fate.preempted for fate in fates),
        lost_gpu_hours=_hours(spell for spell in spells if spell.outcome is RunOutcome.PREEMPTED),
        failed=sum(fate.failed for fate in fates),
        failed_gpu_hours=_hours(spell for spell in spells if spell.outcome is RunOutcome.FAILED),
        cancelled_gpu_hours=_hours(spell for spell in spells if spell.outcome is RunOutcome.CANCELLED),
        overrun=sum(fate.stopped_s is not None for fate in fates),
        overrun_gpu_hours=_hours(spell for spell in spells if spell.outcome is RunOutcome.OVERRUN),
        displaced=sum(fate.displaced for fate in fates),
        overtaken=sum(fate.overtaken for fate in fates),
        capped=sum(fate.capped_s > 0 for fate in fates),
        capped_hours=sum(fate.capped_s for fate in fates) / HOUR_S,
        grown=sum(fate.grown for fate in fates),
    )


def _hours(spells: Iterable[Spell]) -> float:
    return sum(spell.gpu_s for spell in spells) / HOUR_S


def _waits(ordered: Sequence[float]) -> Waits:
    if not ordered:
        return Waits()
    ranks = {part: ordered[max(-(-len(ordered) * part // 100) - 1, 0)] for part in (50, 95)}
    return Waits(mean_s=sum(ordered) / len(ordered), p50_s=ranks[50], p95_s=ranks[95], max_s=ordered[-1])


class Stay(NamedTuple):
    """A group's first stay in a queue, from its arrival to its first start, or to the time when it gave up."""

    name: str
    key: Key
    arrived_s: float
    until_s: float
    started: bool


def overtaken(stays: Iterable[Stay]) -> dict[str, int]:
    """For each group of one queue, how many that stand behind it first started while it waited.

    Those that start at the same instant as it have not overtaken it. Costs n log n.
    """
    found: dict[str, int] = {}
    behind = sorted(stays, key=lambda stay: stay.key, reverse=True)
    starts = sorted({stay.until_s for stay in behind if stay.started})
    counts = _Counts(len(starts))
    for stay in behind:
        found[stay.name] = counts.below(bisect_left(starts, stay.until_s)) - counts.below(
            bisect_left(starts, stay.arrived_s)
        )
        if stay.started:
            counts.add(bisect_left(starts, stay.until_s))
    return found


class _Counts:
    """Counts by rank, of which prefixes are summed up: a Fenwick tree."""

    def __init__(self, size: int) -> None:
        self._tree = [0] * (size + 1)

    def add(self, rank: int) -> None:
        """One more at a rank."""
        at = rank + 1
        while at < len(self._tree):
            self._tree[at] += 1
            at += at & -at

    def below(self, rank: int) -> int:
        """How many there are at lower ranks."""
        total = 0
        while rank:
            total += self._tree[rank]
            rank -= rank & -rank
        return total
