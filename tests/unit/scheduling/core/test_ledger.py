"""What the ledger promises of decisions: they are whole, and none is applied to other cells than it was made on."""

from __future__ import annotations

import pytest

from pai_backend.model.ids import TaskUid
from pai_backend.model.node import Node
from pai_backend.scheduling import Bound, Ledger, Outdated, Preempt
from pai_backend.scheduling.core.decision import Release
from pai_backend.scheduling.core.room import ENOUGH
from pai_backend.scheduling.core.search import Search
from pai_backend.scheduling.request import Need
from tests.support.cell_laws import audit
from tests.unit.scheduling.core.clusters import POOL, cluster, group, place


def test_a_decision_of_a_trial_cannot_be_applied_after_it() -> None:
    """Nor when as much was written since as in the trial: numbers of versions are never given twice."""
    pool = cluster(POOL)
    with pool.trial():
        place(pool, group("tried", "a", (1, 4)))
        inside = pool.decide(group("late", "a", (1, 4)))
    place(pool, group("other", "a", (1, 4)))
    with pytest.raises(Outdated):
        pool.apply(inside)


def test_only_the_last_write_can_be_undone() -> None:
    pool = cluster(POOL)
    first = pool.apply(pool.decide(group("a", "a", (1, 4))))
    second = pool.apply(pool.decide(group("b", "a", (1, 4))))
    with pytest.raises(Outdated):
        pool.undo(first)
    pool.undo(second)
    pool.undo(first)
    assert not pool.groups
    audit(pool)


def test_what_is_final_stays() -> None:
    pool = cluster(POOL)
    receipt = pool.apply(pool.decide(group("a", "a", (1, 4))), final=True)
    with pytest.raises(Outdated):
        pool.undo(receipt)
    assert [*pool.groups] == ["a"]


def test_what_is_final_is_undone_by_the_trial_around_it() -> None:
    pool = cluster(POOL)
    with pool.trial():
        pool.apply(pool.decide(group("a", "a", (1, 4))), final=True)
        pool.apply(Release("a"), final=True)
        pool.apply(pool.decide(group("b", "a", (1, 4))), final=True)
    assert not pool.groups
    audit(pool)


def test_applying_searches_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    pool = cluster(POOL)
    decision = pool.decide(group("a", "a", (2, 4)))

    def searched(self: Search) -> None:
        pytest.fail("applying a decision searched for a place")

    monkeypatch.setattr(Search, "quick", searched)
    pool.apply(decision)
    assert isinstance(decision, Bound)
    assert pool.groups["a"].stored == decision.placement


def test_cells_and_cpu_are_written_and_undone_together() -> None:
    pool = cluster(POOL)
    node = next(iter(pool.nodes))
    pool.room.set_node(Node(name=node, address=node, machine=node, cpus=8, memory_mb=8))
    decision = pool.decide(group("a", "a", (1, 4)))
    assert isinstance(decision, Bound)
    holds = ((Need(TaskUid("job-0"), 3, 1), node),)
    receipt = pool.apply(Bound(decision.placement, plan=decision.plan, version=decision.version, holds=holds))
    assert (pool.room.free(node), [*pool.groups]) == ((5, 7, ENOUGH), ["a"])
    pool.undo(receipt)
    assert (pool.room.free(node), [*pool.groups]) == ((8, 8, ENOUGH), [])


def test_a_victim_of_an_undone_preemptor_is_safe_again() -> None:
    pool = cluster(POOL)
    count = 0
    while isinstance(pool.decide(group(f"low{count}", "a", (1, 4), priority=1)), Bound):
        place(pool, group(f"low{count}", "a", (1, 4), priority=1))
        count += 1
    decision = pool.decide(group("high", "a", (1, 4), priority=10))
    assert isinstance(decision, Preempt)
    receipt = pool.apply(decision)
    states = _states(pool)
    pool.undo(receipt)
    assert set(states.values()) >= {"being-preempted"}
    assert set(_states(pool).values()) == {"allocated"}


def _states(pool: Ledger) -> dict[str, str]:
    return {name: held.state.value for name, held in pool.groups.items()}
