"""Bad nodes and bad GPUs: nothing new is placed there, losses are seen by their owner, and all of it heals."""

from __future__ import annotations

from pai_backend.scheduling import Ledger, Preempt, Wait, WaitCode, read_config
from tests.support.cell_laws import audit
from tests.unit.scheduling.core.clusters import POOL, RACKS, cluster, group, place, why


def test_a_bad_node_is_avoided_and_its_loss_goes_to_those_who_cannot_have_another() -> None:
    pool = cluster(POOL)
    pool.set_node_health("n0", healthy=False)
    assert {node for node, _ in place(pool, group("three", "a", (3, 4)))} == {"n1", "n2", "n3"}
    reason = why(pool, group("one", "b", (1, 4)))
    assert (reason.code, reason.nodes) == (WaitCode.BAD_NODES, ("n0",))
    pool.set_node_health("n0", healthy=True)
    assert place(pool, group("one", "b", (1, 4))) == [("n0", (0, 1, 2, 3))]


def test_a_spare_node_replaces_a_bad_one() -> None:
    pool = cluster(POOL.replace("cellNumber: 3", "cellNumber: 2"))
    place(pool, group("job", "a", (1, 4)))
    pool.set_node_health("n0", healthy=False)
    pool.release("job")
    audit(pool)
    assert len(place(pool, group("again", "a", (2, 4)))) == 2


def test_a_node_with_one_bad_gpu_still_serves_the_others() -> None:
    pool = cluster(POOL)
    pool.set_node_health("n0", healthy=True, bad_devices=[1])
    place(pool, group("elsewhere", "a", (2, 4)))
    place(pool, group("b", "b", (1, 4)))
    assert place(pool, group("three", "a", (1, 3))) == [("n0", (0, 2, 3))]
    assert why(pool, group("four", "a", (1, 1))).code is WaitCode.BAD_NODES
    pool.set_node_health("n0", healthy=True)
    assert place(pool, group("four", "a", (1, 1))) == [("n0", (1,))]


def test_a_running_group_stays_where_its_node_went_bad() -> None:
    pool = cluster(POOL)
    place(pool, group("job", "a", (1, 2)))
    pool.set_node_health("n0", healthy=False)
    assert pool.placements()["job"].pods[0].node == "n0"
    assert place(pool, group("other", "a", (1, 2)))[0][0] != "n0"
    pool.release("job")
    pool.set_node_health("n0", healthy=True)
    audit(pool)


def test_a_bad_node_inside_a_rack_takes_a_place_of_its_owner() -> None:
    racks = cluster(RACKS.replace("RACK.NODE, cellNumber: 4", "RACK, cellNumber: 2"))
    place(racks, group("first", "a", (1, 8)))
    racks.set_node_health("n1", healthy=False)
    audit(racks)
    assert len(place(racks, group("two", "a", (2, 8)))) == 2
    assert isinstance(racks.decide(group("three", "a", (1, 8))), Wait)
    racks.set_node_health("n1", healthy=True)
    assert place(racks, group("three", "a", (1, 8))) == [("n1", (0, 1, 2, 3, 4, 5, 6, 7))]


def test_all_bad_and_all_well_again_is_as_before() -> None:
    racks = cluster(RACKS)
    place(racks, group("job", "a", (3, 8)))
    for healthy in (False, True):
        for name in list(racks.nodes):
            racks.set_node_health(name, healthy=healthy)
            audit(racks)
    racks.release("job")
    audit(racks)
    assert sorted(cell.address for cell in racks.chains["RACK"].buddy.lists[5]) == ["0", "1", "2"]


def test_a_node_without_cells_is_none_of_ours() -> None:
    pool = cluster(POOL)
    pool.set_node_health("elsewhere", healthy=False)
    assert pool.version == 0


SPLIT = """
physicalCluster:
  cellTypes:
    NODE: {childCellType: GPU, childCellNumber: 2, isNodeLevel: true}
    RACK: {childCellType: NODE, childCellNumber: 2}
  physicalCells:
    - {cellType: RACK, cellChildren: [{cellAddress: n0}, {cellAddress: n1}]}
    - {cellType: RACK, cellChildren: [{cellAddress: n2}, {cellAddress: n3}]}
virtualClusters:
  nodes: {virtualCells: [{cellType: RACK.NODE, cellNumber: 2}]}
  rack: {virtualCells: [{cellType: RACK, cellNumber: %d}]}
"""


def test_a_rack_is_split_for_a_node_when_nobody_counts_on_it() -> None:
    racks = cluster(SPLIT % 0)
    place(racks, group("first", "nodes", (1, 2)))
    racks.set_node_health("n1", healthy=False)
    assert place(racks, group("second", "nodes", (1, 2)))[0][0] in ("n2", "n3")


def test_a_rack_that_somebody_counts_on_is_not_split() -> None:
    racks = cluster(SPLIT % 1)
    place(racks, group("first", "nodes", (1, 2)))
    racks.set_node_health("n1", healthy=False)
    assert isinstance(racks.decide(group("second", "nodes", (1, 2))), Wait)
    assert len(place(racks, group("whole", "rack", (2, 2)))) == 2


def test_an_idle_node_in_a_rack_that_somebody_counts_on_does_not_save_an_opportunistic_group() -> None:
    """Splitting the promised rack would avoid the eviction, and is not done."""
    racks = cluster(SPLIT % 1)
    place(racks, group("first", "nodes", (1, 2)), ["n0"])
    place(racks, group("oppo", "rack", (1, 2), priority=-1), ["n1"])
    answer = racks.decide(group("second", "nodes", (1, 2)))
    assert isinstance(answer, Preempt)
    assert answer.victims == ("oppo",)


def test_a_plan_is_carried_out_whole_before_its_effect_on_bad_cells_is_looked_at() -> None:
    """The group's node leaves only a half-bad one for the owner's single GPUs, one of which the group takes too."""
    text = """
physicalCluster:
  cellTypes:
    NODE: {childCellType: GPU, childCellNumber: 4, isNodeLevel: true}
  physicalCells:
    - {cellType: NODE, cellAddress: n0}
    - {cellType: NODE, cellAddress: n1}
virtualClusters:
  a: {virtualCells: [{cellType: NODE, cellNumber: 1}, {cellType: NODE.GPU, cellNumber: 3}]}
"""
    pair = Ledger(read_config(text), by_size=False)
    pair.set_node_health("n0", healthy=True, bad_devices=[0, 1])
    found = place(pair, group("five", "a", (5, 1)))
    assert found[-1] == ("n0", (2,))
    assert sum(root.doomed for root in pair.quotas["a", "NODE"].roots) == 1
