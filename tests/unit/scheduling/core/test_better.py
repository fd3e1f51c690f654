"""Where the reference is incomplete or does harm: one test a defect, by its number in docs/scheduling.md."""

from __future__ import annotations

import time

from pai_backend.scheduling import Bound, Group, Member, Preempt, WaitCode
from pai_backend.scheduling.cells.shape import Shape
from tests.support.cell_laws import audit
from tests.unit.scheduling.core.clusters import LAB, POOL, cluster, group, place, preempt, why

WIDE = """
physicalCluster:
  cellTypes:
    NODE: {childCellType: GPU, childCellNumber: 8, isNodeLevel: true}
  physicalCells:
    - {cellType: NODE, cellAddress: A}
    - {cellType: NODE, cellAddress: B}
virtualClusters:
  vc: {virtualCells: [{cellType: NODE, cellNumber: 2}]}
"""

TWO_CHAINS = """
physicalCluster:
  cellTypes:
    X: {childCellType: GPU, childCellNumber: 2, isNodeLevel: true}
    Y: {childCellType: GPU, childCellNumber: 2, isNodeLevel: true}
  physicalCells:
    - {cellType: X, cellAddress: x}
    - {cellType: Y, cellAddress: y}
virtualClusters:
  vc: {virtualCells: [{cellType: X, cellNumber: 1}, {cellType: Y, cellNumber: 1}]}
  other: {}
"""


def test_d2_an_opportunistic_group_on_a_node_that_turns_bad_ends_cleanly() -> None:
    """There the usage counter becomes negative, or the process dies."""
    lab = cluster(LAB)
    lab.set_node_health("dan", healthy=False)
    place(lab, group("oppo", "vc1", (1, 1), priority=-1))
    lab.set_node_health("carol", healthy=False)
    lab.release("oppo")
    for name in ("carol", "dan"):
        lab.set_node_health(name, healthy=True)
    audit(lab)
    assert place(lab, group("next", "default", (1, 1))) == [("carol", (0,))]


def test_d3_a_doomed_cell_in_use_returns_to_the_free_list() -> None:
    """There it stays listed as doomed, and the next decision breaks the guarantee."""
    lab = cluster(LAB)
    place(lab, group("job", "vc1", (1, 1)))
    lab.set_node_health("dan", healthy=False)
    stored = lab.placements()
    fresh = cluster(LAB)
    fresh.set_node_health("dan", healthy=False)
    assert not fresh.restore(stored.values()).displaced
    audit(fresh)
    fresh.set_node_health("dan", healthy=True)
    fresh.release("job")
    audit(fresh)
    assert place(fresh, group("next", "vc1", (1, 1))) == [("dan", (0,))]


def test_d7_a_gang_of_unequal_pods_is_placed_when_it_fits() -> None:
    """There a pointer that never goes back puts the small pod where the large one should go."""
    wide = cluster(WIDE)
    place(wide, group("low", "vc", (1, 8), priority=10))
    place(wide, group("keep", "vc", (1, 7), priority=100))
    answer = wide.decide(group("gang", "vc", (1, 1), (1, 8), priority=100))
    assert isinstance(answer, Preempt)
    assert answer.victims == ("low",)
    assert [(pod.node, len(pod.cells)) for pod in answer.placement.pods.values()] == [("B", 1), ("A", 8)]


def test_d9_a_chain_that_nobody_owns_serves_opportunistic_groups() -> None:
    lab = cluster(LAB.replace("  vc1: {virtualCells: [{cellType: D-NODE, cellNumber: 1}]}\n", "  vc1: {}\n"))
    assert why(lab, group("own", "vc1", (1, 1))).code is WaitCode.QUOTA
    place(lab, group("oppo", "vc1", (1, 1), priority=-1))
    assert place(lab, group("oppo2", "vc1", (1, 1), priority=-1)) == [("dan", (0,))]


def test_d10_leaves_of_a_large_node_are_chosen_in_linear_time() -> None:
    """Two halves of 128 with one leaf used in each: the reference takes four times as long for each leaf more."""
    shape = Shape([2] * 8)
    free = shape.full & ~1 & ~(1 << 128)
    started = time.thread_time()
    assert shape.choose(free, 128).bit_count() == 128
    assert time.thread_time() - started < 0.1


def test_d12_a_later_chain_with_room_comes_before_evicting_in_an_earlier_one() -> None:
    two = cluster(TWO_CHAINS)
    place(two, Group("oppo", "other", (Member(1, 2),), -1))
    assert two.groups["oppo"].chain == "X"
    assert place(two, group("own", "vc", (1, 2))) == [("y", (0, 1))]


def test_the_fewest_groups_end() -> None:
    """Two small groups on the node that fills first, one large one on the other."""
    wide = cluster(WIDE)
    place(wide, group("large", "vc", (1, 6), priority=0))
    place(wide, group("rest", "vc", (1, 2), priority=200))
    for name in ("small1", "small2", "small3", "small4"):
        place(wide, group(name, "vc", (1, 2), priority=0))
    assert preempt(wide, group("high", "vc", (1, 6))).victims == ("large",)


def test_a_cheaper_victim_is_found_across_the_pods_of_a_gang() -> None:
    """One group on two nodes ends rather than two groups on one node each."""
    pool = cluster(POOL)
    place(pool, group("spread", "a", (2, 3), priority=0))
    place(pool, group("fill", "a", (2, 1), priority=0))
    place(pool, group("solo", "a", (1, 4), priority=0))
    answer = pool.decide(group("gang", "a", (2, 3)))
    assert isinstance(answer, Preempt)
    assert answer.victims == ("spread",)


def test_the_cheapest_victim_of_an_uneven_gang_is_found_among_hundreds() -> None:
    """One in their midst has enough leaves on two nodes; of the others, which are as near at hand, three had to end."""
    nodes = ", ".join(f"{{cellType: NODE, cellAddress: n{index}}}" for index in range(200))
    many = cluster(
        "physicalCluster:\n"
        "  cellTypes: {NODE: {childCellType: GPU, childCellNumber: 4, isNodeLevel: true}}\n"
        f"  physicalCells: [{nodes}]\n"
        "virtualClusters: {vc: {virtualCells: [{cellType: NODE, cellNumber: 200}]}}\n"
    )
    small = [group(f"small{index}", "vc", (1, 2), priority=0) for index in range(396)]
    spread = group("spread", "vc", (2, 3), priority=0)
    kept = group("kept", "vc", (2, 1), priority=200)
    for each in (*small[:200], spread, kept, *small[200:]):
        answer = many.decide(each)
        assert isinstance(answer, Bound)
        many.apply(answer)
    answer = many.decide(group("gang", "vc", (1, 3), (1, 2)))
    assert isinstance(answer, Preempt)
    assert answer.victims == ("spread",)


def test_no_opportunistic_group_ends_while_another_leaf_is_idle() -> None:
    pool = cluster(POOL)
    place(pool, group("mine", "a", (1, 1)))
    for name in ("o1", "o2", "o3"):
        place(pool, group(name, "b", (1, 1), priority=-1))
    answer = pool.decide(group("next", "a", (1, 3)))
    assert isinstance(answer, Bound)


def test_a_place_on_unequal_cells_is_found_when_a_node_is_bad() -> None:
    """A virtual node may stand on any healthy node; the choice is varied until the gang fits."""
    pool = cluster(POOL)
    pool.set_node_health("n0", healthy=True, bad_devices=[0])
    pool.set_node_health("n1", healthy=True, bad_devices=[0, 1])
    found = place(pool, group("gang", "a", (1, 2), (1, 3), (1, 4)))
    assert len({node for node, _ in found}) == 3
    assert [len(devices) for _, devices in found] == [2, 3, 4]


def test_a_reservation_is_given_up_rather_than_a_group_ended() -> None:
    """A preemptor of lower priority loses its reservation on leaves where nothing runs any more."""
    pool = cluster(POOL)
    place(pool, group("first", "a", (1, 4), priority=0))
    place(pool, group("second", "a", (1, 4), priority=0))
    place(pool, group("victim", "a", (1, 4), priority=0))
    preempt(pool, group("mid", "a", (1, 4), priority=5))
    victim = next(name for name, held in pool.groups.items() if held.pursuers)
    pool.release(victim)
    answer = pool.decide(group("high", "a", (1, 4)))
    assert isinstance(answer, Bound)
    assert answer.cancelled == ("mid",)
