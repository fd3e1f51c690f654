"""What is used, idle, scattered, broken and wanted while simulated time passes, summed up over that time."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from pai_backend.scheduling.request import GroupPlace


class Moment(NamedTuple):
    """What holds from a time on, until the next moment. Seconds and GPUs."""

    at_s: float
    used: tuple[int, ...]
    """By virtual cluster, in the order of the report."""
    opportunistic: tuple[int, ...]
    """Of these, without a claim."""
    broken: int
    gpus: int
    """All GPUs."""
    waiting: int
    """GPUs that waiting groups ask for."""


@dataclass(slots=True)
class Sums:
    """GPU-seconds."""

    all: float = 0.0
    used: float = 0.0
    opportunistic: float = 0.0
    broken: float = 0.0
    scattered: float = 0.0
    """Idle ones, in free cells smaller than a machine."""
    wanted: float = 0.0
    """Idle ones, while groups waited for as many."""
    owned: dict[str, float] = field(default_factory=dict)
    """By virtual cluster, what it owns."""


@dataclass(slots=True)
class _Machine:
    """GPUs of a machine. One that the configuration no longer has counts for as long as it is used."""

    size: int = 0
    used: int = 0
    broken: int = 0

    @property
    def gpus(self) -> int:
        return max(self.size, self.used + self.broken)

    @property
    def scattered(self) -> int:
        """Idle GPUs of a machine that is not wholly idle."""
        return self.gpus - self.used - self.broken if self.used or self.broken else 0


class Meter:
    """Counts of one simulation, from ``at_s`` on. ``vcs`` are all virtual clusters there will ever be."""

    def __init__(self, vcs: tuple[str, ...], at_s: float = 0.0) -> None:
        self.vcs = vcs
        self.at_s = at_s
        self.waiting = 0
        self.sums = Sums()
        self.closed, self.closed_s = Sums(), at_s
        """The sums at the last end of a group: what comes after it is no part of the report."""
        self.moments: list[Moment] = []
        self.gpus = 0
        self._owned: Mapping[str, int] = {}
        self._machines: dict[str, _Machine] = {}
        self._used = dict.fromkeys(vcs, 0)
        self._opportunistic = dict.fromkeys(vcs, 0)
        self._total = self._free_riders = self._broken = self._scattered = 0

    def configure(self, sizes: Mapping[str, int], owned: Mapping[str, int]) -> None:
        """The machines that there are from now on, with their GPUs, and how many each virtual cluster owns."""
        self._owned = owned
        for name in dict.fromkeys((*self._machines, *sizes)):
            self._touch(name, size=sizes.get(name, 0), broken=None if name in sizes else 0)

    def broken(self, node: str, count: int) -> None:
        """So many GPUs of a machine are broken from now on; nothing runs on them. Not asked of unknown machines."""
        self._touch(node, broken=count)

    def pass_until(self, at_s: float) -> None:
        """Time passes, and nothing changed since the last call."""
        span, sums = at_s - self.at_s, self.sums
        idle = self.gpus - self._total - self._broken
        sums.all += self.gpus * span
        sums.used += self._total * span
        sums.opportunistic += self._free_riders * span
        sums.broken += self._broken * span
        sums.scattered += self._scattered * span
        sums.wanted += min(idle, self.waiting) * span
        for vc, count in self._owned.items():
            sums.owned[vc] = sums.owned.get(vc, 0.0) + count * span
        self.at_s = at_s

    def close(self) -> None:
        """A group ended, or was given up: the report reaches until here at least."""
        self.closed, self.closed_s = replace(self.sums, owned=dict(self.sums.owned)), self.at_s

    def mark(self) -> None:
        """All that happens at this time has happened: note what holds from here on, unless it held before."""
        used, without = tuple(self._used.values()), tuple(self._opportunistic.values())
        moment = Moment(self.at_s, used, without, self._broken, self.gpus, self.waiting)
        if self.moments and self.moments[-1].at_s == self.at_s:
            self.moments.pop()
        if not self.moments or self.moments[-1][1:] != moment[1:]:
            self.moments.append(moment)

    def take(self, placement: GroupPlace, sign: int, *, opportunistic: bool) -> None:
        """A group takes its place (1), or gives it back (-1)."""
        vc = placement.group.vc
        for node, count in on_nodes(placement).items():
            machine = self._machines.get(node)
            self._touch(node, used=sign * count + (machine.used if machine is not None else 0))
            self._total += sign * count
            self._used[vc] += sign * count
            if opportunistic:
                self._opportunistic[vc] += sign * count
                self._free_riders += sign * count

    def _touch(self, name: str, *, size: int | None = None, used: int | None = None, broken: int | None = None) -> None:
        machine = self._machines.setdefault(name, _Machine())
        gpus, scattered, was = machine.gpus, machine.scattered, machine.broken
        machine.size = machine.size if size is None else size
        machine.used = machine.used if used is None else used
        machine.broken = machine.broken if broken is None else broken
        self.gpus += machine.gpus - gpus
        self._scattered += machine.scattered - scattered
        self._broken += machine.broken - was


def on_nodes(placement: GroupPlace) -> dict[str, int]:
    """GPUs of a group on each node."""
    counts: dict[str, int] = {}
    for pod in placement.pods.values():
        counts[pod.node] = counts.get(pod.node, 0) + len(pod.cells)
    return counts
