"""What is noted of taints and cordons beside a configuration made from nodes."""

from __future__ import annotations

from pai_backend.commands.cluster_draft import MOST_NAMED, notes
from tests.support.marked_nodes import cordoned, node


def test_nothing_is_noted_of_open_nodes() -> None:
    assert notes([node("a"), node("b", "spare:PreferNoSchedule"), node("c", "x:NoSchedule", gpus=0)]) == []


def test_equal_hardware_with_different_taints_is_told_with_its_nodes() -> None:
    (note,) = notes([node("b", "team=vision:NoSchedule"), node("a"), node("c"), node("d", kind="T4")])
    assert note.startswith(
        "V100: equal hardware with different taints is one type here: none on a, c; team=vision:NoSchedule on b."
    )
    assert "cluster.sku_scheduling.V100" in note


def test_a_taint_of_all_nodes_of_a_type_has_to_be_tolerated() -> None:
    taints = ("gpu:NoSchedule", "drain:NoExecute")
    assert notes([node(f"n{number}", *taints) for number in range(MOST_NAMED + 2)]) == [
        "V100: gpu:NoSchedule, drain:NoExecute on n0, n1, n2, n3, n4, n5, n6, n7 and 2 more. Nothing starts "
        "there unless cluster.sku_scheduling.V100 tolerates it."
    ]


def test_cordoned_nodes_are_named() -> None:
    assert notes([cordoned(node("b", gpus=0)), cordoned(node("a")), node("c")]) == [
        "Cordoned, so that nothing starts there for now: a, b."
    ]
