"""Whom the cluster is asked about: one of a kind, nothing twice, nobody who cannot profit."""

from __future__ import annotations

import pytest

from pai_backend.scheduling import Decision, Group, Ledger
from pai_backend.scheduling.queue import MOST_ASKED, Entry
from tests.unit.scheduling.core.clusters import group
from tests.unit.scheduling.queue.line import Line


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Names of the groups that the cluster was asked about."""
    names: list[str] = []
    ask = Ledger.decide

    def listening(self: Ledger, group: Group, suggested: object = None) -> Decision:
        names.append(group.name)
        return ask(self, group, suggested)  # type: ignore[arg-type]

    monkeypatch.setattr(Ledger, "decide", listening)
    return names


def full() -> Line:
    line = Line()
    for number in range(3):
        line.submit(f"full{number}", (1, 4))
    line.submit("b0", (1, 4), vc="b")
    return line


def test_one_of_equal_groups_is_asked_for_all(asked: list[str]) -> None:
    line = full()
    asked.clear()
    for number in range(50):
        line.submit(f"g{number}", (1, 2), user=f"u{number}")
    assert asked == [], "a full virtual cluster is known to be full"
    line.end("full0")
    assert asked == ["g0", "g1"], "the room is used up after two"


def test_what_did_not_fit_is_not_asked_again_before_cells_are_freed(asked: list[str]) -> None:
    line = Line()
    for number in range(3):
        line.submit(f"full{number}", (1, 3))
    asked.clear()
    line.submit("pair", (1, 2))
    line.submit("other", (1, 2), user="bob")
    line.submit("larger", (1, 3))
    line.after(1)
    assert asked == ["pair"], "what needs as much, or more, waits as well"
    line.submit("fits", (1, 1))
    assert asked == ["pair", "fits"]


def test_a_release_in_one_virtual_cluster_asks_nobody_of_another(asked: list[str]) -> None:
    line = full()
    line.submit("a1", (1, 1))
    line.submit("b1", (1, 1), vc="b")
    asked.clear()
    assert line.end("b0") == ["b1"]
    assert asked == ["b1"]


def test_too_large_a_group_is_not_asked_after_a_small_release(asked: list[str]) -> None:
    line = full()
    for number in range(5):
        line.submit(f"pair{number}", (2, 4))
    line.submit("small", (1, 4))
    asked.clear()
    assert line.end("full0") == ["small"]
    assert asked == ["small"]


def test_a_pass_asks_about_so_many_at_most_and_the_next_goes_on(asked: list[str]) -> None:
    line = Line()
    line.busy = {"n0", "n1", "n2", "n3"}
    for number in range(MOST_ASKED + 20):
        line.queue.add(Entry(group(f"g{number}", "a", (1, 1)), "u", number, needs=number))
    answer = line.advance()
    assert answer.more
    assert answer.asked == len(asked) == MOST_ASKED
    assert not line.advance().more
    assert len(asked) == len(set(asked)) == MOST_ASKED + 20


def test_when_others_change_the_cluster_everybody_is_asked_again() -> None:
    line = full()
    assert line.submit("g", (1, 4)) == []
    line.queue.ledger.release("full0")
    assert line.started() == ["g"]
