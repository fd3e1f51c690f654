"""Nodes of a cluster as tasks are placed on them."""

from __future__ import annotations

import copy
import json
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pai_backend.engine.kubernetes.nodes import away, node_of, slim_node
from pai_backend.engine.kubernetes.objects import Object
from pai_backend.engine.kubernetes.quantities import quantity
from pai_backend.engine.kubernetes.status.task import NodeAway
from pai_backend.model.cluster_settings import NodeReading
from pai_backend.model.labels import Effect, Operator, Taint, Toleration
from pai_backend.model.node import Gpu
from pai_backend.model.pod_settings import PodGpuSettings

RECORDED = Path(__file__).resolve().parents[3] / "data" / "kubernetes" / "nodes" / "carol.json"
PLUGIN, PLAIN = PodGpuSettings(), NodeReading()


def node(ready: str = "True", labels: dict[str, str] | None = None, **parts: object) -> Object:
    condition = {
        "type": "Ready",
        "status": ready,
        "message": "kubelet says",
        "lastTransitionTime": "2026-11-21T20:00:00Z",
    }
    status = {
        "conditions": [{"type": "MemoryPressure", "status": "False"}, condition],
        "allocatable": {"cpu": "15890m", "memory": "64Gi", "nvidia.com/gpu": "2"},
        "addresses": [{"type": "Hostname", "address": "carol"}, {"type": "InternalIP", "address": "10.0.0.7"}],
    }
    return {"metadata": {"name": "carol", "labels": labels or {}}, "spec": {}, "status": status, **parts}


def test_what_a_node_has_to_give() -> None:
    labels = {"nvidia.com/gpu.product": "Tesla-V100", "nvidia.com/gpu.memory": "32768"}
    found = node_of(node(labels=labels), PLUGIN, PLAIN)
    assert (found.name, found.address, found.machine) == ("carol", "10.0.0.7", "carol")
    assert (found.cpus, found.memory_mb) == (15, 65536)
    assert found.gpus == tuple(Gpu(index=index, type="Tesla-V100", memory_mb=32768) for index in (0, 1))
    assert (found.ready, found.reason, found.schedulable) == (True, "", True)
    assert found.labels == labels
    assert away(node()) is None


def test_what_is_left_to_others_is_not_given() -> None:
    found = node_of(node(), PLUGIN, NodeReading(spare_cpus=0.9, spare_memory_mb=1024))
    assert (found.cpus, found.memory_mb) == (14, 64512)
    assert node_of(node(), PLUGIN, NodeReading(spare_cpus=99, spare_memory_mb=10**6)).cpus == 0


@pytest.mark.parametrize(
    ("labels", "types", "expected"),
    [
        ({}, {}, "GPU"),
        ({"nvidia.com/gpu.product": "Tesla-V100"}, {}, "Tesla-V100"),
        ({"nvidia.com/gpu.product": "Tesla-V100"}, {"Tesla-V100": "V100"}, "V100"),
        ({"nvidia.com/gpu.product": "Tesla-V100", "jupyter-pai/gpu-type": "TITANX"}, {"Tesla-V100": "V100"}, "TITANX"),
        ({"amd.com/gpu.product-name": "MI300"}, {}, "MI300"),
    ],
)
def test_the_type_of_gpus_is_the_administrators_word_or_the_product(
    labels: dict[str, str], types: dict[str, str], expected: str
) -> None:
    found = node_of(node(labels=labels), PLUGIN, NodeReading(gpu_types=types))
    assert {gpu.type for gpu in found.gpus} == {expected}


def test_gpus_are_counted_by_the_resource_of_their_type() -> None:
    gpus = PodGpuSettings(resources={"MI300": "amd.com/gpu"})
    found = node(labels={"amd.com/gpu.product-name": "MI300"})
    found["status"]["allocatable"]["amd.com/gpu"] = "8"
    assert len(node_of(found, gpus, PLAIN).gpus) == 8


def test_without_a_device_plugin_a_label_counts_them() -> None:
    visible = PodGpuSettings(by="visible-devices")
    assert len(node_of(node(labels={"jupyter-pai/gpu-count": "4"}), visible, PLAIN).gpus) == 4
    assert node_of(node(), visible, PLAIN).gpus == ()


def test_a_node_that_is_not_ready_says_since_when_and_why() -> None:
    for status in ("False", "Unknown"):
        found = node_of(node(status), PLUGIN, PLAIN)
        assert (found.ready, found.reason) == (False, "kubelet says")
        assert away(node(status)) == NodeAway(datetime(2026, 11, 21, 20, tzinfo=UTC), "kubelet says")


def test_a_node_that_has_just_registered_is_not_ready_and_not_away() -> None:
    found = node(status={})
    assert "has not said yet" in node_of(found, PLUGIN, PLAIN).reason
    assert away(found) is None


def test_cordons_and_taints_keep_tasks_away() -> None:
    """A taint that only repeats a cordon or a lost Ready is told once."""
    taints = [
        {"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule"},
        {"key": "node.kubernetes.io/not-ready", "effect": "NoExecute", "timeAdded": "2026-11-21T20:00:00Z"},
        {"key": "node.kubernetes.io/disk-pressure", "effect": "NoSchedule"},
        {"key": "team", "value": "vision", "effect": "NoExecute"},
    ]
    found = node_of(node(spec={"unschedulable": True, "taints": taints}), PLUGIN, PLAIN)
    assert not found.schedulable
    assert found.taints == (
        Taint(key="node.kubernetes.io/disk-pressure", effect=Effect.NO_SCHEDULE),
        Taint(key="team", value="vision", effect=Effect.NO_EXECUTE),
    )


@pytest.mark.parametrize(
    "parts",
    [
        {"spec": {"taints": [{"key": "a", "effect": "NoSuchEffect"}]}},
        {"status": {"allocatable": {"cpu": "many"}, "conditions": [{"type": "Ready", "status": "True"}]}},
        {"status": {"allocatable": {"cpu": 4}, "conditions": [{"type": "Ready", "status": "True"}]}},
    ],
)
def test_a_node_that_cannot_be_read_takes_no_tasks_and_says_why(parts: dict[str, Any]) -> None:
    found = node_of(node(**parts), PLUGIN, PLAIN)
    assert not found.ready
    assert "cannot be read" in found.reason


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("4", "4"),
        ("3920m", "3.92"),
        ("0.5", "0.5"),
        ("8145084Ki", "8340566016"),
        ("64Gi", "68719476736"),
        ("1e3", "1000"),
        ("129E6", "129000000"),
        ("2E", "2e18"),
        ("123M", "123000000"),
        ("100u", "0.0001"),
        ("5n", "5e-9"),
    ],
)
def test_quantities_are_kubernetes_own(text: str, value: str) -> None:
    """Forms and suffixes of the documentation ("Quantity")."""
    assert quantity(text) == Decimal(value)


@pytest.mark.parametrize("text", ["", "m", ".", "1.2.3", "1 Gi", "1gi", "1e", "NaN", "Infinity", "٣", None, 4])
def test_what_is_no_quantity_is_an_error(text: object) -> None:
    with pytest.raises(ValueError, match="quantity"):
        quantity(text)


odd = st.none() | st.booleans() | st.integers(-9, 9) | st.sampled_from(["", "1", "2Gi", "carol", "10.0.0.7", "Ready"])
values = st.recursive(odd, lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from(["a"]), inner))


def entries(*keys: str, **fixed: st.SearchStrategy[object]) -> st.SearchStrategy[Object]:
    """Objects that have some of these keys, with values that ``fixed`` has for them, or with odd ones."""
    return st.fixed_dictionaries({}, optional={key: fixed.get(key, odd) for key in keys})


conditions = entries(
    "type",
    "status",
    "reason",
    "message",
    "lastTransitionTime",
    "lastHeartbeatTime",
    type=st.sampled_from(["Ready", "DiskPressure"]),
    status=st.sampled_from(["True", "False"]),
    lastTransitionTime=st.just("2026-11-21T20:00:00Z"),
)
addresses = st.fixed_dictionaries({"type": st.sampled_from(["InternalIP", "Hostname"]), "address": odd})
taints = entries("key", "value", "effect", effect=st.sampled_from(["NoSchedule", "NoExecute"]))
nodes = entries(
    "spec",
    "status",
    "kind",
    spec=entries("taints", "unschedulable", "podCIDR", taints=values | st.lists(taints, max_size=2)),
    status=entries(
        "conditions",
        "allocatable",
        "addresses",
        "images",
        conditions=values | st.lists(conditions | values, max_size=3),
        allocatable=values | st.dictionaries(st.sampled_from(["cpu", "memory", "nvidia.com/gpu"]), odd),
        addresses=st.lists(addresses, max_size=2),
    ),
)


@settings(deadline=None)
@given(nodes, st.dictionaries(st.sampled_from(["zone", "nvidia.com/gpu.product"]), st.just("a")))
def test_a_node_that_was_made_slim_reads_as_before(parts: Object, labels: dict[str, str]) -> None:
    whole = {"metadata": {"name": "carol", "uid": "1", "resourceVersion": "2", "labels": labels}, **parts}
    slim = slim_node(copy.deepcopy(whole))
    assert node_of(slim, PLUGIN, PLAIN) == node_of(whole, PLUGIN, PLAIN)
    assert away(slim) == away(whole)
    assert slim_node(slim) == slim


def test_what_is_not_read_of_a_node_is_not_kept() -> None:
    """A kubelet tells up to 50 images, and beats its heart in each of the conditions."""
    recorded = json.loads(RECORDED.read_text())
    slim = slim_node(recorded)
    assert node_of(slim, PLUGIN, PLAIN) == node_of(recorded, PLUGIN, PLAIN)
    assert set(slim["status"]) <= {"addresses", "allocatable", "conditions"}
    assert len(json.dumps(slim)) < len(json.dumps(recorded)) / 2


@settings(deadline=None)
@given(st.text(max_size=8))
def test_any_text_is_a_quantity_or_a_value_error(text: str) -> None:
    try:
        found = quantity(text)
    except ValueError:
        return
    assert found.is_finite()


def test_a_recorded_node_is_read() -> None:
    """Of a kubelet of the test cluster, with a GPU that does not exist."""
    found = node_of(json.loads(RECORDED.read_text()), PLUGIN, PLAIN)
    assert (found.name, found.ready, found.schedulable, found.taints) == ("carol", True, True, ())
    assert found.cpus > 0
    assert found.memory_mb > 0
    assert found.labels["kubernetes.io/hostname"] == "carol"


def test_taints_that_all_pods_tolerate_keep_no_task_away() -> None:
    taints = [{"key": "gpu", "value": "v100", "effect": "NoSchedule"}, {"key": "broken", "effect": "NoExecute"}]
    found = node(spec={"taints": taints})
    tolerated = [Toleration(key="gpu", operator=Operator.EXISTS)]
    assert [taint.key for taint in node_of(found, PLUGIN, PLAIN).taints] == ["gpu", "broken"]
    assert [taint.key for taint in node_of(found, PLUGIN, PLAIN, tolerated).taints] == ["broken"]
