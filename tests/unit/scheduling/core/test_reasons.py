"""Every wait says what binds it, in numbers, and who holds what it needs."""

from __future__ import annotations

from pai_backend.scheduling import WaitCode
from tests.unit.scheduling.core.clusters import POOL, RACKS, cluster, group, place, preempt, why


def test_more_than_the_virtual_cluster_owns() -> None:
    reason = why(cluster(POOL), group("g", "a", (4, 4)))
    assert (reason.code, reason.needed, reason.owned, reason.free) == (WaitCode.QUOTA, 16, 12, 12)


def test_a_pod_larger_than_any_cell_it_owns() -> None:
    reason = why(cluster(POOL), group("g", "a", (1, 5)))
    assert (reason.code, reason.largest_pod, reason.largest) == (WaitCode.SHAPE, 5, 4)


def test_pods_that_leave_a_rest_in_every_cell_do_not_fit_by_shape() -> None:
    assert why(cluster(POOL), group("g", "a", (4, 3))).code is WaitCode.SHAPE


def test_fragmented() -> None:
    pool = cluster(POOL)
    for number, node in enumerate(("n0", "n1", "n2")):
        place(pool, group(f"g{number}", "a", (1, 2)), [node])
    reason = why(pool, group("big", "a", (1, 4)))
    assert (reason.code, reason.needed, reason.free, reason.largest) == (WaitCode.FRAGMENTED, 4, 6, 2)
    assert reason.holders == ("g0", "g1", "g2")


def test_priority() -> None:
    pool = cluster(POOL)
    place(pool, group("same", "a", (2, 4)))
    place(pool, group("lower", "a", (1, 4), priority=0))
    reason = why(pool, group("g", "a", (2, 4)))
    assert (reason.code, reason.free, reason.holders) == (WaitCode.BEYOND_PRIORITY, 4, ("same",))


def test_not_suggested() -> None:
    pool = cluster(POOL)
    reason = why(pool, group("g", "a", (2, 4)), ["n2"])
    assert (reason.code, reason.nodes) == (WaitCode.NOT_SUGGESTED, ("n0", "n1", "n3"))


def test_reserved() -> None:
    pool = cluster(POOL)
    place(pool, group("low", "a", (3, 4), priority=0))
    preempt(pool, group("high", "a", (1, 4)))
    pool.release("low")
    reason = why(pool, group("g", "a", (3, 4)))
    assert (reason.code, reason.holders) == (WaitCode.RESERVED, ("high",))


def test_an_opportunistic_group_is_told_about_the_whole_cluster() -> None:
    racks = cluster(RACKS)
    reason = why(racks, group("g", "a", (7, 8), priority=-1))
    assert (reason.code, reason.vc, reason.owned) == (WaitCode.QUOTA, "", 48)
