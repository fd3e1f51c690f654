"""What would open nodes to a group: one thing each, tried on the scheduler, the nodes as they were afterwards."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from pai_backend.model.ids import TaskUid
from pai_backend.model.labels import NodeRule
from pai_backend.model.node import Node
from pai_backend.model.waiting import Change, ChangeKind
from pai_backend.scheduling import Group, Member
from pai_backend.scheduling.core.room import Room
from pai_backend.scheduling.explain import apply
from pai_backend.scheduling.jobs.why import CORDON, MOST_TRIED, openings
from pai_backend.scheduling.request import Need
from pai_backend.scheduling.terms import NodeRules, TermsOf
from tests.support.marked_nodes import cordoned, node

TERMS = TermsOf(NodeRules({"V100": NodeRule(node_selector={"pool": "big"})}), {})


def room_of(*nodes: Node) -> Room:
    room = Room()
    for each in nodes:
        room.set_node(each)
    return room


def need(leaf_type: str = "T4", cpus: int = 1, **selector: str) -> Need:
    return Need(TaskUid("t"), cpus, 100, terms=TERMS.on_cells(selector, leaf_type))


def found(room: Room, of: Need, needed: int = 1) -> list[tuple[ChangeKind, tuple[str, ...], str]]:
    """With a scheduler that starts the group on so many nodes; nothing is different afterwards."""
    before = dict(room.nodes)
    changes = openings(room, of, starting(room, of, needed))
    assert dict(room.nodes) == before
    assert room.suited(of) == {name for name, each in before.items() if each.ready and of.terms.objection(each) is None}
    return [(change.kind, change.nodes, change.detail) for change in changes]


def starting(room: Room, of: Need, needed: int) -> Callable[[], bool]:
    return lambda: len(room.having(of)) >= needed


def test_a_taint_a_label_and_a_cordon_are_each_told_with_their_nodes() -> None:
    room = room_of(node("a", "gpu=v100:NoSchedule", zone="x"), node("b", zone="y"), cordoned(node("c", zone="x")))
    assert sorted(found(room, need("T4", zone="x"))) == [
        (ChangeKind.DROP_LABEL, ("b",), "zone=x"),
        (ChangeKind.TOLERATE, ("a",), "gpu=v100:NoSchedule"),
        (ChangeKind.UNCORDON, ("c",), ""),
    ]


def test_a_taint_counts_for_all_nodes_that_have_it_and_a_cordon_node_by_node() -> None:
    tainted = room_of(*(node(name, "t:NoExecute") for name in ("a", "b")))
    assert found(tainted, need(), needed=2) == [(ChangeKind.TOLERATE, ("a", "b"), "t:NoExecute")]
    closed = room_of(*(cordoned(node(name, gpus=1)) for name in ("a", "b")))
    assert found(closed, need()) == [(ChangeKind.UNCORDON, ("a",), "")]
    assert found(closed, need(), needed=2) == [(ChangeKind.UNCORDON, ("a", "b"), "")]


def test_a_cordon_takes_kubernetes_own_taint_along() -> None:
    assert found(room_of(cordoned(node("a", f"{CORDON}:NoSchedule"))), need()) == [(ChangeKind.UNCORDON, ("a",), "")]


def test_a_node_that_is_full_not_ready_or_closed_twice_is_not_told() -> None:
    full = node("full", "t:NoSchedule", cpus=2)
    away = node("away", "t:NoSchedule").model_copy(update={"ready": False})
    twice = node("twice", "t:NoSchedule", "u:NoSchedule")
    assert found(room_of(full, away, twice), need(cpus=4)) == []


def test_an_administrators_label_counts_as_one_of_the_documents() -> None:
    assert found(room_of(node("a", pool="small")), need("V100")) == [(ChangeKind.DROP_LABEL, ("a",), "pool=big")]


def test_what_would_not_start_the_group_is_not_told_and_not_asked_for_ever() -> None:
    room = room_of(*(cordoned(node(f"c{number}")) for number in range(30)), node("t", "t:NoSchedule"))
    asked: list[bool] = []

    def never() -> bool:
        asked.append(True)
        return False

    assert openings(room, need(), never) == ()
    assert 1 < len(asked) <= MOST_TRIED


def test_a_scheduler_that_fails_leaves_the_nodes_as_they_were() -> None:
    room = room_of(cordoned(node("a")))

    def broken() -> bool:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        openings(room, need(), broken)
    assert not room.nodes["a"].schedulable
    assert room.suited(need()) == frozenset()


@pytest.mark.parametrize("kind", [ChangeKind.DROP_LABEL, ChangeKind.TOLERATE, ChangeKind.UNCORDON])
def test_a_change_of_nodes_changes_no_group(kind: ChangeKind) -> None:
    with pytest.raises(ValueError, match="changes no group"):
        apply(Group("g", "vc", (Member(1, 1),)), Change(kind=kind, nodes=("a",)))
