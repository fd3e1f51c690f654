"""What differs between two configurations by themselves."""

from __future__ import annotations

from pai_backend.scheduling.config.model import compare
from pai_backend.scheduling.config.read import read_config

RACK = """
physicalCluster:
  cellTypes:
    SWITCH: {childCellType: GPU, childCellNumber: 4}
    NODE: {childCellType: SWITCH, childCellNumber: 2, isNodeLevel: true}
    RACK: {childCellType: NODE, childCellNumber: 2}
  physicalCells:
    - cellType: RACK
      cellChildren:
        - {cellAddress: a, pinnedCellId: DEBUG}
        - {cellAddress: b}
virtualClusters:
  vision:
    virtualCells: [{cellType: RACK.NODE.SWITCH, cellNumber: 2}]
  tools:
    pinnedCells: [{pinnedCellId: DEBUG}]
"""


def test_equal_configurations_do_not_differ() -> None:
    change = compare(read_config(RACK), read_config(RACK))
    assert not change.differs
    assert not change.concerns
    assert [(each.vc, each.gpus_before, each.gpus_after) for each in change.virtual_clusters] == [
        ("vision", 8, 8),
        ("tools", 8, 8),
    ]


def test_cells_of_each_kind_are_counted_pinned_ones_by_name() -> None:
    after = RACK.replace("RACK.NODE.SWITCH, cellNumber: 2", "RACK.NODE, cellNumber: 1").replace("tools:", "guests:")
    change = compare(read_config(RACK), read_config(after))
    owned = {
        each.vc: [(cells.cell, cells.before, cells.after) for cells in each.cells] for each in change.virtual_clusters
    }
    assert owned == {
        "vision": [("RACK.NODE", 0, 1), ("RACK.NODE.SWITCH", 2, 0)],
        "guests": [("pinned DEBUG", 0, 1)],
        "tools": [("pinned DEBUG", 1, 0)],
    }
    fates = {each.vc: (each.exists_before, each.exists_after, each.differs) for each in change.virtual_clusters}
    assert fates == {"vision": (True, True, True), "guests": (False, True, True), "tools": (True, False, True)}


def test_nodes_that_come_and_go_are_listed_once() -> None:
    change = compare(read_config(RACK), read_config(RACK.replace("cellAddress: b", "cellAddress: c")))
    assert (change.added_nodes, change.removed_nodes) == (("c",), ("b",))
    assert change.differs
