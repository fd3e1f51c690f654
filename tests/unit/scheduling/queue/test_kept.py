"""Cells are kept for a group that was overtaken long enough: when, which, and what may run meanwhile."""

from __future__ import annotations

from datetime import timedelta

from pai_backend.scheduling.core.place import in_the_way
from pai_backend.scheduling.queue import Cap, Patience, Policy, VcCaps
from tests.unit.scheduling.queue.line import START, Line


def waiting_gang(overtaken: int = 2) -> Line:
    """Three nodes with three of four GPUs in use, and a gang that needs two whole ones."""
    line = Line(Policy(patience=Patience(overtaken, timedelta(minutes=10))))
    for number in range(3):
        line.submit(f"full{number}", (1, 3))
    assert line.submit("gang", (2, 4)) == []
    return line


def test_after_so_many_overtook_it_later_groups_wait_behind_it() -> None:
    line = waiting_gang(overtaken=2)
    assert line.submit("one", (1, 1)) == ["one"]
    assert line.submit("two", (1, 1)) == ["two"]
    assert "gang" in line.queue.claims
    assert line.submit("three", (1, 1)) == []
    way = {held.group.name for held in in_the_way(line.queue.ledger.groups["gang"])}
    [other] = {"full0", "full1", "full2"} - way
    assert line.end(other) == ["three"], "on a GPU that the gang does not need"


def test_it_starts_when_those_on_its_cells_have_ended() -> None:
    line = waiting_gang(overtaken=0)
    assert "gang" in line.queue.claims
    way = [held.group.name for held in in_the_way(line.queue.ledger.groups["gang"])]
    assert len(way) == 2
    assert line.end(way[0]) == []
    assert line.end(way[1]) == ["gang"]


def test_nobody_is_asked_to_end_for_it() -> None:
    line = waiting_gang(overtaken=0)
    assert line.advance().decided == []
    assert all(held.state == "allocated" for name, held in line.queue.ledger.groups.items() if name != "gang")


def test_after_so_long_cells_are_kept_for_it_and_the_queue_says_when_to_look() -> None:
    line = waiting_gang()
    assert line.advance().look_again == START + timedelta(minutes=10)
    assert line.after(9).held_back == []
    assert line.after(1).held_back == ["gang"]


def test_it_starts_at_once_when_others_make_room_elsewhere() -> None:
    line = waiting_gang(overtaken=0)
    way = [held.group.name for held in in_the_way(line.queue.ledger.groups["gang"])]
    rest = ({"full0", "full1", "full2"} - set(way)).pop()
    assert line.end(rest) == []
    assert line.end(way[1]) == ["gang"], "one node of those kept, and the other one"


def test_those_expected_to_end_first_are_waited_for() -> None:
    line = Line(Policy(patience=Patience(0)))
    for number, minutes in enumerate((90, 20, 10)):
        line.submit(f"full{number}", (1, 3))
        line.ends[f"full{number}"] = START + timedelta(minutes=minutes)
    line.submit("gang", (2, 4))
    assert {held.group.name for held in in_the_way(line.queue.ledger.groups["gang"])} == {"full1", "full2"}


def test_a_higher_priority_takes_the_kept_cells_and_they_are_kept_again() -> None:
    line = waiting_gang(overtaken=0)
    assert line.submit("urgent", (3, 1), priority=100) == ["urgent"]
    assert "gang" in line.queue.claims


def test_one_group_of_a_lane_at_a_time_has_cells_kept() -> None:
    line = waiting_gang(overtaken=0)
    assert line.submit("next", (2, 4)) == []
    assert line.after(20).held_back == []
    line.end("full0", "full1", "full2")
    assert "gang" in line.queue.running
    line.after(20)
    assert "next" in line.queue.claims


def test_of_a_node_that_fails_the_cells_are_given_up_and_others_kept() -> None:
    line = waiting_gang(overtaken=0)
    node = line.queue.ledger.groups["gang"].spots[0].node.name
    line.queue.set_node_health(node, healthy=False)
    line.advance()
    held = line.queue.ledger.groups.get("gang")
    assert held is None or node not in {spot.node.name for spot in held.spots}


def test_with_too_few_healthy_nodes_nothing_is_kept_and_the_next_in_line_is_first() -> None:
    line = Line(Policy(patience=Patience(1, timedelta(minutes=10))))
    for number in range(2):
        line.submit(f"full{number}", (1, 3))
    line.queue.set_node_health("n2", healthy=False)
    line.queue.set_node_health("n3", healthy=False)
    assert line.submit("gang", (3, 4)) == []
    assert line.submit("pair", (2, 4)) == []
    assert line.after(10).held_back == []
    assert "pair" not in line.queue.claims, "it is first only now"
    assert line.after(10).held_back == ["pair"]
    line.queue.set_node_health("n2", healthy=True)
    assert line.end("full0", "full1") == ["gang"]


def test_opportunistic_groups_have_no_claim() -> None:
    line = Line(Policy(patience=Patience(0)))
    for number in range(3):
        line.submit(f"full{number}", (1, 3))
    line.submit("idle", (4, 4), priority=-1)
    assert line.after(60).held_back == []


def test_nobody_takes_its_turn_under_a_cap_and_nothing_is_kept_for_who_is_at_one() -> None:
    line = Line(Policy(vc=VcCaps(user=Cap(gpus=9)), patience=Patience(0)))
    for number in range(3):
        line.submit(f"full{number}", (1, 3), user=f"u{number}")
    line.submit("gang", (2, 4), user="ann")
    assert "gang" in line.queue.claims
    assert line.submit("early", (1, 1), user="ann") == ["early"]
    assert line.submit("late", (1, 1), user="ann") == [], "nine GPUs are spoken for"
    assert line.end("full0", "full1", "full2") == ["gang"]


def test_nothing_is_kept_for_a_user_at_a_cap() -> None:
    line = Line(Policy(vc=VcCaps(user=Cap(gpus=9)), patience=Patience(0)))
    for number in range(3):
        line.submit(f"full{number}", (1, 3), user="ann")
    line.submit("capped", (2, 4), user="ann")
    line.submit("gang", (2, 4), user="bob")
    assert set(line.queue.claims) == {"gang"}
