"""When a waiting group will start, as far as run times are known: the future is played on the real scheduler.

Running groups end when they are expected to, those that wait start in order, later ones past earlier ones too, and
nobody new comes. What has no known end never ends here, so that an answer does not rest on a guess.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from heapq import heapify, heappop, heappush
from typing import NamedTuple

from pai_backend.scheduling.core.cluster import Cluster
from pai_backend.scheduling.core.group import Bound
from pai_backend.scheduling.core.place import Option
from pai_backend.scheduling.queue.entry import Entry
from pai_backend.scheduling.queue.index import kind_at
from pai_backend.scheduling.queue.queue import Queue
from pai_backend.scheduling.queue.shelf import capacity
from pai_backend.scheduling.queue.standing import first_waiting

MOST_AHEAD = 16
"""With more groups before it than this nothing is predicted; as many behind it are played along."""
MOST_ASKED = 64
"""How many decisions one prediction may cost."""

RunTime = Callable[[Entry], timedelta | None]
"""How long a group runs: declared, or from its user's history. None when unknown."""


def unknown_time(entry: Entry) -> None:
    """A :data:`RunTime` for when nothing is known."""


class _Waits(NamedTuple):
    entry: Entry
    options: Sequence[Option]
    least: int


def starts_at(queue: Queue, entry: Entry, now: datetime, run_time: RunTime = unknown_time) -> datetime | None:
    """When the group will start if nothing new happens; None when too little is known, or it would cost too much.

    Reservations of others stay as they are, and neither caps nor patience are played: an estimate, not a promise.
    Nothing is told of groups that start only together.
    """
    name = entry.group.name
    if entry.others:
        return None
    line = [
        _Waits(ticket.entry, kind_at(ticket).options, kind_at(ticket).least)
        for ticket in first_waiting(queue, entry, 2 * MOST_AHEAD)
        if not ticket.entry.others
    ]
    if name in queue.claims:
        claim = queue.claims[name]
        line = sorted([*line, _Waits(entry, claim.options, claim.least)], key=lambda each: each.entry.key)
    at = next((index for index, each in enumerate(line) if each.entry.group.name == name), None)
    if at is None or at > MOST_AHEAD:
        return None
    ends = [(max(end, now), each) for each in queue.running if (end := queue.ends(each)) is not None]
    with queue.cluster.trial() as trial:
        trial.release(name)
        return _play(queue, trial, line, name, ends, run_time)


def _play(
    queue: Queue,
    trial: Cluster,
    line: list[_Waits],
    name: str,
    ends: list[tuple[datetime, str]],
    run_time: RunTime,
) -> datetime | None:
    """Let groups end one instant after the other, and start whoever can, until the one of that name does."""
    asked = 0
    heapify(ends)
    while ends:
        at = ends[0][0]
        while ends and ends[0][0] == at:
            trial.release(heappop(ends)[1])
        for each in list(line):
            entry = each.entry
            if not any(each.least <= capacity(option, entry.group.priority) for option in each.options):
                continue
            asked += 1
            if asked > MOST_ASKED:
                return None
            decision = trial.try_place(entry.group, queue.decider.could_use(entry))
            if not isinstance(decision, Bound):
                continue
            if entry.group.name == name:
                return at
            trial.commit(decision)
            line.remove(each)
            lasts = run_time(entry)
            if lasts is not None:
                heappush(ends, (at + lasts, entry.group.name))
    return None
