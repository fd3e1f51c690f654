"""What a virtual cluster is promised: the lab's experiments, sharing, and preemption, on clusters of a few nodes."""

from __future__ import annotations

import pytest

from pai_backend.model.errors import InvalidParameters, NoVirtualCluster, PaiError
from pai_backend.scheduling import Bound, Group, Member, Outdated, Preempt, State, Wait, WaitCode
from tests.support.cell_laws import audit
from tests.unit.scheduling.core.clusters import LAB, POOL, cluster, group, place, preempt, why


def test_a_virtual_cluster_keeps_to_its_own_node_and_the_other_idles() -> None:
    lab = cluster(LAB)
    assert place(lab, group("j0", "vc1", (1, 1))) == [("dan", (0,))]
    reason = why(lab, group("j1", "vc1", (1, 1)))
    assert (reason.code, reason.needed, reason.owned, reason.free) == (WaitCode.BEYOND_PRIORITY, 1, 1, 0)
    assert reason.holders == ("j0",)
    lab.release("j0")
    assert place(lab, group("j1", "vc1", (1, 1))) == [("dan", (0,))]


def test_a_higher_priority_reserves_and_takes_over_when_the_victim_has_ended() -> None:
    lab = cluster(LAB)
    place(lab, group("test", "vc1", (1, 1)))
    prod = group("prod", "vc1", (1, 1), priority=100)
    assert preempt(lab, prod).victims == ("test",)
    assert lab.groups["test"].state is State.BEING_PREEMPTED
    again = lab.decide(prod)
    assert isinstance(again, Preempt)
    lab.release("test")
    assert why(lab, group("test", "vc1", (1, 1))).code is WaitCode.RESERVED
    assert place(lab, prod) == [("dan", (0,))]
    assert lab.groups["prod"].state is State.ALLOCATED


def test_equal_priority_never_preempts() -> None:
    lab = cluster(LAB)
    place(lab, group("first", "vc1", (1, 1)))
    assert isinstance(lab.decide(group("second", "vc1", (1, 1))), Wait)


def test_opportunistic_groups_use_what_idles_and_go_when_its_owner_comes() -> None:
    lab = cluster(LAB)
    place(lab, group("prod", "vc1", (1, 1)))
    assert place(lab, group("oppo", "vc1", (1, 1), priority=-1)) == [("carol", (0,))]
    assert preempt(lab, group("owner", "default", (1, 1), priority=0)).victims == ("oppo",)


def test_opportunistic_groups_never_evict() -> None:
    lab = cluster(LAB)
    place(lab, group("one", "vc1", (1, 1), priority=-1))
    place(lab, group("two", "vc1", (1, 1), priority=-1))
    reason = why(lab, group("three", "default", (1, 1), priority=-1))
    assert reason.code is WaitCode.BEYOND_PRIORITY
    assert reason.holders == ("one", "two")


def test_a_gang_starts_as_a_whole_or_not_at_all() -> None:
    pool = cluster(POOL)
    place(pool, group("one", "a", (1, 4)))
    assert isinstance(pool.decide(group("gang", "a", (3, 4))), Wait)
    assert len(place(pool, group("smaller", "a", (2, 4)))) == 2


def test_pods_of_a_group_fill_one_node_before_another() -> None:
    pool = cluster(POOL)
    assert place(pool, group("pair", "a", (2, 1))) == [("n0", (0,)), ("n0", (1,))]
    assert place(pool, group("more", "a", (2, 1))) == [("n0", (2,)), ("n0", (3,))]


def test_deciding_does_not_change_anything_and_a_late_commit_is_refused() -> None:
    pool = cluster(POOL)
    early = pool.decide(group("early", "a", (1, 4)))
    place(pool, group("other", "a", (1, 4)))
    assert isinstance(early, Bound)
    with pytest.raises(Outdated, match="early"):
        pool.apply(early)
    assert "early" not in pool.groups
    audit(pool)


def test_a_cancelled_preemptor_gives_its_victims_back() -> None:
    """The reference leaves them marked for ever."""
    lab = cluster(LAB)
    place(lab, group("test", "vc1", (1, 1)))
    preempt(lab, group("prod", "vc1", (1, 1), priority=100))
    lab.release("prod")
    assert lab.groups["test"].state is State.ALLOCATED
    audit(lab)


def test_a_still_higher_priority_takes_over_the_reservation() -> None:
    lab = cluster(LAB)
    place(lab, group("low", "vc1", (1, 1)))
    preempt(lab, group("mid", "vc1", (1, 1), priority=100))
    answer = preempt(lab, group("high", "vc1", (1, 1), priority=1000))
    assert (answer.victims, answer.cancelled) == (("low",), ("mid",))
    assert "mid" not in lab.groups
    lab.release("low")
    assert isinstance(lab.decide(group("mid", "vc1", (1, 1), priority=100)), Wait)


def test_reserved_leaves_without_a_victim_left_are_bound_at_once_by_a_higher_priority() -> None:
    """The reference counts such a leaf twice and later evicts the higher priority."""
    lab = cluster(LAB)
    place(lab, group("low", "vc1", (1, 1)))
    preempt(lab, group("mid", "vc1", (1, 1), priority=100))
    lab.release("low")
    answer = lab.decide(group("high", "vc1", (1, 1), priority=1000))
    assert isinstance(answer, Bound)
    assert answer.cancelled == ("mid",)
    lab.apply(answer)
    audit(lab)
    assert isinstance(lab.decide(group("mid", "vc1", (1, 1), priority=100)), Wait)


def test_a_reservation_moves_when_its_node_is_not_suggested_any_more_and_only_then() -> None:
    pool = cluster(POOL)
    for number in range(3):
        place(pool, group(f"low{number}", "a", (1, 4), priority=0))
    high = group("high", "a", (1, 4))
    first = preempt(pool, high).placement.pods[0].node
    others = sorted({"n0", "n1", "n2", "n3"} - {first})
    assert pool.decide(high, [first]) == pool.decide(high)
    moved = pool.decide(high, others)
    assert isinstance(moved, Preempt)
    assert moved.placement.pods[0].node in others
    assert pool.groups["high"].spots[0].node.name == first, "deciding moved it already"
    pool.apply(moved)
    audit(pool)
    given_up = pool.decide(high, [])
    assert isinstance(given_up, Wait)
    assert given_up.drops_reservation
    pool.apply(given_up)
    assert "high" not in pool.groups
    assert all(held.state is State.ALLOCATED for held in pool.groups.values())


def test_lazy_preemption_lets_the_victim_run_on_until_its_leaves_are_needed() -> None:
    pool = cluster(POOL)
    for number in range(3):
        place(pool, group(f"low{number}", "a", (1, 4), priority=0, lazy=True))
    answer = pool.decide(group("high", "a", (1, 4)))
    assert isinstance(answer, Bound)
    assert len(answer.displaced) == 1
    pool.apply(answer)
    audit(pool)
    assert answer.placement.pods[0].node == "n1", "there was an idle node"
    owner = pool.decide(group("owner", "b", (1, 4), priority=0))
    assert isinstance(owner, Preempt)
    assert owner.victims == answer.displaced


def test_a_displaced_group_is_upgraded_when_its_quota_is_free_again() -> None:
    """The reference never does."""
    pool = cluster(POOL)
    for number in range(3):
        place(pool, group(f"low{number}", "a", (1, 4), priority=0, lazy=True))
    answer = pool.decide(group("high", "a", (1, 4)))
    assert isinstance(answer, Bound)
    pool.apply(answer)
    assert pool.upgrade() == ()
    pool.release("high")
    assert pool.upgrade() == answer.displaced
    audit(pool)
    assert all(not held.displaced_by for held in pool.groups.values())
    assert place(pool, group("owner", "b", (1, 4), priority=0)) == [("n1", (0, 1, 2, 3))]


def test_pinned_cells_are_for_groups_that_name_them_and_for_opportunistic_ones() -> None:
    text = POOL.replace("{cellAddress: n3}", "{cellAddress: n3, pinnedCellId: PIN}").replace(
        "b: {virtualCells: [{cellType: POOL.NODE, cellNumber: 1}]}", "b: {pinnedCells: [{pinnedCellId: PIN}]}"
    )
    pool = cluster(text)
    assert why(pool, group("plain", "b", (1, 1))).code is WaitCode.QUOTA
    named = Group("named", "b", (Member(1, 4),), 10, pinned_id="PIN")
    assert place(pool, named) == [("n3", (0, 1, 2, 3))]
    pool.release("named")
    for number in range(4):
        place(pool, group(f"oppo{number}", "a", (1, 4), priority=-1))
    assert {held.spots[0].node.name for held in pool.groups.values()} == {"n0", "n1", "n2", "n3"}
    answer = pool.decide(named)
    assert isinstance(answer, Preempt)
    assert answer.placement.pods[0].node == "n3"


@pytest.mark.parametrize(
    ("asked", "field"),
    [
        (Group("g", "vc1", (Member(1, 1),), 1001), "$.priority"),
        (Group("g", "vc1", (Member(1, 1),), -2), "$.priority"),
        (Group("g", "vc1", (Member(0, 1),)), "$.members[0]"),
        (Group("g", "vc1", ()), "$.members"),
        (Group("g", "vc1", (Member(2, 1, 3),)), "$.members[0].minPods"),
        (Group("g", "vc1", (Member(2, 1, 0),)), "$.members"),
        (Group("g", "vc1", (Member(1, 1),), leaf_type="X"), "$.leafCellType"),
        (Group("g", "vc1", (Member(1, 1),), leaf_type="C"), "$.leafCellType"),
        (Group("g", "vc1", (Member(1, 1),), pinned_id="P"), "$.pinnedCellId"),
        (Group("g", "vc1", (Member(1, 1),), -1, pinned_id="P"), "$.pinnedCellId"),
        (Group("g", "vc1", (Member(1, 1),), within="RACK"), "$.withinOneCell"),
    ],
)
def test_a_request_that_can_never_be_right_is_refused_with_its_field(asked: Group, field: str) -> None:
    lab = cluster(LAB)
    with pytest.raises(InvalidParameters) as caught:
        lab.decide(asked)
    assert caught.value.errors[0].path == field
    assert caught.value.hint


def test_an_unknown_virtual_cluster_is_named_with_those_there_are() -> None:
    with pytest.raises(NoVirtualCluster) as caught:
        cluster(LAB).decide(group("g", "vc9", (1, 1)))
    assert "default, vc1" in caught.value.hint


def test_a_group_that_has_a_place_is_not_placed_again() -> None:
    lab = cluster(LAB)
    place(lab, group("g", "vc1", (1, 1)))
    with pytest.raises(PaiError, match="already has a place"):
        lab.decide(group("g", "vc1", (1, 1)))


def test_releasing_what_is_unknown_does_nothing() -> None:
    lab = cluster(LAB)
    before = lab.version
    lab.release("nobody")
    assert lab.version == before
