"""Which nodes a task may use: the administrator's rule of its SKU, and what its document asks for besides."""

from __future__ import annotations

import pytest

from pai_backend.model.job import Job
from pai_backend.model.labels import NodeRule
from pai_backend.model.node import Gpu, Node, Placement
from pai_backend.model.spec import TaskRole
from pai_backend.model.waiting import LackOf
from pai_backend.scheduling.jobs.demand import Sizing, sizing_of, wish_of
from pai_backend.scheduling.request import Need
from pai_backend.scheduling.terms import ANY_NODE, NodeRules, Objection
from pai_backend.testing.builders import make_job, make_role, make_spec
from tests.support.lab_config import two_vcs
from tests.support.marked_nodes import cordoned, node, tolerating


def job(*roles: TaskRole, gpu_type: str = "", **selector: str) -> Job:
    spec = make_spec(roles=roles).model_copy(update={"node_selector": selector, "gpu_type": gpu_type or None})
    return make_job(spec=spec)


def needs(of: Job, sizing: Sizing) -> list[Need]:
    wish = wish_of(of, of.tasks, sizing)
    return [*(need for party in wish.parties for need in party.needs), *wish.loose]


def only(of: Job, sizing: Sizing) -> Need:
    (need,) = needs(of, sizing)
    return need


GPU, CPU = make_role(gpus=1), make_role()
PLAIN = sizing_of(None, rules=NodeRules())


def test_nobody_who_says_nothing_is_kept_from_a_plain_node() -> None:
    assert only(job(GPU), PLAIN).terms is ANY_NODE
    assert ANY_NODE.objection(node("a", zone="x")) is None


@pytest.mark.parametrize(
    ("closed", "why"),
    [
        (cordoned(node("a", "k:NoSchedule")), Objection(LackOf.CORDONED)),
        (node("a", "k=v:NoSchedule"), Objection(LackOf.TAINT, "k=v:NoSchedule")),
        (node("a", "k:NoExecute"), Objection(LackOf.TAINT, "k:NoExecute")),
        (node("a", "k:PreferNoSchedule"), None),
    ],
)
def test_a_cordon_and_taints_that_are_not_tolerated_keep_tasks_off(closed: Node, why: Objection | None) -> None:
    assert ANY_NODE.objection(closed) == why
    assert ANY_NODE.avoids(closed) == (why is None)


def test_a_sku_tolerates_and_selects_what_its_administrator_says() -> None:
    sizing = sizing_of(None, rules=NodeRules({"V100": tolerating("gpu", pool="big")}))
    terms = only(job(GPU, gpu_type="V100"), sizing).terms
    assert terms.objection(node("a", "gpu=yes:NoSchedule", pool="big")) is None
    assert terms.objection(node("a", "gpu=yes:NoSchedule")) == Objection(LackOf.SELECTOR, "pool=big")
    assert terms.objection(node("a", "other:NoSchedule", pool="big")) == Objection(LackOf.TAINT, "other:NoSchedule")
    assert only(job(GPU, gpu_type="T4"), sizing).terms is ANY_NODE


def test_a_cordon_holds_whatever_is_tolerated() -> None:
    everything = NodeRule.model_validate({"tolerations": [{"operator": "Exists"}]})
    terms = only(job(GPU, gpu_type="V100"), sizing_of(None, rules=NodeRules({"V100": everything}))).terms
    assert terms.objection(node("a", "x:NoSchedule", "y:NoExecute")) is None
    assert terms.objection(cordoned(node("a"))) == Objection(LackOf.CORDONED)


def test_a_document_narrows_the_choice_and_tolerates_nothing() -> None:
    sizing = sizing_of(None, rules=NodeRules({"V100": tolerating("gpu", pool="big")}))
    terms = only(job(GPU, gpu_type="V100", zone="a"), sizing).terms
    assert terms.objection(node("n", "gpu:NoSchedule", pool="big", zone="a")) is None
    assert terms.objection(node("n", "gpu:NoSchedule", pool="big", zone="b")) == Objection(LackOf.SELECTOR, "zone=a")
    assert terms.objection(node("n", "gpu:NoSchedule", zone="a")) == Objection(LackOf.SELECTOR, "pool=big")
    alone = only(job(GPU, zone="a"), PLAIN).terms
    assert alone.objection(node("n", "gpu:NoSchedule", zone="a")) == Objection(LackOf.TAINT, "gpu:NoSchedule")


def test_tasks_without_cells_have_a_rule_of_their_own() -> None:
    sizing = sizing_of(None, rules=NodeRules({"V100": tolerating("gpu")}, tolerating("cpu")))
    with_gpu, without = needs(job(make_role("a", gpus=1), make_role("b"), gpu_type="V100"), sizing)
    assert without.terms.objection(node("n", "cpu:NoSchedule")) is None
    assert without.terms.objection(node("n", "gpu:NoSchedule")) is not None
    assert with_gpu.terms.objection(node("n", "gpu:NoSchedule")) is None
    assert with_gpu.terms.objection(node("n", "cpu:NoSchedule")) is not None


def test_a_group_of_any_type_keeps_to_the_rule_of_the_cells_on_the_node() -> None:
    terms = only(
        job(GPU), sizing_of(None, rules=NodeRules({"V100": tolerating("big"), "T4": tolerating("small")}))
    ).terms
    assert terms.objection(node("n", "big:NoSchedule", kind="V100")) is None
    assert terms.objection(node("n", "big:NoSchedule", kind="T4")) == Objection(LackOf.TAINT, "big:NoSchedule")
    assert terms.objection(node("n", "small:NoSchedule", kind="A100")) is not None
    both = node("n", "big:NoSchedule").model_copy(update={"gpus": (Gpu(index=0, type="V100"), Gpu(index=1, type="T4"))})
    assert terms.objection(both) == Objection(LackOf.TAINT, "big:NoSchedule")


def test_a_written_configuration_says_which_cells_a_node_has() -> None:
    sizing = sizing_of(two_vcs(), rules=NodeRules({"GPU-C": tolerating("c"), "GPU-D": tolerating("d")}))
    terms = only(job(GPU), sizing).terms
    assert terms.objection(node("carol", "c:NoSchedule", kind="TITANX")) is None
    assert terms.objection(node("dan", "c:NoSchedule", kind="TITANX")) is not None
    pinned = GPU.model_copy(update={"sku_type": "GPU-D"})
    assert only(job(pinned), sizing).terms.objection(node("carol", "d:NoSchedule")) is None


def test_rules_of_types_that_are_not_there_are_known() -> None:
    rules = NodeRules({"V100": tolerating("x"), "GPU-C": tolerating("c"), "A100": tolerating("y")})
    assert rules.unused(two_vcs()) == ["A100", "V100"]


def test_the_rule_of_a_placed_task_is_that_of_its_cells() -> None:
    rules = NodeRules({"GPU-C": tolerating("c"), "TITANX": tolerating("t")}, tolerating("cpu"))
    place = Placement(node="carol", address="", machine="", gpu_type="TITANX", cells=(0,), chain="GPU-C-NODE")
    assert rules.of_placed(place, two_vcs()) == tolerating("c")
    assert rules.of_placed(place, None) == tolerating("t")
    assert rules.of_placed(place.model_copy(update={"chain": "gone"}), two_vcs()) == tolerating("t")
    assert rules.of_placed(place.model_copy(update={"cells": ()}), two_vcs()) == tolerating("cpu")


def test_equal_terms_are_one_object_and_those_who_ask_for_the_same_are_of_one_kind() -> None:
    sizing = sizing_of(None, rules=NodeRules({"V100": tolerating("gpu")}))
    first, second = (only(job(GPU, gpu_type="V100", zone="a", rack="r"), sizing) for _ in range(2))
    other = only(job(GPU, gpu_type="V100", zone="b", rack="r"), sizing)
    turned = only(job(GPU, gpu_type="V100", rack="r", zone="a"), sizing)
    assert first.terms is second.terms is turned.terms
    assert first.kind == second.kind != other.kind
    shapes = [wish_of(each, each.tasks, sizing).shape for each in (job(GPU, zone="a"), job(GPU, zone="b"))]
    assert shapes[0] != shapes[1]
    untyped, unruled = only(job(GPU), sizing), only(job(GPU, gpu_type="T4", zone="a"), sizing)
    assert untyped.terms.rule is None
    assert unruled.terms.rule == NodeRule()
