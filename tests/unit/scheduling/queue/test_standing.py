"""Groups that wait change places, as moved jobs do, and each knows where it stands."""

from __future__ import annotations

from dataclasses import replace

from pai_backend.scheduling.queue import Policy
from pai_backend.scheduling.queue.books import standing
from tests.unit.scheduling.queue.line import Line


def four_waiting() -> Line:
    """``a1 b1 a2 b2`` of ann and bob wait behind a full cluster."""
    line = Line(Policy())
    line.submit("full", (3, 4))
    for name, user in (("a1", "ann"), ("b1", "bob"), ("a2", "ann"), ("b2", "bob")):
        assert line.submit(name, (1, 4), user=user) == []
    return line


def order(line: Line) -> list[str]:
    return sorted(line.queue.waiting, key=lambda name: line.queue.waiting[name].key)


def test_groups_that_change_places_are_served_in_the_new_order() -> None:
    line = four_waiting()
    first, last = (line.queue.waiting[name].entry for name in ("a1", "a2"))
    for entry, turn in ((first, last.order), (last, first.order)):
        line.queue.release(entry.group.name)
        line.queue.line_up(replace(entry, order=turn))
    assert order(line) == ["a2", "b1", "a1", "b2"]
    assert line.end("full") == ["a2", "b1", "a1"]


def test_a_group_knows_its_place_and_how_many_wait() -> None:
    line = four_waiting()
    standings = [standing(line.queue, line.queue.waiting[name].entry) for name in order(line)]
    assert standings == [(1, 4), (2, 4), (3, 4), (4, 4)]
