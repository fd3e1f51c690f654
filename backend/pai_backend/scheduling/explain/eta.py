"""When a waiting group will start, as far as run times are known: the future is played on the real scheduler.

Running groups end when they are expected to, those that wait start in order, later ones past earlier ones too, and
no new group comes. What has no known end never ends here, so that an answer does not rest on a guess; nor does what has
outlasted its expected time, since its end is unknown.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from heapq import heapify, heappop, heappush
from typing import NamedTuple

from pai_backend.scheduling.core.decision import Bound
from pai_backend.scheduling.core.ledger import Ledger
from pai_backend.scheduling.core.place import Option
from pai_backend.scheduling.queue.books import first_waiting
from pai_backend.scheduling.queue.index import capacity, kind_at
from pai_backend.scheduling.queue.queue import Queue
from pai_backend.scheduling.request import OPPORTUNISTIC, Entry

MOST_AHEAD = 16
"""With more groups before it than this nothing is predicted; as many behind it are played along."""
MOST_ASKED = 64
"""How many decisions one prediction may cost."""

RunTime = Callable[[Entry], timedelta | None]
"""How long a group runs: declared, or from its user's history. None when unknown."""


class Estimate(NamedTuple):
    """When a group will start. It rests on the ends of the groups of these names, where it may run itself."""

    at: datetime
    after: tuple[str, ...]


class _Waits(NamedTuple):
    entry: Entry
    options: Sequence[Option]
    least: int


def estimate(queue: Queue, entry: Entry, now: datetime, run_time: RunTime = lambda _: None) -> Estimate | None:
    """When the group will start if nothing new happens; None when too little is known, or it would cost too much.

    Reservations of others stay as they are, and neither caps nor patience are played: an estimate, not a promise.
    Groups that start only together have no estimate.
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
    ends = [(end, each) for each in queue.running if (end := queue.ends(each)) is not None and end >= now]
    with queue.ledger.trial() as trial:
        trial.release(name)
        return _play(queue, trial, line, name, ends, run_time)


def _play(
    queue: Queue,
    trial: Ledger,
    line: list[_Waits],
    name: str,
    ends: list[tuple[datetime, str]],
    run_time: RunTime,
) -> Estimate | None:
    """Let groups end one instant after the other, and start those that can, until the named one does."""
    asked = 0
    asker = next(each for each in line if each.entry.group.name == name)
    over: list[str] = []
    heapify(ends)
    while ends:
        at = ends[0][0]
        while ends and ends[0][0] == at:
            _, ended = heappop(ends)
            for group in _groups(queue, ended):
                over += [group] if _makes_room(trial, group, asker) else []
                trial.release(group)
        for each in list(line):
            entry = each.entry
            if not any(each.least <= capacity(option, entry.group.priority) for option in each.options):
                continue
            asked += 1
            if asked > MOST_ASKED:
                return None
            decision = trial.decide(entry.group, queue.decider.could_use(entry))
            if not isinstance(decision, Bound):
                continue
            if entry.group.name == name:
                return Estimate(at, tuple(over))
            trial.apply(decision, final=True)
            line.remove(each)
            lasts = run_time(entry)
            if lasts is not None:
                heappush(ends, (at + lasts, entry.group.name))
    return None


def _groups(queue: Queue, name: str) -> list[str]:
    """The groups of what runs under this name: those that started together end together."""
    entry = queue.running.get(name)
    return [name] if entry is None else [group.name for group in entry.groups]


def _makes_room(ledger: Ledger, name: str, asker: _Waits) -> bool:
    """Whether the end of a running group can help the one that is asked for: with a guarantee it waits for its own
    virtual cluster alone.
    """
    held, group = ledger.groups.get(name), asker.entry.group
    if held is None or (group.priority != OPPORTUNISTIC and held.group.vc != group.vc):
        return False
    chains = {option.chain.name for option in asker.options}
    return any(spot.node.chain.name in chains for spot in held.spots)
