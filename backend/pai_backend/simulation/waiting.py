"""Who waits for a cap, and for how long."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime

from pai_backend.scheduling.queue import Cap, Queue
from pai_backend.simulation.life import GroupLife


class Capped:
    """Looks at the queue after each instant: where the policy has caps that costs a walk over those who wait."""

    def __init__(self, queue: Queue) -> None:
        self._queue = queue
        self._has_caps = _has_caps(queue)
        self._since: dict[str, datetime] = {}
        self._now: datetime | None = None

    def look(self, lives: Mapping[str, GroupLife], now: datetime) -> None:
        """What holds from this instant on."""
        if not self._has_caps:
            return
        self._now = now
        capped = dict.fromkeys(self._names())
        for name in [name for name in self._since if name not in capped]:
            lives[name].capped_s += (now - self._since.pop(name)).total_seconds()
        for name in capped:
            self._since.setdefault(name, now)

    def close(self, lives: Mapping[str, GroupLife]) -> None:
        """Nothing happens any more."""
        for name, since in self._since.items():
            assert self._now is not None
            lives[name].capped_s += (self._now - since).total_seconds()
        self._since.clear()

    def _names(self) -> Iterator[str]:
        for kind in self._queue.index.kinds.values():
            for variant in kind.variants.values():
                for line in variant.lines.values():
                    if line.parked is not None:
                        yield from (ticket.entry.group.name for ticket in line.tickets)


def _has_caps(queue: Queue) -> bool:
    policy = queue.policy
    inside = [policy.vc, *policy.vcs.values()]
    caps = [policy.user, *policy.users.values()]
    caps += [cap for each in inside for cap in (each.total, each.user, *each.users.values())]
    return any(cap != Cap() for cap in caps)
