"""One sentence for each reason to wait."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from pai_backend.model.node import Node
from pai_backend.model.waiting import LackOf
from pai_backend.scheduling.queue.policy import Excess, Scope
from pai_backend.scheduling.request import Group, Need, Reason, WaitCode
from pai_backend.scheduling.terms import Objection

MOST_NAMED = 3
"""Holders or nodes that a sentence names; it says how many more there are."""


def about_cells(group: Group, reason: Reason, need: Need, nodes: Mapping[str, Node]) -> str:
    """Why there are no cells for a group; ``need`` is what one of its tasks needs of the nodes."""
    kind = f"{group.leaf_type} GPU" if group.leaf_type else "GPU"
    wanted = f"{reason.needed} {kind}" + (f" for {group.pods} tasks at once" if group.pods > 1 else "")
    inside = dict.fromkeys(each for each in (group.within, *(member.within for member in group.members)) if each)
    wanted += "".join(f" within one {each}" for each in inside)
    who = f": held by {named(reason.holders)}" if reason.holders else ""
    match reason.code:
        case WaitCode.QUOTA:
            owned = f"{reason.owned} of one kind" if _is_of_one_kind(group) else str(reason.owned)
            return f"needs {wanted}, and the virtual cluster {reason.vc} owns {owned}: it cannot start as it is"
        case WaitCode.SHAPE:
            largest = f"no node gives a task of the virtual cluster {reason.vc} {reason.largest_pod} at once"
            if reason.largest >= reason.largest_pod:
                alike = " of one kind" if _is_of_one_kind(group) else ""
                largest = f"the nodes{alike} of the virtual cluster {reason.vc} do not hold all of them together"
            return f"needs {wanted}, {reason.largest_pod} in one task, and {largest}: it cannot start as it is"
        case WaitCode.BAD_NODES:
            return f"waits for {wanted}: not ready is {named(reason.nodes)}"
        case WaitCode.NOT_SUGGESTED:
            return f"waits for {wanted}: {_unsuited(need, [nodes[name] for name in reason.nodes if name in nodes])}"
        case WaitCode.BEYOND_PRIORITY:
            return f"waits for {wanted}: what could serve it is in use{who}"
        case WaitCode.RESERVED:
            return f"waits for {wanted}: what is free is kept for {named(reason.holders) or 'others'}"
        case WaitCode.FRAGMENTED:
            return f"waits for {wanted}: {reason.free} are free, at most {reason.largest} for one task"


def _is_of_one_kind(group: Group) -> bool:
    """Whether its tasks have to be on cells of one kind, though it names none."""
    return group.pods > 1 and not group.leaf_type and not group.pinned_id and not group.spread


def about_type(wanted: str, have: Sequence[str]) -> str:
    """That no node has such a GPU."""
    kind = f"no node has a GPU of type {wanted}" if wanted else "no node has a GPU"
    return f"{kind}; there is {', '.join(sorted(have)) or 'no GPU at all'}"


def about_room(need: Need, count: int, nodes: Sequence[Node]) -> str:
    """Why there is no room for tasks that need CPU and memory."""
    wanted = f"{need.cpus} CPU and {need.memory_mb} MiB of memory"
    if not nodes:
        return "the cluster has no nodes yet"
    able = [node for node in nodes if need.cpus <= node.cpus and need.memory_mb <= node.memory_mb]
    if not able:
        return f"a task needs {wanted}, and no node is that large: {_sizes(nodes)}"
    together = f", for {count} tasks at once" if count > 1 else ""
    usable = [node for node in able if need.terms.objection(node) is None]
    if not usable:
        return f"waits for {wanted}{together}: {_unsuited(need, able)}"
    if not any(node.ready for node in usable):
        return "; ".join(f"node {node.name} is not ready: {node.reason}" for node in usable[:MOST_NAMED])
    return f"waits for {wanted}{together}: what could serve it is in use"


def about_preempting(victims: Sequence[str]) -> str:
    """Why a group that has its place does not run yet."""
    return f"has its place, and waits for {named(victims)} to be stopped there"


def about_kept(others: Sequence[str]) -> str:
    """Why a group that was overtaken long enough does not run yet."""
    if not others:
        return "has GPUs kept for it, and waits for CPU or memory on their nodes"
    return f"has GPUs kept for it, and starts when these have ended: {named(others)}"


def about_cap(excess: Excess, *, alone: bool) -> str:
    """Why a limit on what runs at once keeps a unit; ``alone``: it exceeds that all by itself."""
    cap = excess.cap
    limits = [f"{cap.tasks} tasks"] if cap.tasks is not None else []
    limits += [f"{cap.gpus} GPUs"] if cap.gpus is not None else []
    said = f"{_whose(excess.scope)} may run at most {' and '.join(limits)} at once"
    if alone:
        return f"{said}, and it needs more: it cannot start as it is"
    return f"{said}; running now: {excess.tasks} tasks, {excess.gpus} GPUs"


def about_turn_under_cap(scope: Scope) -> str:
    """Why a unit waits that has room under a limit."""
    return f"waits for its turn: an earlier job waits for the limit of {_whose(scope)} on what runs at once"


ABOUT_TURN = "waits for its turn"


def jobs_of(groups: Iterable[str]) -> list[str]:
    """The jobs that affinity groups belong to, each once."""
    return list(dict.fromkeys(name.rpartition("/")[0] or name for name in groups))


def _whose(scope: Scope) -> str:
    who = f"user {scope.user}" if scope.user else "all users together"
    return f"{who} in virtual cluster {scope.vc}" if scope.vc else who


def named(names: Iterable[str]) -> str:
    """Some of the names, and how many more there are."""
    known = list(names)
    more = f" and {len(known) - MOST_NAMED} more" if len(known) > MOST_NAMED else ""
    return ", ".join(known[:MOST_NAMED]) + more


def _unsuited(need: Need, nodes: Sequence[Node]) -> str:
    """Which nodes a task may not use, which are away, and which lack room for it."""
    objections = [(node, need.terms.objection(node)) for node in nodes]
    barred = [f"{node.name} ({_in_words(objection)})" for node, objection in objections if objection is not None]
    away = [node.name for node, objection in objections if objection is None and not node.ready]
    full = [node.name for node, objection in objections if objection is None and node.ready]
    parts = [f"it may not use {named(barred)}"] if barred else []
    parts += [f"not ready is {named(away)}"] if away else []
    parts += [f"too little CPU or memory, or a port in use, on {named(full)}"] if full else []
    return "; ".join(parts) or "no node suits it"


def _in_words(objection: Objection) -> str:
    if objection.what is LackOf.CORDONED:
        return "cordoned"
    return f"no label {objection.detail}" if objection.what is LackOf.SELECTOR else f"taint {objection.detail}"


def _sizes(nodes: Sequence[Node]) -> str:
    shown = [f"{node.name} has {node.cpus} CPU, {node.memory_mb} MiB" for node in nodes[:MOST_NAMED]]
    return ", ".join(shown) + (f" and {len(nodes) - MOST_NAMED} more" if len(nodes) > MOST_NAMED else "")
