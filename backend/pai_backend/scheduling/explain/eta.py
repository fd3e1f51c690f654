"""When a waiting group will start, as far as run times are known: the future is played on the real scheduler.

Running groups end when they are expected to, those that wait before it start in order, and nobody new comes. What has
no known end never ends here, so that an answer does not rest on a guess.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta
from heapq import heapify, heappop, heappush

from pai_backend.scheduling.core.cluster import Cluster
from pai_backend.scheduling.core.group import Bound
from pai_backend.scheduling.queue.entry import Entry
from pai_backend.scheduling.queue.queue import Queue
from pai_backend.scheduling.queue.standing import those_ahead

MOST_AHEAD = 16
"""With more groups before it than this nothing is predicted."""
MOST_ASKED = 64
"""How many decisions one prediction may cost."""

RunTime = Callable[[Entry], timedelta | None]
"""How long a group runs: declared, or from its user's history. None when unknown."""


def unknown_time(entry: Entry) -> None:
    """A :data:`RunTime` for when nothing is known."""


def starts_at(queue: Queue, entry: Entry, now: datetime, run_time: RunTime = unknown_time) -> datetime | None:
    """When the group will start if nothing new happens; None when too little is known, or it would cost too much."""
    name = entry.group.name
    line = [ticket.entry for ticket in those_ahead(queue, entry) if ticket.line and not ticket.line.parked]
    if len(line) > MOST_AHEAD:
        return None
    ends = [(end, each) for each in queue.running if (end := queue.ends(each)) is not None]
    with queue.cluster.trial() as trial:
        trial.release(name)
        return _play(queue, trial, [*line, entry], [(max(end, now), each) for end, each in ends], run_time)


def _play(
    queue: Queue, trial: Cluster, line: list[Entry], ends: list[tuple[datetime, str]], run_time: RunTime
) -> datetime | None:
    """Let groups end one instant after the other, and start whoever can, until the last of ``line`` does."""
    target, asked = line[-1], 0
    heapify(ends)
    while ends:
        at = ends[0][0]
        while ends and ends[0][0] == at:
            trial.release(heappop(ends)[1])
        for entry in list(line):
            asked += 1
            if asked > MOST_ASKED:
                return None
            decision = trial.try_place(entry.group, queue.could_use(entry))
            if not isinstance(decision, Bound):
                continue
            if entry is target:
                return at
            trial.commit(decision)
            line.remove(entry)
            lasts = run_time(entry)
            if lasts is not None:
                heappush(ends, (at + lasts, entry.group.name))
    return None
