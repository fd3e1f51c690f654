"""The order in which nodes are tried is that of a stable sort at every look, without sorting."""

from __future__ import annotations

from dataclasses import dataclass

from hypothesis import given, settings
from hypothesis import strategies as st

from pai_backend.scheduling.cells.journal import Journal
from pai_backend.scheduling.cells.ranking import Ranking, could_hold


@dataclass(eq=False)
class Thing:
    name: int
    used: int = 0
    rank: int = 0
    free: int = 0
    stamp: int = 0
    stale: bool = False


MOST = 4


def measure(thing: Thing) -> tuple[int, int]:
    return MOST - thing.used, MOST - thing.used


@settings(max_examples=200, deadline=None)
@given(steps=st.lists(st.lists(st.tuples(st.integers(0, 5), st.integers(0, MOST)), max_size=3), max_size=12))
def test_it_equals_a_stable_sort_at_every_look(steps: list[list[tuple[int, int]]]) -> None:
    things = [Thing(name) for name in range(6)]
    ranking = Ranking(things, measure, MOST, Journal())
    sorted_view = list(things)
    for changes in steps:
        for name, used in changes:
            things[name].used = used
            ranking.touch(things[name])
        ranking.settle()
        sorted_view.sort(key=lambda thing: -thing.used)
        assert [thing.name for thing in ranking.everything()] == [thing.name for thing in sorted_view]
        for least in range(MOST + 1):
            fitting = [thing.name for thing in sorted_view if MOST - thing.used >= least]
            assert [thing.name for thing in ranking.fitting(least)] == fitting
        assert ranking.count == [sum(MOST - thing.used == free for thing in things) for free in range(MOST + 1)]


def test_a_trial_leaves_the_order_as_it_was() -> None:
    journal = Journal()
    things = [Thing(name) for name in range(4)]
    ranking = Ranking(things, measure, MOST, journal)
    things[2].used = 3
    ranking.touch(things[2])
    ranking.settle()
    before = [thing.name for thing in ranking.everything()]
    with journal.trial():
        things[1].used = 4
        journal.note(setattr, things[1], "used", 0)
        ranking.touch(things[1])
        ranking.settle()
        assert [thing.name for thing in ranking.everything()] != before
    ranking.settle()
    assert [thing.name for thing in ranking.everything()] == before


def test_could_hold_counts_slots() -> None:
    assert could_hold([(8, 1), (4, 1)], {8: 1, 4: 1})
    assert not could_hold([(8, 1), (4, 1)], {8: 1, 4: 2})
    assert not could_hold([(3, 4)], {4: 1})
    assert could_hold([], {})
