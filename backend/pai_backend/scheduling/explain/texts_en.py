"""English."""

from __future__ import annotations

from pai_backend.model.duration import duration_text
from pai_backend.model.waiting import Basis, Cause, Change, ChangeKind, Lack, LackOf, Waiting
from pai_backend.scheduling.explain.words import Say, Words, named, unique

_ROOM = (LackOf.CPU, LackOf.MEMORY)
_UNITS = {LackOf.CPU: "CPUs", LackOf.MEMORY: "MiB of memory", LackOf.GPU: "GPUs"}


def _gpus(count: int) -> str:
    return f"{count} GPU" if count == 1 else f"{count} GPUs"


def _tasks(count: int) -> str:
    return f"{count} task" if count == 1 else f"{count} tasks"


def _jobs(count: int) -> str:
    return f"{count} job" if count == 1 else f"{count} jobs"


def _names(names: list[str]) -> str:
    return named(names, lambda more: f" and {more} more", ", ") or "others"


def _groups(waiting: Waiting) -> str:
    return _names(unique(waiting.holders))


def _typed(waiting: Waiting) -> str:
    return f" of type {waiting.leaf_type}" if waiting.leaf_type else ""


def _where(waiting: Waiting) -> str:
    """Whose GPUs count: opportunistic groups use the whole cluster."""
    return f"virtual cluster {waiting.vc}" if waiting.priority >= 0 else "the cluster"


def _cap(waiting: Waiting) -> str:
    cap = waiting.cap
    assert cap is not None
    who = f"User {cap.user}" if cap.user else "All users together"
    if cap.sweep:
        who = f"Sweep {cap.sweep}"
    where = f" in virtual cluster {cap.vc}" if cap.vc else ""
    limits = [_tasks(cap.tasks)] if cap.tasks is not None else []
    limits += [_gpus(cap.gpus)] if cap.gpus is not None else []
    limits += [_jobs(cap.jobs)] if cap.jobs is not None else []
    have = f"{_tasks(cap.running_tasks)}, {_gpus(cap.running_gpus)}"
    have += f", {_jobs(cap.running_jobs)}" if cap.jobs is not None else ""
    return f"{who} may run at most {' and '.join(limits)} at once{where}; running now: {have}."


def _lack(lack: Lack) -> str:
    if lack.what in _UNITS:
        others = f" (pods that are not of this backend hold {lack.others})" if lack.others else ""
        return f"{lack.node} has {lack.available} of {lack.needed} {_UNITS[lack.what]} free{others}"
    if lack.what is LackOf.PORT:
        return f"port {lack.needed} of {lack.node} is taken" + (f" by {lack.holder}" if lack.holder else "")
    if lack.what is LackOf.TAINT:
        return f"{lack.node} has the taint {lack.detail}, which it does not tolerate"
    if lack.what is LackOf.CORDONED:
        return f"{lack.node} is cordoned: no new tasks start there"
    return f"{lack.node} does not have the label {lack.detail} that is asked for"


def _lacking(waiting: Waiting) -> str:
    if not waiting.lacks:
        return f"Nodes with free GPUs lack CPU, memory or another thing that it needs: {_names([*waiting.nodes])}."
    said = named([_lack(lack) for lack in waiting.lacks], lambda more: f"; the same for {more} more nodes", "; ")
    return f"GPUs are free, but their nodes are not suitable: {said}."


def _linear_remedy(waiting: Waiting) -> str:
    if any(lack.what is LackOf.GPU for lack in waiting.lacks):
        return "Ask for fewer GPUs a task, or wait until pods there have ended."
    if not waiting.lacks or any(lack.what in _ROOM for lack in waiting.lacks):
        return "Ask for less CPU or memory a task, or wait until something ends there."
    return "Ask an administrator which nodes are meant for it, or ask for other labels of nodes."


def _fragmented(waiting: Waiting) -> str:
    place = f", and not within one {waiting.within}" if waiting.within else ""
    return (
        f"{_gpus(waiting.free)} of {_where(waiting)} are free and it needs {waiting.needed}, but the largest task that "
        f"finds room now has {_gpus(waiting.largest_free)}, and its tasks need up to {waiting.largest_task}{place}."
    )


def _booked(waiting: Waiting) -> str:
    booked = waiting.booked
    assert booked is not None
    kind = f" of type {booked.gpu_type}" if booked.gpu_type else ""
    till = f"from {booked.begins:%Y-%m-%d %H:%M} to {booked.ends:%Y-%m-%d %H:%M} UTC"
    whom = f" ({booked.whom})" if booked.whom else ""
    return f"{_gpus(booked.gpus)}{kind} of {_where(waiting)} are reserved for {booked.name}{whom} {till}."


_SENTENCES: dict[Cause, Say] = {
    Cause.TYPE: lambda w: f"Virtual cluster {w.vc} owns no GPUs{_typed(w)}.",
    Cause.QUOTA: lambda w: f"It needs {_gpus(w.needed)}{_typed(w)}, and {_where(w)} owns {w.owned}.",
    Cause.SHAPE: lambda w: (
        f"It needs tasks of {_gpus(w.largest_task)}, and {_where(w)} owns {_gpus(w.owned)}{_typed(w)}, but not in "
        "pieces large enough."
    ),
    Cause.CAP: _cap,
    Cause.BAD_NODES: lambda w: f"It would start if these nodes were healthy: {_names([*w.nodes])}.",
    Cause.LINEAR: _lacking,
    Cause.PORT: _lacking,
    Cause.PREEMPTING: lambda w: f"It has its place and waits for {_groups(w)} to be stopped there.",
    Cause.KEPT: lambda w: f"GPUs are reserved for it; it starts when these have ended: {_groups(w)}.",
    Cause.RESERVED: lambda w: f"The GPUs it needs are reserved for {_groups(w)}, which comes first.",
    Cause.FRAGMENTED: _fragmented,
    Cause.BOOKED: _booked,
    Cause.PRIORITY: lambda w: (
        f"It needs {_gpus(w.needed)}{_typed(w)}, and {w.free} of {_where(w)} are free; the others are held at its "
        f"priority ({w.priority}) or a higher one by {_groups(w)}."
    ),
    Cause.AHEAD: lambda w: f"It is number {w.position} of {w.waiting} in the queue, and others come first.",
}

_REMEDIES: dict[Cause, Say] = {
    Cause.TYPE: lambda w: "Submit it with another GPU type, to another virtual cluster, or ask an administrator.",
    Cause.QUOTA: lambda w: f"Ask for at most {_gpus(w.owned)}, or use a larger virtual cluster.",
    Cause.SHAPE: lambda w: "Use smaller tasks, or ask an administrator for larger cells.",
    Cause.CAP: lambda w: (
        "Ask for less: this job alone exceeds the limit."
        if w.cap is not None and w.cap.never
        else "Wait until some of those have ended, or stop one."
    ),
    Cause.BAD_NODES: lambda w: "Ask an administrator to repair the nodes, or use fewer GPUs.",
    Cause.LINEAR: _linear_remedy,
    Cause.PORT: lambda w: "Use an automatically chosen port, or wait until this one is free.",
    Cause.PREEMPTING: lambda w: "Nothing to do: it starts as soon as they have stopped.",
    Cause.KEPT: lambda w: "Nothing to do: later groups cannot take these GPUs.",
    Cause.RESERVED: lambda w: "Wait until they have started, or use fewer GPUs.",
    Cause.FRAGMENTED: lambda w: "Wait until groups on the same node have ended, or use smaller tasks.",
    Cause.BOOKED: lambda w: (
        "Jobs that end before the reservation begins may start: set maxDuration. Or wait until it is over, or use "
        "fewer GPUs."
    ),
    Cause.PRIORITY: lambda w: "Wait until one of them has ended.",
    Cause.AHEAD: lambda w: "Wait for its turn.",
}


def _change(change: Change) -> str:
    if change.kind is ChangeKind.TYPE:
        return f"With GPU type {change.leaf_type} it would start now."
    if change.kind is ChangeKind.VC:
        return f"In virtual cluster {change.vc} it would start now."
    if change.kind is ChangeKind.FEWER:
        return f"With {_tasks(change.after)} instead of {change.before} it would start now."
    if change.kind is ChangeKind.SMALLER:
        return f"With {_gpus(change.after)} a task instead of {change.before} it would start now."
    if change.kind is ChangeKind.SHORTER:
        return f"With a maxDuration of {duration_text(change.after)} at most it would start now."
    if change.kind is ChangeKind.ANYWHERE:
        return f"Without asking for one {change.detail} that contains its tasks it would start now."
    if change.kind is ChangeKind.DROP_LABEL:
        return f"Without asking for nodes with the label {change.detail} it would start now."
    if change.kind is ChangeKind.TOLERATE:
        taint = f"taint {change.detail} of {_names([*change.nodes])}"
        return f"If it tolerated the {taint}, which an administrator decides, it would start now."
    if change.kind is ChangeKind.UNCORDON:
        return f"If an administrator uncordoned {_names([*change.nodes])}, it would start now."
    return "As an opportunistic job (priority class oppo) it would start now, but could be preempted."


_BASES = {
    Basis.DECLARED: "run times that jobs declare",
    Basis.HISTORY: "how long earlier jobs of the same users ran",
}


def _estimate(waiting: Waiting) -> str:
    known = " and ".join(_BASES[basis] for basis in waiting.rests_on) or "expected run times"
    return f"This time is an estimate based on {known}. It assumes that no new job comes first."


def _put_off(waiting: Waiting) -> str:
    later = duration_text(waiting.put_off_s)
    return f" Shorter jobs go first here: it takes its turn as if submitted {later} later."


WORDS = Words(_SENTENCES, _REMEDIES, _change, _estimate, _put_off)
