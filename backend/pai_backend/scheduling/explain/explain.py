"""Why a group waits: the binding constraint with its numbers and names, and what would help."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from datetime import datetime

from pai_backend.model.errors import PaiError
from pai_backend.model.waiting import Basis, CapReached, Cause, Holder, Lack, LackOf, Waiting
from pai_backend.scheduling.cells.tree import State
from pai_backend.scheduling.core.decision import Wait
from pai_backend.scheduling.explain.eta import RunTime, estimate, unknown_time
from pai_backend.scheduling.explain.suggest import changes
from pai_backend.scheduling.explain.texts import LANGUAGES, tell
from pai_backend.scheduling.queue.entry import Entry
from pai_backend.scheduling.queue.holdback import in_the_way
from pai_backend.scheduling.queue.kind import Claim
from pai_backend.scheduling.queue.moving import standing
from pai_backend.scheduling.queue.policy import Excess
from pai_backend.scheduling.queue.queue import Queue
from pai_backend.scheduling.request import MOST_HOLDERS, Group, Reason, WaitCode

Lacks = Callable[[Entry], Sequence[Lack]]
"""What nodes lack for an entry besides cells: at least one line for each node that is not suggested for it."""

RestsOn = Callable[[str], Basis | None]
"""Where it is known from how long the group of a name runs; None when nobody says."""

_CAUSES = {
    WaitCode.QUOTA: Cause.QUOTA,
    WaitCode.SHAPE: Cause.SHAPE,
    WaitCode.BAD_NODES: Cause.BAD_NODES,
    WaitCode.NOT_SUGGESTED: Cause.LINEAR,
    WaitCode.BEYOND_PRIORITY: Cause.PRIORITY,
    WaitCode.RESERVED: Cause.RESERVED,
    WaitCode.FRAGMENTED: Cause.FRAGMENTED,
}


def nothing_lacks(entry: Entry) -> Sequence[Lack]:
    """A :data:`Lacks` for when only cells count."""
    return ()


def unstated(name: str) -> None:
    """A :data:`RestsOn` for when nobody says."""


def explain(
    queue: Queue,
    name: str,
    now: datetime,
    *,
    vcs: Sequence[str] = (),
    lacks: Lacks = nothing_lacks,
    run_time: RunTime = unknown_time,
    rests_on: RestsOn = unstated,
) -> Waiting:
    """Why the group waits, in both languages. Raises KeyError when it does not wait.

    ``vcs`` are the virtual clusters that its user may use, ``run_time`` tells how long groups run, and ``rests_on``
    where that is known from. Costs at most
    :data:`~pai_backend.scheduling.explain.suggest.MOST_TRIALS` plus
    :data:`~pai_backend.scheduling.explain.eta.MOST_ASKED` plus one decisions, and changes nothing.
    """
    if name in queue.claims:
        found = _with_claim(queue, queue.claims[name])
    else:
        found = _cause(queue, queue.waiting[name].entry, lacks)
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
    return found.model_copy(update={"texts": {language: tell(found, language) for language in LANGUAGES}})


def _base(group: Group, cause: Cause) -> Waiting:
    least = [member.pods if member.min_pods is None else member.min_pods for member in group.members]
    return Waiting(
        group=group.name,
        cause=cause,
        vc=group.vc,
        priority=group.priority,
        leaf_type=group.leaf_type,
        needed=sum(count * member.leaves for count, member in zip(least, group.members, strict=True)),
        largest_task=max((member.leaves for member in group.members), default=0),
        within=group.within or next((member.within for member in group.members if member.within), ""),
    )


def _with_claim(queue: Queue, claim: Claim) -> Waiting:
    """It has cells kept for it, and waits for who is still there."""
    group = claim.ticket.entry.group
    kept = queue.held_by(claim.ticket.entry)
    way = dict.fromkeys(other.group.name for held in kept for other in in_the_way(held))
    cause = Cause.KEPT if claim.held_back else Cause.PREEMPTING
    return _base(group, cause).model_copy(update={"holders": _holders(queue, way)})


def _cause(queue: Queue, entry: Entry, lacks: Lacks) -> Waiting:
    """The binding constraint of a group that has nothing."""
    base = _base(entry.group, Cause.AHEAD)
    excess = queue.gates.usage.excess(entry)
    if excess is not None:
        return base.model_copy(update={"cause": Cause.CAP, "cap": _cap(entry, excess)})
    if queue.gates.blocking(entry) is not None:
        return base
    try:
        decision = queue.decider.decide(entry)
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
        }
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
        tasks=cap.tasks,
        gpus=cap.gpus,
        running_tasks=excess.tasks,
        running_gpus=excess.gpus,
        never=excess.alone(entry),
    )
