"""Arguments why a difference is right, made from the state before the operation and from the two answers alone.

A code is the number of the reference's defect (D1-D13 of docs/scheduling.md) or of the improvement (S4 and so on).
No trace, operation or group is named here: a difference that no argument covers is not justified.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from pai_backend.scheduling import Ledger
from pai_backend.scheduling.cells.tree import Node
from pai_backend.scheduling.core.decision import Bound, Decision, Preempt
from pai_backend.scheduling.request import Group
from tests.conformance.hived import invariants
from tests.conformance.hived.answer import Answer, Pods
from tests.conformance.hived.levels import common_levels
from tests.conformance.hived.trace import Record


@dataclass(frozen=True)
class Reasoning:
    """A defect's or improvement's code and the argument in words."""

    code: str
    text: str


@dataclass(frozen=True)
class Case:
    """The cluster as it was before, both answers, and the kinds that the reference itself gives by chance."""

    cluster: Ledger
    group: Group | None
    op: Record
    ours: Answer
    theirs: Answer
    decision: Decision | None
    kinds: Collection[str]


def justify(case: Case, level: str, *, was_cancelled: Collection[str]) -> Reasoning | None:
    """The first argument that covers the difference, None when there is none."""
    if case.theirs.kind in ("bound", "preempt") and case.ours.kind == "wait":
        return None
    if case.op["op"] in ("nodeBad", "nodeHealthy", "delete", "restart"):
        return _doomed(case) if level == "L2" else None
    if case.ours.kind == "bound" and case.theirs.kind == "skipped" and case.op.get("group") in was_cancelled:
        return Reasoning("D6", "the preemption of this group was cancelled: it is safe again")
    if level in ("L0", "L1"):
        return _cheaper(case) or _complete(case) or _by_chance(case)
    if level == "L2":
        return _cheaper(case) or _equal_order(case) or _doomed(case)
    return _same_leaves(case) or _equal_order(case)


def _sound(case: Case) -> bool:
    """Whether our decision breaks no law: disjoint, healthy, entitled."""
    if not isinstance(case.decision, Bound | Preempt) or case.group is None:
        return False
    if invariants.of_decision(case.cluster, case.group, case.decision):
        return False
    with case.cluster.trial():
        case.cluster.apply(case.decision)
        return not invariants.after_operation(case.cluster)


def price(cluster: Ledger, answer: Answer) -> tuple[int, int]:
    """Groups that lose their quota or reservation, then groups that end: from the state, by name."""
    guaranteed = {name for name in answer.victims if name in cluster.groups and cluster.groups[name].priority >= 0}
    return len({*guaranteed, *answer.displaced, *answer.cancelled}), len(answer.victims)


def _cheaper(case: Case) -> Reasoning | None:
    """The same group finds a place at a lower price to others."""
    if case.theirs.kind not in ("bound", "preempt") or case.ours.kind not in ("bound", "preempt") or not _sound(case):
        return None
    ours, theirs = price(case.cluster, case.ours), price(case.cluster, case.theirs)
    if ours >= theirs:
        return None
    if ours == (0, 0):
        if case.ours.chain and not _in_chain(case.cluster, case.ours.chain, case.theirs.pods):
            return Reasoning(
                "D12", f"chain {case.ours.chain} has room; the reference takes an earlier chain and {theirs}"
            )
        return Reasoning("S4", f"there is room without ending anyone; the reference's price is {theirs}")
    return Reasoning("S4", f"fewer groups lose: {ours} instead of {theirs}")


def _complete(case: Case) -> Reasoning | None:
    """The reference waits although there is a place; ours is checked leaf by leaf."""
    if case.theirs.kind != "wait" or case.ours.kind not in ("bound", "preempt") or not _sound(case):
        return None
    assert case.group is not None
    if len({member.leaves for member in case.group.members}) > 1:
        return Reasoning("D7", "pods of unequal size fit when a node is tried again; the reference never goes back")
    return Reasoning("D8", "a place exists among cells that the reference drops while it splits, or varies no more")


def _by_chance(case: Case) -> Reasoning | None:
    if case.ours.kind in case.kinds and len(set(case.kinds)) > 1:
        return Reasoning("D11", f"the reference itself answers {' or '.join(sorted(set(case.kinds)))}, by chance")
    return None


def _same_leaves(case: Case) -> Reasoning | None:
    """On the same nodes, each pod as close together as the reference's."""
    nodes = [sorted(node for node, _ in answer.pods) for answer in (case.ours, case.theirs)]
    levels = [sorted(common_levels(case.cluster, answer.pods)) for answer in (case.ours, case.theirs)]
    if nodes[0] == nodes[1] and levels[0] == levels[1]:
        return Reasoning(
            "D10", "same nodes, every pod in as small a cell; leaves are chosen by counting, not by search"
        )
    return None


def _equal_order(case: Case) -> Reasoning | None:
    """Other nodes, but none that the reference's own order puts before or behind: its tie is decided by history."""
    if len(case.ours.pods) != len(case.theirs.pods) or price(case.cluster, case.ours) != price(
        case.cluster, case.theirs
    ):
        return None
    if case.ours.chain != case.theirs.chain or sorted(case.ours.owned) != sorted(case.theirs.owned) or not _sound(case):
        return None
    ranks = [sorted(_rank(case.cluster, answer.pods)) for answer in (case.ours, case.theirs)]
    if ranks[0] == ranks[1]:
        return Reasoning("D11", "other nodes, equal in health and in leaves used: only the order of history differs")
    return None


def _rank(cluster: Ledger, pods: Pods) -> list[tuple[int, int, int]]:
    """Per node of the answer, what the documented order looks at: opportunistic and guaranteed leaves, bad ones."""
    names = sorted({name for name, _ in pods})
    found: list[tuple[int, int, int]] = []
    for name in names:
        devices = {index for node, indexes in pods if node == name for index in indexes}
        for node in cluster.nodes.get(name, ()):
            if devices <= node.place.keys():
                found.append(_load(node))
    return found


def _load(node: Node) -> tuple[int, int, int]:
    return (node.oppo.bit_count(), (node.guaranteed | node.reserved).bit_count(), node.broken.bit_count())


def _doomed(case: Case) -> Reasoning | None:
    """Bad cells are assigned by another order; ours leaves no owner with fewer healthy cells than it counts on."""
    for chain in case.cluster.chains.values():
        for level in range(1, len(chain.sizes)):
            healthy = chain.buddy.left[level] - len(chain.buddy.bad[level])
            if chain.buddy.bad[level] and any(free > healthy for free in chain.free[level].values()):
                return None
    if not any(chain.broken for chain in case.cluster.chains.values()):
        return None
    return Reasoning("D11", "bad cells went to other owners than in the reference's order; every loss is visible")


def _in_chain(cluster: Ledger, chain: str, pods: Pods) -> bool:
    names = {node.name: node for node in cluster.chains[chain].nodes}
    return all(name in names and set(devices) <= names[name].place.keys() for name, devices in pods)
