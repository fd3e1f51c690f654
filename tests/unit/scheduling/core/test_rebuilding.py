"""Restart and reconfiguration: running groups run on, and what they lose is said beforehand."""

from __future__ import annotations

import pytest

from pai_backend.scheduling import Bound, Effects, Preempt, State, Wait, read_config
from tests.support.cell_laws import audit
from tests.unit.scheduling.core.clusters import POOL, cluster, group, place, preempt


def test_a_restart_gives_every_group_its_place_and_its_quota() -> None:
    pool = cluster(POOL)
    for number in range(6):
        place(pool, group(f"a{number}", "a", (1, 2)))
    place(pool, group("oppo", "a", (1, 3), priority=-1))
    fresh = cluster(POOL)
    assert not fresh.restore(pool.placements().values()).displaced
    audit(fresh)
    assert fresh.placements() == pool.placements()
    assert isinstance(fresh.decide(group("more", "a", (1, 1))), Wait)
    assert isinstance(fresh.decide(group("other", "b", (1, 4))), Preempt)


def test_two_stored_groups_on_one_leaf_are_refused() -> None:
    pool = cluster(POOL)
    place(pool, group("one", "a", (1, 4)))
    stored = pool.placements()["one"]
    fresh = cluster(POOL)
    with pytest.raises(ValueError, match="both claim leaves of node n0"):
        fresh.restore([stored, stored])


def test_a_smaller_quota_displaces_and_a_larger_one_gives_back() -> None:
    pool = cluster(POOL)
    for number in range(3):
        place(pool, group(f"a{number}", "a", (1, 4)))
    smaller = read_config(POOL.replace("cellNumber: 3", "cellNumber: 2"))
    assert pool.reconfigure(smaller) == Effects(kept=("a0", "a1"), displaced=("a2",))
    assert pool.groups["a2"].displaced_by
    audit(pool)
    assert pool.reconfigure(read_config(POOL)) == Effects(kept=("a0", "a1"), regained=("a2",))
    audit(pool)


def test_a_removed_node_and_a_removed_owner_end_nobody() -> None:
    pool = cluster(POOL)
    place(pool, group("a", "a", (3, 4)))
    place(pool, group("b", "b", (1, 4)))
    nodes = [spot.node.name for spot in pool.groups["b"].spots]
    text = POOL.replace("childCellNumber: 4}\n  physical", "childCellNumber: 3}\n  physical").replace(
        f", {{cellAddress: {nodes[0]}}}", ""
    )
    text = text[: text.index("  b: {virtualCells")]
    effects = pool.reconfigure(read_config(text))
    assert effects.missing == (("b", 4),)
    assert nodes[0] not in pool.nodes
    assert set(pool.placements()) == {"a", "b"}
    audit(pool)
    pool.reconfigure(read_config(POOL))
    assert nodes[0] in pool.nodes
    assert not pool.groups["b"].displaced_by
    pool.release("b")
    audit(pool)


def test_reconfiguring_drops_reservations_and_keeps_health() -> None:
    pool = cluster(POOL)
    for number in range(3):
        place(pool, group(f"a{number}", "a", (1, 4), priority=0))
    pool.set_node_health("n3", healthy=True, bad_devices=[2])
    preempt(pool, group("high", "a", (1, 4)))
    effects = pool.reconfigure(read_config(POOL))
    assert effects.cancelled == ("high",)
    assert all(held.state is State.ALLOCATED for held in pool.groups.values())
    assert pool.nodes["n3"][0].broken == 0b100


def test_decisions_of_before_a_reconfiguration_are_outdated() -> None:
    pool = cluster(POOL)
    answer = pool.decide(group("early", "a", (1, 4)))
    assert isinstance(answer, Bound)
    version = pool.version
    pool.reconfigure(read_config(POOL))
    assert pool.version > version


def test_a_trial_answers_what_if_and_leaves_no_trace() -> None:
    pool = cluster(POOL)
    for number in range(3):
        place(pool, group(f"a{number}", "a", (1, 4)))
    with pool.trial() as trial:
        trial.release("a1")
        answer = trial.decide(group("next", "a", (1, 4)))
        assert isinstance(answer, Bound)
        trial.apply(answer)
    assert set(pool.groups) == {"a0", "a1", "a2"}
    audit(pool)
    assert isinstance(pool.decide(group("next", "a", (1, 4))), Wait)
