"""Of the empty cells that a virtual cluster owns, the smallest that fits is begun; there, whole nodes are."""

from __future__ import annotations

import pytest

from pai_backend.scheduling import Ledger, read_config
from tests.unit.scheduling.core.clusters import cluster, group, place

OWNED = """
physicalCluster:
  cellTypes:
    PAIR: {childCellType: GPU, childCellNumber: 2}
    HALF: {childCellType: PAIR, childCellNumber: 2}
    NODE: {childCellType: HALF, childCellNumber: 2, isNodeLevel: true}
  physicalCells:
    - {cellType: NODE, cellAddress: n0}
    - {cellType: NODE, cellAddress: n1}
    - {cellType: NODE, cellAddress: n2}
virtualClusters:
  vc:
    virtualCells:
      - {cellType: NODE, cellNumber: 1}
      - {cellType: NODE.HALF, cellNumber: 1}
      - {cellType: NODE.HALF.PAIR, cellNumber: 1}
"""


@pytest.mark.parametrize(("first", "rest"), [((4,), (8, 2)), ((3,), (8, 2)), ((2, 4), (8,)), ((1, 1, 4), (8,))])
def test_what_a_part_of_a_node_holds_leaves_the_whole_one_alone(first: tuple[int, ...], rest: tuple[int, ...]) -> None:
    owned = cluster(OWNED)
    for number, size in enumerate((*first, *rest)):
        assert len(place(owned, group(f"g{number}", "vc", (1, size)))) == 1


def test_a_gang_takes_small_cells_for_small_tasks() -> None:
    owned = cluster(OWNED)
    assert len(place(owned, group("gang", "vc", (1, 2), (1, 4)))) == 2
    assert len(place(owned, group("large", "vc", (1, 8)))) == 1


def test_what_is_begun_is_still_filled_first() -> None:
    owned = cluster(OWNED)
    ((node, _),) = place(owned, group("large", "vc", (1, 6)))
    assert [name for name, _ in place(owned, group("small", "vc", (1, 2)))] == [node]


def test_an_empty_cell_stays_the_smallest_after_a_release_and_a_restart() -> None:
    owned = cluster(OWNED)
    place(owned, group("a", "vc", (1, 8)))
    place(owned, group("b", "vc", (1, 4)))
    stored = owned.placements()
    again = Ledger(read_config(OWNED))
    again.restore(list(stored.values()))
    for each in (owned, again):
        for name in ("a", "b"):
            each.release(name)
        place(each, group("c", "vc", (1, 4)))
        place(each, group("d", "vc", (1, 8)))


def test_the_order_of_the_reference_can_be_had_and_outlives_a_change() -> None:
    owned = Ledger(read_config(OWNED), by_size=False)
    owned.reconfigure(read_config(OWNED))
    place(owned, group("a", "vc", (1, 4)))
    assert type(owned.decide(group("b", "vc", (1, 8)))).__name__ == "Wait"
