"""How often groups were overtaken: counted after the fact, from who stood where and who started when."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable
from typing import NamedTuple

from pai_backend.scheduling.request import Key


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
