"""What would start a group: the kinds of changes, their order, and that they are only told when they work."""

from __future__ import annotations

from dataclasses import replace

import pytest

from pai_backend.model.waiting import Change, ChangeKind
from pai_backend.scheduling import Decision, Group, Ledger, Member
from pai_backend.scheduling.explain import apply, changes, explain
from pai_backend.scheduling.explain.explain import MOST_TRIALS
from pai_backend.scheduling.queue import Cap, Policy, VcCaps
from tests.unit.scheduling.queue.line import Line


def found(line: Line, name: str, vcs: tuple[str, ...] = ("a", "b")) -> list[tuple[str, object]]:
    """Kind and what to change to, in order."""
    entry = line.queue.waiting[name].entry
    return [
        (change.kind.value, change.leaf_type or change.vc or change.after or None)
        for change in changes(line.queue, entry, line.now, vcs)
    ]


def busy() -> Line:
    """``a`` has one node free of three; ``b`` all of its node and its old GPUs; another node is idle."""
    line = Line()
    line.submit("full", (2, 4))
    return line


def test_fewer_and_smaller_tasks_are_the_most_that_fit() -> None:
    line = busy()
    line.submit("g", (2, 3))
    assert found(line, "g", ("a",)) == [("fewer-tasks", 1), ("smaller-tasks", 2), ("opportunistic", None)] or found(
        line, "g", ("a",)
    ) == [("smaller-tasks", 2), ("fewer-tasks", 1), ("opportunistic", None)]


def test_what_gives_up_less_comes_first() -> None:
    line = busy()
    line.submit("g", (5, 1))
    assert found(line, "g", ("a",)) == [("fewer-tasks", 4), ("opportunistic", None)]


def test_what_nodes_have_just_refused_is_not_told() -> None:
    line = busy()
    line.submit("refused", (1, 3))
    line.queue.defer("refused")
    line.submit("g", (3, 3))
    assert ("fewer-tasks", 1) not in found(line, "g", ("a",))
    line.queue.nodes_changed()
    line.end("refused")
    assert ("fewer-tasks", 1) in found(line, "g", ("a",))


def test_what_lets_another_go_before_it_is_not_told() -> None:
    line = Line(Policy(vc=VcCaps(user=Cap(gpus=3))))
    line.submit("full", (3, 4), user="bob", priority=-1)
    for name, leaves in (("runs", 2), ("g", 2)):
        line.submit(name, (1, leaves), vc="b")
    assert ("opportunistic", None) in found(line, "g", ("b",))
    line.submit("behind", (1, 1), vc="b")
    assert "behind" in line.queue.waiting
    assert ("opportunistic", None) not in found(line, "g", ("b",)), (
        "its turn at the cap and the GPUs are another's then"
    )


def test_another_virtual_cluster_is_told_only_to_who_may_use_it() -> None:
    line = Line()
    line.submit("full", (3, 4))
    line.submit("g", (1, 4))
    assert ("virtual-cluster", "b") in found(line, "g")
    assert ("virtual-cluster", "b") not in found(line, "g", ())


def test_another_type_is_told_where_the_virtual_cluster_has_it() -> None:
    line = Line()
    line.submit("full", (1, 4), vc="b")
    line.submit("g", (1, 4), vc="b")
    assert found(line, "g", ())[0] == ("type", "OLD")


def test_to_lie_anywhere_is_told_where_one_cell_is_what_is_missing() -> None:
    line = Line()
    for number in range(3):
        line.submit(f"most{number}", (1, 3))
    line.submit("g", Member(2, 1, within="NODE"))
    assert found(line, "g", ())[0] == ("anywhere", None)
    change = changes(line.queue, line.queue.waiting["g"].entry, line.now, ())[0]
    changed = apply(line.queue.waiting["g"].entry.group, change)
    assert (change.detail, changed.members) == ("NODE", (Member(2, 1),))
    line.submit("plain", (1, 4))
    assert "anywhere" not in dict(found(line, "plain"))
    whole = Group("w", "a", (Member(2, 1, within="NODE"),), within="NODE")
    assert apply(whole, change) == Group("w", "a", (Member(2, 1),))


def test_a_cap_is_respected_by_what_is_suggested() -> None:
    line = Line(Policy(vcs={"a": VcCaps(user=Cap(gpus=4))}))
    line.submit("runs", (1, 2))
    line.submit("g", (2, 2))
    assert found(line, "g", ("a", "b")) == [
        ("virtual-cluster", "b"),
        ("fewer-tasks", 1),
        ("smaller-tasks", 1),
        ("opportunistic", None),
    ]


def test_nothing_is_suggested_that_would_have_to_wait_behind_somebody() -> None:
    line = Line(Policy(vc=VcCaps(user=Cap(gpus=4))))
    line.submit("runs", (1, 3))
    line.submit("first", (1, 4))
    line.submit("second", (1, 4))
    assert found(line, "second", ("a",)) == [("opportunistic", None)]


def test_nothing_is_suggested_before_all_have_been_asked() -> None:
    line = busy()
    line.submit("g", (2, 3))
    line.queue.release("full")
    assert found(line, "g") == []


def test_an_elastic_group_may_start_below_its_least() -> None:
    line = busy()
    line.submit("g", Member(8, 1, 6))
    assert found(line, "g", ())[0] == ("fewer-tasks", 4)
    changed = apply(line.queue.waiting["g"].entry.group, Change(kind=ChangeKind.FEWER, before=8, after=4))
    assert changed.members == (Member(4, 1),)


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (Change(kind=ChangeKind.TYPE, leaf_type="OLD"), {"leaf_type": "OLD"}),
        (Change(kind=ChangeKind.VC, vc="b"), {"vc": "b", "pinned_id": ""}),
        (Change(kind=ChangeKind.OPPORTUNISTIC), {"priority": -1, "pinned_id": ""}),
        (Change(kind=ChangeKind.SMALLER, member=1, before=4, after=2), {"members": (Member(2, 1), Member(1, 2))}),
    ],
)
def test_a_change_changes_one_thing(change: Change, expected: dict[str, object]) -> None:
    group = Group("g", "a", (Member(2, 1), Member(1, 4)), 10, "GPU", "pin")
    assert apply(group, change) == replace(group, **expected)  # type: ignore[arg-type]


def test_an_explanation_asks_only_so_often(monkeypatch: pytest.MonkeyPatch) -> None:
    line = Line()
    line.submit("full", (3, 4))
    line.submit("b0", (1, 4), vc="b")
    line.submit("g", (300, 4), (200, 3), (100, 2), (50, 1), (20, 1))
    asked = []
    ask = Ledger.decide

    def counting(self: Ledger, group: Group, suggested: object = None) -> Decision:
        asked.append(group)
        return ask(self, group, suggested)  # type: ignore[arg-type]

    monkeypatch.setattr(Ledger, "decide", counting)
    explain(line.queue, "g", line.now, vcs=("a", "b"))
    assert 10 < len(asked) <= MOST_TRIALS + 1
