"""What would start a waiting group now: changes of one thing each, every one of them tried on the real scheduler."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from pai_backend.model.errors import PaiError
from pai_backend.model.waiting import Change, ChangeKind
from pai_backend.scheduling.queue.entry import Entry
from pai_backend.scheduling.queue.queue import Queue
from pai_backend.scheduling.request import OPPORTUNISTIC, Group, Member

MOST_TRIALS = 32
"""How many changed groups the scheduler is asked about for one explanation; each costs what a decision costs."""
MOST_MEMBERS = 4
"""Members of a group, the largest first, that are tried with fewer or smaller tasks."""


def changes(queue: Queue, entry: Entry, now: datetime, vcs: Sequence[str] = ()) -> tuple[Change, ...]:
    """Changes with which the group would start at once, at no one's cost; the smallest first.

    First those that keep all of its tasks and its guarantee, then those that give up the fewest GPUs, then running
    opportunistically. ``vcs`` are the other virtual clusters that the user may use. Nothing is suggested while others
    have not been asked yet (:attr:`Queue.is_settled`).
    """
    if not queue.is_settled:
        return ()
    search = _Search(queue, entry, now)
    found = [*search.anywhere(), *search.types(), *search.clusters(vcs)]
    found += sorted(search.less(), key=lambda change: _given_up(entry.group, change))
    return (*found, *search.opportunistic())


def apply(group: Group, change: Change) -> Group:
    """The group with a change made. Raises ValueError for a change of nodes, which is none of the group."""
    if change.kind is ChangeKind.TYPE:
        return replace(group, leaf_type=change.leaf_type)
    if change.kind is ChangeKind.VC:
        return replace(group, vc=change.vc, pinned_id="")
    if change.kind is ChangeKind.OPPORTUNISTIC:
        return replace(group, priority=OPPORTUNISTIC, pinned_id="")
    if change.kind is ChangeKind.ANYWHERE:
        return replace(group, within="", members=tuple(replace(member, within="") for member in group.members))
    members = list(group.members)
    old = members[change.member]
    if change.kind is ChangeKind.FEWER:
        members[change.member] = Member(change.after, old.leaves, None, old.within)
    elif change.kind is ChangeKind.SMALLER:
        members[change.member] = replace(old, leaves=change.after)
    else:
        raise ValueError(f"{change.kind} changes no group")
    return replace(group, members=tuple(members))


def _given_up(group: Group, change: Change) -> int:
    return group.leaves - apply(group, change).leaves


@dataclass(slots=True)
class _Search:
    """Tries changes until none is left, or too many have been tried."""

    queue: Queue
    entry: Entry
    now: datetime
    tried: int = 0

    def anywhere(self) -> Iterator[Change]:
        """Not within one cell, when one is asked for."""
        group = self.entry.group
        kinds = dict.fromkeys(kind for kind in (group.within, *(each.within for each in group.members)) if kind)
        if kinds:
            yield from self._working(Change(kind=ChangeKind.ANYWHERE, detail=", ".join(kinds)))

    def types(self) -> Iterator[Change]:
        """Another GPU type, when one is asked for."""
        group = self.entry.group
        if not group.leaf_type or group.pinned_id:
            return
        for kind in dict.fromkeys(chain.leaf_type for chain in self.queue.ledger.chains.values()):
            if kind != group.leaf_type:
                yield from self._working(Change(kind=ChangeKind.TYPE, leaf_type=kind))

    def clusters(self, vcs: Sequence[str]) -> Iterator[Change]:
        """Another virtual cluster; for opportunistic groups they are all the same."""
        if self.entry.group.priority != OPPORTUNISTIC:
            for vc in vcs:
                if vc != self.entry.group.vc:
                    yield from self._working(Change(kind=ChangeKind.VC, vc=vc))

    def opportunistic(self) -> Iterator[Change]:
        """Without a guarantee."""
        if self.entry.group.priority != OPPORTUNISTIC:
            yield from self._working(Change(kind=ChangeKind.OPPORTUNISTIC))

    def less(self) -> Iterator[Change]:
        """Fewer tasks, or smaller ones, of one member."""
        members = self.entry.group.members
        ranked = sorted(range(len(members)), key=lambda index: -members[index].pods * members[index].leaves)
        for index in ranked[:MOST_MEMBERS]:
            pods, least, leaves = members[index].pods, members[index].min_pods, members[index].leaves
            most = pods if least is None else least
            yield from self._largest(Change(kind=ChangeKind.FEWER, member=index, before=pods), most - 1)
            yield from self._largest(Change(kind=ChangeKind.SMALLER, member=index, before=leaves), leaves - 1)

    def _largest(self, change: Change, most: int) -> Iterator[Change]:
        """The change with the largest number up to ``most`` that works; halving, since less is easier."""
        best: list[Change] = []
        low, high = 1, most
        while low <= high:
            middle = (low + high + 1) // 2
            found = list(self._working(change.model_copy(update={"after": middle})))
            if found:
                best, low = found, middle + 1
            else:
                high = middle - 1
        yield from best

    def _working(self, change: Change) -> Iterator[Change]:
        if self.tried < MOST_TRIALS:
            self.tried += 1
            account = "" if change.kind is ChangeKind.VC else self.entry.account
            changed = replace(self.entry, group=apply(self.entry.group, change), account=account)
            if starts(self.queue, changed, self.now):
                yield change


def starts(queue: Queue, entry: Entry, now: datetime) -> bool:
    """Whether a changed entry would start at once; False as well when it can never be right."""
    try:
        return queue.would_be_asked(entry) and queue.would_start(entry, now)
    except PaiError:
        return False
