"""Four levels of agreement, each including those before it.

L0 the kind of outcome; L1 who is ended, displaced or cancelled; L2 the shape: chain, pods per node, lowest common
cell of each pod, free cells per level and leaves in use afterwards; L3 the very nodes and devices.
"""

from __future__ import annotations

from collections import Counter

from pai_backend.scheduling import Ledger
from tests.conformance.hived.answer import Answer, Pods

LEVELS = ("L0", "L1", "L2", "L3")


def first_difference(cluster: Ledger, ours: Answer, theirs: Answer) -> str | None:
    """The lowest level on which the answers differ, None when they agree on all."""
    if ours.kind != theirs.kind:
        return "L0"
    if (ours.victims, ours.displaced, ours.cancelled) != (theirs.victims, theirs.displaced, theirs.cancelled):
        return "L1"
    if _shape(cluster, ours) != _shape(cluster, theirs) or state_differs(ours, theirs):
        return "L2"
    if (ours.pods, ours.owned) != (theirs.pods, theirs.owned):
        return "L3"
    return None


def state_differs(ours: Answer, theirs: Answer) -> bool:
    """Whether the recorded state after the operation, as far as recorded, is another than ours."""
    free = theirs.free is not None and theirs.free != ours.free
    return free or (theirs.used is not None and theirs.used != ours.used)


def _shape(cluster: Ledger, answer: Answer) -> object:
    per_node = sorted(Counter(node for node, _ in answer.pods).values())
    return (answer.chain, per_node, sorted(common_levels(cluster, answer.pods)), sorted(answer.owned))


def common_levels(cluster: Ledger, pods: Pods) -> list[tuple[int, int]]:
    """Per pod, how many devices it has and the level of the lowest cell that contains them."""
    found = []
    for name, devices in pods:
        node = next(
            (each for each in cluster.nodes.get(name, ()) if all(index in each.place for index in devices)), None
        )
        mask = 0 if node is None else sum(1 << node.place[index] for index in devices)
        found.append((len(devices), node.shape.level_of(mask) if node is not None and mask else 0))
    return found
