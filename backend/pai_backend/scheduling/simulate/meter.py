"""What is used, idle, scattered and wanted while simulated time passes, summed up over that time."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from pai_backend.scheduling.core.group import Placement


class Moment(NamedTuple):
    """What holds from a time on, until the next moment. Seconds and GPUs."""

    at_s: float
    used: tuple[int, ...]
    """By virtual cluster, in the order of the configuration."""
    waiting: int
    """GPUs that waiting groups ask for."""


@dataclass(slots=True)
class Sums:
    """GPU-seconds."""

    used: float = 0.0
    scattered: float = 0.0
    """Idle ones, on machines of which a part is used."""
    wanted: float = 0.0
    """Idle ones, while groups waited for as many."""


@dataclass(slots=True)
class Meter:
    """Counts of one simulation, from ``at_s`` on. ``sizes`` are the GPUs of each machine."""

    sizes: Mapping[str, int]
    vcs: tuple[str, ...]
    at_s: float = 0.0
    sums: Sums = field(default_factory=Sums)
    moments: list[Moment] = field(default_factory=list)
    waiting: int = 0
    _used: dict[str, int] = field(default_factory=dict)
    _on: dict[str, int] = field(default_factory=dict)
    _total: int = 0
    _scattered: int = 0

    @property
    def gpus(self) -> int:
        """All there are."""
        return sum(self.sizes.values())

    def pass_until(self, at_s: float) -> None:
        """Time passes, and nothing changed since the last call."""
        span, idle = at_s - self.at_s, self.gpus - self._total
        self.sums.used += self._total * span
        self.sums.scattered += self._scattered * span
        self.sums.wanted += min(idle, self.waiting) * span
        self.at_s = at_s

    def mark(self) -> None:
        """All that happens at this time has happened: note what holds from here on, unless it held before."""
        used = tuple(self._used.get(vc, 0) for vc in self.vcs)
        if not self.moments or self.moments[-1][1:] != (used, self.waiting):
            self.moments.append(Moment(self.at_s, used, self.waiting))

    def start(self, placement: Placement) -> None:
        """A group takes its place."""
        self._change(placement, 1)

    def end(self, placement: Placement) -> None:
        """A group gives its place back."""
        self._change(placement, -1)

    def _change(self, placement: Placement, sign: int) -> None:
        for node, count in _by_node((pod.node, len(pod.devices)) for pod in placement.pods):
            before = self._on.get(node, 0)
            after = before + sign * count
            size = self.sizes[node]
            self._scattered += _idle_beside(after, size) - _idle_beside(before, size)
            self._on[node] = after
            self._total += sign * count
            vc = placement.group.vc
            self._used[vc] = self._used.get(vc, 0) + sign * count


def _by_node(pods: Iterable[tuple[str, int]]) -> Iterable[tuple[str, int]]:
    counts: dict[str, int] = {}
    for node, count in pods:
        counts[node] = counts.get(node, 0) + count
    return counts.items()


def _idle_beside(used: int, size: int) -> int:
    """Idle GPUs of a machine of which a part is used."""
    return size - used if used else 0
