"""Clusters that several tests use, as text, and short ways to ask."""

from __future__ import annotations

from collections.abc import Collection

from pai_backend.scheduling import Bound, Group, Ledger, Member, Preempt, Reason, Wait, read_config
from tests.support.cell_laws import audit

LAB = """
physicalCluster:
  cellTypes:
    C-NODE: {childCellType: C, childCellNumber: 1, isNodeLevel: true}
    D-NODE: {childCellType: D, childCellNumber: 1, isNodeLevel: true}
  physicalCells:
    - {cellType: C-NODE, cellAddress: carol}
    - {cellType: D-NODE, cellAddress: dan}
virtualClusters:
  default: {virtualCells: [{cellType: C-NODE, cellNumber: 1}]}
  vc1: {virtualCells: [{cellType: D-NODE, cellNumber: 1}]}
"""

RACKS = """
physicalCluster:
  cellTypes:
    SWITCH: {childCellType: GPU, childCellNumber: 2}
    SOCKET: {childCellType: SWITCH, childCellNumber: 2}
    NODE: {childCellType: SOCKET, childCellNumber: 2, isNodeLevel: true}
    RACK: {childCellType: NODE, childCellNumber: 2}
  physicalCells:
    - {cellType: RACK, cellChildren: [{cellAddress: n0}, {cellAddress: n1}]}
    - {cellType: RACK, cellChildren: [{cellAddress: n2}, {cellAddress: n3}]}
    - {cellType: RACK, cellChildren: [{cellAddress: n4}, {cellAddress: n5}]}
virtualClusters:
  a: {virtualCells: [{cellType: RACK.NODE, cellNumber: 4}]}
  b: {virtualCells: [{cellType: RACK.NODE, cellNumber: 2}]}
"""

POOL = """
physicalCluster:
  cellTypes:
    NODE: {childCellType: GPU, childCellNumber: 4, isNodeLevel: true}
    POOL: {childCellType: NODE, childCellNumber: 4}
  physicalCells:
    - cellType: POOL
      cellChildren: [{cellAddress: n0}, {cellAddress: n1}, {cellAddress: n2}, {cellAddress: n3}]
virtualClusters:
  a: {virtualCells: [{cellType: POOL.NODE, cellNumber: 3}]}
  b: {virtualCells: [{cellType: POOL.NODE, cellNumber: 1}]}
"""


def cluster(text: str) -> Ledger:
    return Ledger(read_config(text))


def group(
    name: str, vc: str, *pods: tuple[int, int] | Member, priority: int = 10, lazy: bool = False, within: str = ""
) -> Group:
    """``pods`` are (how many, leaves each)."""
    members = tuple(each if isinstance(each, Member) else Member(*each) for each in pods)
    return Group(name, vc, members, priority, lazy_preemption=lazy, within=within)


def place(of: Ledger, asked: Group, suggested: Collection[str] | None = None) -> list[tuple[str, tuple[int, ...]]]:
    """Bind the group; where its pods are."""
    answer = of.decide(asked, suggested)
    assert isinstance(answer, Bound), answer
    of.apply(answer)
    audit(of)
    return [(pod.node, pod.cells) for pod in answer.placement.pods.values()]


def preempt(of: Ledger, asked: Group) -> Preempt:
    """Reserve the group's place."""
    answer = of.decide(asked)
    assert isinstance(answer, Preempt), answer
    of.apply(answer)
    audit(of)
    return answer


def why(of: Ledger, asked: Group, suggested: Collection[str] | None = None) -> Reason:
    """Why the group waits."""
    answer = of.decide(asked, suggested)
    assert isinstance(answer, Wait), answer
    return answer.reason
