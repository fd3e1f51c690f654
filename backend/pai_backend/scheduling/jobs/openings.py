"""What, done to nodes or to what is asked of them, would start a waiting group now: every answer was tried.

A taint could be tolerated, a label not be asked for, a cordon be lifted. The nodes are taken to be so for a moment, and
the scheduler is asked again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

from pai_backend.model.labels import Taint
from pai_backend.model.node import Node
from pai_backend.model.waiting import Change, ChangeKind, LackOf
from pai_backend.scheduling.core.room import Room
from pai_backend.scheduling.request import Need
from pai_backend.scheduling.terms import Objection

MOST_TRIED = 8
"""How often the scheduler is asked again for one explanation; each costs what a decision costs."""
CORDON = "node.kubernetes.io/unschedulable"
"""Key of the taint that Kubernetes gives a cordoned node, and takes away with the cordon."""
_KINDS = {
    LackOf.CORDONED: ChangeKind.UNCORDON,
    LackOf.TAINT: ChangeKind.TOLERATE,
    LackOf.SELECTOR: ChangeKind.DROP_LABEL,
}


def openings(room: Room, need: Need, would_start: Callable[[], bool]) -> tuple[Change, ...]:
    """Changes to nodes, of one thing each, with which a group of such tasks would have started at once.

    ``would_start`` asks the scheduler, which must look at this room. Of cordons the fewest nodes are told, one where
    one is enough; a taint or a label counts for all nodes that are closed by it alone.
    """
    found: list[Change] = []
    tries = iter(range(MOST_TRIED))
    for objection, nodes in _closed(room, need).items():
        for some in _groups(objection, nodes):
            if next(tries, None) is None:
                return tuple(found)
            with room.as_if([_opened(node, objection) for node in some]):
                starts = would_start()
            if starts:
                names = tuple(node.name for node in some)
                found.append(Change(kind=_KINDS[objection.what], nodes=names, detail=objection.detail))
                break
    return tuple(found)


def _closed(room: Room, need: Need) -> dict[Objection, list[Node]]:
    """Nodes with room that one objection alone keeps the task from, by the objection; those of most nodes first."""
    found: dict[Objection, list[Node]] = {}
    for node in sorted(room.nodes.values(), key=lambda node: node.name):
        objection = need.terms.objection(node)
        if objection is None or not node.ready or not room.is_free_for(need, node.name):
            continue
        if need.terms.objection(_opened(node, objection)) is None:
            found.setdefault(objection, []).append(node)
    return dict(sorted(found.items(), key=lambda each: -len(each[1])))


def _groups(objection: Objection, nodes: Sequence[Node]) -> Iterator[Sequence[Node]]:
    """Which of the nodes are opened together."""
    if objection.what is LackOf.CORDONED and len(nodes) > 1:
        yield from ([node] for node in nodes[: MOST_TRIED // 2])
    yield nodes


def _opened(node: Node, objection: Objection) -> Node:
    """The node without what the objection is about."""
    if objection.what is LackOf.CORDONED:
        return node.model_copy(update={"schedulable": True, "taints": _without(node.taints, CORDON)})
    if objection.what is LackOf.TAINT:
        return node.model_copy(update={"taints": tuple(each for each in node.taints if str(each) != objection.detail)})
    key, _, value = objection.detail.partition("=")
    return node.model_copy(update={"labels": {**node.labels, key: value}})


def _without(taints: Iterable[Taint], key: str) -> tuple[Taint, ...]:
    return tuple(each for each in taints if each.key != key)
