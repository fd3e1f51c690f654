"""Why a group waits: the binding constraint with its numbers and names, and what would help."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from pai_backend.model.booking import Booking
from pai_backend.model.errors import PaiError
from pai_backend.model.waiting import (
    Basis,
    BookedFor,
    CapReached,
    Cause,
    Change,
    ChangeKind,
    Holder,
    Lack,
    LackOf,
    Told,
    Waiting,
)
from pai_backend.scheduling.cells.tree import State
from pai_backend.scheduling.core.decision import Wait
from pai_backend.scheduling.explain import texts_en, texts_zh
from pai_backend.scheduling.explain.eta import RunTime, estimate
from pai_backend.scheduling.explain.words import Words
from pai_backend.scheduling.queue.books import standing
from pai_backend.scheduling.queue.kind import Claim
from pai_backend.scheduling.queue.policy import Excess
from pai_backend.scheduling.queue.queue import Queue
from pai_backend.scheduling.request import MOST_HOLDERS, OPPORTUNISTIC, Entry, Group, Reason, WaitCode

LANGUAGES: Mapping[str, Words] = {"en": texts_en.WORDS, "zh_CN": texts_zh.WORDS}
"""Language tag -> its words."""
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
    found = [*search.shorter(), *search.anywhere(), *search.types(), *search.clusters(vcs)]
    found += sorted(search.less(), key=lambda change: -apply(entry.group, change).leaves)
    return (*found, *search.opportunistic())


def apply(group: Group, change: Change) -> Group:
    """The group with a change made. Raises ValueError for a change of nodes, which is none of the group."""
    if change.kind is ChangeKind.TYPE:
        return replace(group, leaf_type=change.leaf_type)
    if change.kind is ChangeKind.VC:
        return replace(group, vc=change.vc, pinned_id="")
    if change.kind is ChangeKind.SHORTER:
        return group
    if change.kind is ChangeKind.OPPORTUNISTIC:
        return replace(group, priority=OPPORTUNISTIC, pinned_id="")
    if change.kind is ChangeKind.ANYWHERE:
        return replace(group, within="", members=tuple(replace(member, within="") for member in group.members))
    members = list(group.members)
    old = members[change.member]
    if change.kind is ChangeKind.FEWER:
        members[change.member] = replace(old, pods=change.after, min_pods=None)
    elif change.kind is ChangeKind.SMALLER:
        members[change.member] = replace(old, leaves=change.after)
    else:
        raise ValueError(f"{change.kind} changes no group")
    return replace(group, members=tuple(members))


@dataclass(slots=True)
class _Search:
    """Tries changes until none is left, or too many have been tried."""

    queue: Queue
    entry: Entry
    now: datetime
    tried: int = 0

    def shorter(self) -> Iterator[Change]:
        """Stopped before the first reservation that it has to leave room for, if none has begun."""
        begins = [each.booking.begins for each in self.queue.bookings.barring(self.entry, self.now)]
        left = int((min(begins) - self.now).total_seconds()) // 60 * 60 if begins else 0
        if left > 0:
            yield from self._working(Change(kind=ChangeKind.SHORTER, after=left))

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
            asked = members[index]
            fewer = Change(kind=ChangeKind.FEWER, member=index, role=asked.role, before=asked.pods)
            yield from self._largest(fewer, asked.least - 1)
            smaller = Change(kind=ChangeKind.SMALLER, member=index, role=asked.role, before=asked.leaves)
            yield from self._largest(smaller, asked.leaves - 1)

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
            if change.kind is ChangeKind.SHORTER:
                changed = replace(changed, longest=timedelta(seconds=change.after))
            if starts(self.queue, changed, self.now):
                yield change


def starts(queue: Queue, entry: Entry, now: datetime) -> bool:
    """Whether a changed entry would start at once; False as well when it can never be right."""
    try:
        return queue.would_be_asked(entry) and queue.would_start(entry, now)
    except PaiError:
        return False


Lacks = Callable[[Entry], Sequence[Lack]]
"""What nodes lack for an entry besides cells: at least one line for each node that is not suggested for it."""

RestsOn = Callable[[str], Basis | None]
"""Where it is known from how long the group of a name runs; None when that is unknown."""

_CAUSES = {
    WaitCode.QUOTA: Cause.QUOTA,
    WaitCode.SHAPE: Cause.SHAPE,
    WaitCode.BAD_NODES: Cause.BAD_NODES,
    WaitCode.NOT_SUGGESTED: Cause.LINEAR,
    WaitCode.BEYOND_PRIORITY: Cause.PRIORITY,
    WaitCode.RESERVED: Cause.RESERVED,
    WaitCode.FRAGMENTED: Cause.FRAGMENTED,
    WaitCode.BOOKED: Cause.BOOKED,
}


def explain(
    queue: Queue,
    name: str,
    now: datetime,
    *,
    vcs: Sequence[str] = (),
    lacks: Lacks = lambda _: (),
    run_time: RunTime = lambda _: None,
    rests_on: RestsOn = lambda _: None,
) -> Waiting:
    """Why the group waits, in both languages. Raises KeyError when it does not wait.

    ``vcs`` are the virtual clusters that its user may use, ``run_time`` tells how long groups run, and ``rests_on``
    where that is known from. Costs at most
    :data:`MOST_TRIALS` plus
    :data:`~pai_backend.scheduling.explain.eta.MOST_ASKED` plus one decisions, and changes nothing.
    """
    if name in queue.claims:
        found = _with_claim(queue, queue.claims[name])
    else:
        found = _cause(queue, queue.waiting[name].entry, lacks, now)
    ticket = queue.claims[name].ticket if name in queue.claims else queue.waiting[name]
    position, waiting = standing(queue, ticket.entry)
    is_sure = found.cause is Cause.PREEMPTING
    start = None if is_sure else estimate(queue, ticket.entry, now, run_time)
    bases = {rests_on(name) for name in start.after} if start is not None else set()
    found = found.model_copy(
        update={
            "position": position,
            "waiting": waiting,
            "overtaken": ticket.overtaken,
            "starts_at": None if start is None else start.at,
            "rests_on": tuple(basis for basis in Basis if basis in bases),
            "holders": tuple(_ending(holder, now) for holder in found.holders),
            "changes": () if is_sure else changes(queue, ticket.entry, now, vcs),
        }
    )
    return found.model_copy(update={"texts": {language: render(found, language) for language in LANGUAGES}})


def render(waiting: Waiting, language: str) -> Told:
    """The reason in a language of :data:`LANGUAGES`: a sentence and a remedy. Raises KeyError for other languages."""
    words = LANGUAGES[language]
    remedy = words.change(waiting.changes[0]) if waiting.changes else words.remedies[waiting.cause](waiting)
    start = words.estimate(waiting) if waiting.starts_at is not None else ""
    said = words.sentences[waiting.cause](waiting) + (words.put_off(waiting) if waiting.put_off_s else "")
    return Told(sentence=said, remedy=remedy, estimate=start)


def _base(group: Group, cause: Cause) -> Waiting:
    return Waiting(
        group=group.name,
        cause=cause,
        vc=group.vc,
        priority=group.priority,
        leaf_type=group.leaf_type,
        needed=sum(member.least * member.leaves for member in group.members),
        largest_task=max((member.leaves for member in group.members), default=0),
        within=group.within or next((member.within for member in group.members if member.within), ""),
    )


def _with_claim(queue: Queue, claim: Claim) -> Waiting:
    """It has cells kept for it, and waits for who is still there."""
    cause = Cause.KEPT if claim.held_back else Cause.PREEMPTING
    way = [other.group.name for other in queue.in_the_way(claim.ticket.entry)]
    return _base(claim.ticket.entry.group, cause).model_copy(update={"holders": _holders(queue, way)})


def _cause(queue: Queue, entry: Entry, lacks: Lacks, now: datetime) -> Waiting:
    """The binding constraint of a group that has nothing."""
    base = _base(entry.group, Cause.AHEAD)
    excess = queue.gates.usage.excess(entry)
    if excess is not None:
        return base.model_copy(update={"cause": Cause.CAP, "cap": _cap(entry, excess)})
    if queue.gates.blocking(entry) is not None:
        return base
    try:
        decision = queue.decide_entry(entry, now)
    except PaiError:
        return base.model_copy(update={"cause": Cause.TYPE})
    if not isinstance(decision, Wait):
        return base
    stuck = next((group for group in entry.groups if group.name == decision.group), entry.group)
    return _of_reason(queue, entry.led_by(stuck), _base(stuck, Cause.AHEAD), decision.reason, lacks)


def _of_reason(queue: Queue, entry: Entry, base: Waiting, reason: Reason, lacks: Lacks) -> Waiting:
    cause = _CAUSES[reason.code]
    lacking: Sequence[Lack] = ()
    if cause is Cause.LINEAR:
        lacking = lacks(entry)[:MOST_HOLDERS]
        if lacking and all(lack.what is LackOf.PORT for lack in lacking):
            cause = Cause.PORT
    if cause is Cause.QUOTA and not reason.owned:
        cause = Cause.TYPE
    names: Iterable[str] = reason.holders
    if cause is Cause.RESERVED:
        names = [name for name in reason.holders if name in queue.claims]
    return base.model_copy(
        update={
            "cause": cause,
            "owned": reason.owned,
            "free": reason.free,
            "largest_free": reason.largest,
            "holders": _holders(queue, names),
            "nodes": reason.nodes,
            "lacks": tuple(lacking),
            "booked": None if reason.booking is None else _booked(reason.booking),
        }
    )


def _booked(booking: Booking) -> BookedFor:
    return BookedFor(
        name=booking.name,
        gpus=booking.gpus,
        gpu_type=booking.gpu_type,
        begins=booking.begins,
        ends=booking.ends,
        whom=booking.whom,
    )


def _holders(queue: Queue, names: Iterable[str]) -> tuple[Holder, ...]:
    found = []
    for name in names:
        held = queue.ledger.groups[name]
        entry = queue.entry(name)
        found.append(
            Holder(
                group=name,
                user="" if entry is None else entry.user,
                vc=held.group.vc,
                priority=held.priority,
                gpus=sum(spot.mask.bit_count() for spot in held.spots),
                until=None if held.state is State.PREEMPTING else queue.ends(name),
            )
        )
    return tuple(found[:MOST_HOLDERS])


def _ending(holder: Holder, now: datetime) -> Holder:
    """Of what has outlasted its time no end is known any more."""
    is_over = holder.until is not None and holder.until < now
    return holder.model_copy(update={"until": None}) if is_over else holder


def _cap(entry: Entry, excess: Excess) -> CapReached:
    scope, cap = excess.scope, excess.cap
    return CapReached(
        vc=scope.vc,
        user=scope.user,
        sweep=scope.sweep,
        tasks=cap.tasks,
        gpus=cap.gpus,
        jobs=cap.jobs,
        running_tasks=excess.tasks,
        running_gpus=excess.gpus,
        running_jobs=excess.jobs,
        never=excess.alone(entry),
    )
