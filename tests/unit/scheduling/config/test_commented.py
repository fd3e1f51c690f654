"""Configurations written for people to go on with."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given, settings
from hypothesis import strategies as st

from pai_backend.commands.cluster_draft import WIDTH, commented, divide
from pai_backend.model.node import Gpu, Node
from pai_backend.scheduling.config.derive import derive
from pai_backend.scheduling.config.read import read_config

TWO_SHAPES = """\
# Made by hand.
#
# A remark.

physicalCluster:
  # What each GPU of a type has of its node's CPUs and memory, at least: tasks are sized by it.
  skuTypes:
    TITANX: {gpu: 1, cpu: 8, memory: 16000Mi}
    V100: {gpu: 1, cpu: 4, memory: 8000Mi}
  # A node is one cell of its GPUs. Levels can be added below it (switches) and above it (racks).
  cellTypes:
    TITANX-NODE-1: {childCellType: TITANX, childCellNumber: 1, isNodeLevel: true}
    V100-NODE-2: {childCellType: V100, childCellNumber: 2, isNodeLevel: true}
  physicalCells:
    # 1 node of 1 × TITANX
    - {cellType: TITANX-NODE-1, cellAddress: carol}
    # 2 nodes of 2 × V100
    - {cellType: V100-NODE-2, cellAddress: dan}
    - {cellType: V100-NODE-2, cellAddress: erin}

# Who owns how many cells of a type. No other virtual cluster can preempt what it owns.
virtualClusters:
  default:
    virtualCells:
    - {cellType: TITANX-NODE-1, cellNumber: 1}
    - {cellType: V100-NODE-2, cellNumber: 2}
"""


def node(name: str, *types: str, first: int = 0) -> Node:
    gpus = tuple(Gpu(index=first + index, type=kind) for index, kind in enumerate(types))
    return Node(name=name, address=name, machine=name, cpus=8, memory_mb=16000, gpus=gpus)


def test_shapes_are_grouped_with_words_beside_them() -> None:
    nodes = [node("erin", "V100", "V100"), node("dan", "V100", "V100"), node("carol", "TITANX")]
    assert commented(derive(nodes), "Made by hand.", ["A remark."]) == TWO_SHAPES


def test_without_gpus_there_is_a_file_all_the_same() -> None:
    written = commented(derive([node("bob")]), "Nothing.")
    assert "skuTypes: {}" in written
    assert "physicalCells: []" in written


def test_remarks_are_folded() -> None:
    lines = commented(derive([node("carol", "V100")]), "x", ["aword " * 60]).splitlines()
    assert max(map(len, lines)) <= WIDTH
    assert sum(line.startswith("# aword") for line in lines) == 4


@settings(deadline=None)
@given(
    st.lists(
        st.lists(st.sampled_from(["V100", "A100", "no", "1e3", "a b"]), max_size=4),
        min_size=1,
        max_size=5,
    ).filter(any),
    st.integers(0, 3),
    st.integers(0, 100),
)
def test_what_is_written_is_read_back_equal(shapes: list[list[str]], first: int, percent: int) -> None:
    """Also words that YAML might take for something else, numbers of GPUs that do not begin at 0, and shares."""
    config = divide(derive(node(f"n{i}", *kinds, first=first) for i, kinds in enumerate(shapes)), {"vision": percent})
    assert replace(read_config(commented(config, "x")), warnings=()) == config
