"""Labels, taints and tolerations: what Kubernetes documents of them, rule by rule."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

from pai_backend.model.labels import Effect, NodeRule, Taint, Toleration, is_label_key, is_label_value
from pai_backend.model.node import Node

NO_SCHEDULE = Taint(key="key1", value="value1", effect=Effect.NO_SCHEDULE)
NO_EXECUTE = Taint(key="key1", value="value1", effect=Effect.NO_EXECUTE)


@pytest.mark.parametrize(
    ("toleration", "taint", "matches"),
    [
        ({"key": "key1", "operator": "Equal", "value": "value1", "effect": "NoSchedule"}, NO_SCHEDULE, True),
        ({"key": "key1", "operator": "Exists", "effect": "NoSchedule"}, NO_SCHEDULE, True),
        ({"key": "key1", "value": "value1", "effect": "NoSchedule"}, NO_SCHEDULE, True),
        ({"key": "key1", "value": "value2", "effect": "NoSchedule"}, NO_SCHEDULE, False),
        ({"key": "key1", "effect": "NoSchedule"}, NO_SCHEDULE, False),
        ({"key": "key2", "operator": "Exists", "effect": "NoSchedule"}, NO_SCHEDULE, False),
        ({"key": "key1", "operator": "Exists", "effect": "NoSchedule"}, NO_EXECUTE, False),
        ({"key": "key1", "operator": "Exists"}, NO_EXECUTE, True),
        ({"key": "key1", "value": "value1"}, NO_SCHEDULE, True),
        ({"operator": "Exists"}, NO_EXECUTE, True),
        ({"operator": "Exists", "effect": "NoExecute"}, NO_EXECUTE, True),
        ({"operator": "Exists", "effect": "NoExecute"}, NO_SCHEDULE, False),
        ({"key": "key1", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 3600}, NO_EXECUTE, True),
    ],
    ids=[
        "equal",
        "exists needs no value",
        "equal is the default",
        "other value",
        "no value is the empty value",
        "other key",
        "other effect",
        "no effect matches all, with exists",
        "no effect matches all, with equal",
        "no key matches everything",
        "no key and an effect",
        "no key and another effect",
        "for a time",
    ],
)
def test_a_toleration_matches_as_documented(toleration: dict[str, Any], taint: Taint, matches: bool) -> None:
    assert Toleration.model_validate(toleration).tolerates(taint) is matches


def test_taints_that_no_toleration_matches_are_left() -> None:
    """Kubernetes' example: two tolerations for three taints, of which the last keeps the pod away."""
    third = Taint(key="key2", value="value2", effect=Effect.NO_SCHEDULE)
    rule = NodeRule(
        tolerations=(
            Toleration(key="key1", value="value1", effect=Effect.NO_SCHEDULE),
            Toleration(key="key1", value="value1", effect=Effect.NO_EXECUTE),
        )
    )
    assert rule.untolerated((NO_SCHEDULE, NO_EXECUTE, third)) == (third,)
    assert NodeRule().untolerated((NO_SCHEDULE,)) == (NO_SCHEDULE,)


@pytest.mark.parametrize(
    ("toleration", "said"),
    [
        ({}, "without a key needs the operator Exists"),
        ({"operator": "Equal", "value": "x"}, "without a key needs the operator Exists"),
        ({"key": "a", "operator": "Exists", "value": "x"}, "must have no value with the operator Exists"),
        ({"key": "a", "tolerationSeconds": 5}, "tolerationSeconds with the effect NoExecute only"),
        ({"key": "a b"}, "letters, digits"),
        ({"key": "a", "value": "b/c"}, "at most 63 letters"),
        ({"key": "a", "operator": "Gt", "value": "3"}, "'Equal' or 'Exists'"),
        ({"key": "a", "effect": "NoRun"}, "NoSchedule"),
    ],
)
def test_what_kubernetes_refuses_is_refused(toleration: dict[str, Any], said: str) -> None:
    with pytest.raises(ValidationError, match=said):
        Toleration.model_validate(toleration)


@pytest.mark.parametrize(
    ("text", "is_key", "is_value"),
    [
        ("zone", True, True),
        ("kubernetes.io/hostname", True, False),
        ("Mixed_Case-1.2", True, True),
        ("a" * 63, True, True),
        ("a" * 64, False, False),
        ("", False, True),
        ("-zone", False, False),
        ("zone.", False, False),
        ("zo ne", False, False),
        ("zone\n", False, False),
        ("/zone", False, False),
        ("example.org/", False, False),
        ("Example.org/zone", False, False),
        ("a/b/c", False, False),
        ("x" * 253 + "/zone", True, False),
        ("x" * 254 + "/zone", False, False),
        ("größe", False, False),
    ],
)
def test_keys_and_values_have_kubernetes_syntax(text: str, is_key: bool, is_value: bool) -> None:
    assert (is_label_key(text), is_label_value(text)) == (is_key, is_value)


def test_a_node_takes_labels_and_taints_of_that_syntax_only() -> None:
    plain: dict[str, Any] = {"name": "n", "address": "10.0.0.1", "machine": "n", "cpus": 1, "memory_mb": 1}
    node = Node.model_validate(plain | {"labels": {"a/b": ""}, "taints": [{"key": "k", "effect": "NoExecute"}]})
    assert (node.schedulable, node.labels, [str(each) for each in node.taints]) == (True, {"a/b": ""}, ["k:NoExecute"])
    for wrong in ({"labels": {"a b": ""}}, {"labels": {"a": "b c"}}, {"taints": [{"key": "", "effect": "NoExecute"}]}):
        with pytest.raises(ValidationError, match="must be"):
            Node.model_validate(plain | wrong)


def test_a_rule_is_read_as_kubernetes_or_we_spell_it() -> None:
    ours = NodeRule.model_validate({"node_selector": {"a": "b"}})
    assert ours == NodeRule.model_validate({"nodeSelector": {"a": "b"}}) == NodeRule(node_selector={"a": "b"})
    assert ours == NodeRule.model_validate(ours.model_dump(mode="json"))
