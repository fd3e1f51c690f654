"""Groups that wait change places; who may move what, and what is stored."""

from __future__ import annotations

import pytest

from pai_backend.model.errors import Forbidden, InvalidParameters
from pai_backend.scheduling.queue import Policy
from pai_backend.scheduling.queue.moving import Side, move, standing
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


def test_a_user_exchanges_places_among_own_groups() -> None:
    line = four_waiting()
    assert move(line.queue, "a2", Side.BEFORE, "a1", user="ann") == {"a1": 4, "a2": 2}
    assert order(line) == ["a2", "b1", "a1", "b2"]
    assert line.end("full") == ["a2", "b1", "a1"]


def test_an_administrator_moves_a_group_past_anybody() -> None:
    line = four_waiting()
    move(line.queue, "b2", Side.BEFORE, "a1", user=None)
    assert order(line) == ["b2", "a1", "b1", "a2"]
    move(line.queue, "b2", Side.BEHIND, "b1", user=None)
    assert order(line) == ["a1", "b1", "b2", "a2"]
    assert [standing(line.queue, line.queue.waiting[name].entry) for name in order(line)] == [
        (1, 4),
        (2, 4),
        (3, 4),
        (4, 4),
    ]


def test_groups_of_others_are_not_yours_to_move() -> None:
    line = four_waiting()
    for name, other in (("b1", "a1"), ("a1", "b1")):
        with pytest.raises(Forbidden, match="your own groups"):
            move(line.queue, name, Side.BEFORE, other, user="ann")
    assert order(line) == ["a1", "b1", "a2", "b2"]


def test_queues_do_not_mix() -> None:
    line = four_waiting()
    line.submit("urgent", (1, 8), priority=100)
    with pytest.raises(InvalidParameters, match="not in the same queue"):
        move(line.queue, "a1", Side.BEFORE, "urgent", user=None)


def test_who_runs_or_has_cells_kept_cannot_be_moved() -> None:
    line = four_waiting()
    with pytest.raises(InvalidParameters, match="full does not wait"):
        move(line.queue, "a1", Side.BEFORE, "full", user=None)
    line.submit("urgent", (1, 4), priority=100)
    with pytest.raises(InvalidParameters, match="kept for it"):
        move(line.queue, "urgent", Side.BEFORE, "a1", user=None)
