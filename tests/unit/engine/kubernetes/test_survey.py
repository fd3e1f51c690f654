"""What is told of a cluster's nodes to whoever makes a configuration of them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from pai_backend.engine.kubernetes.objects import Object
from pai_backend.engine.kubernetes.survey import survey
from pai_backend.model.cluster_settings import NodeReading
from pai_backend.model.pod_settings import PodSettings

RECORDED = Path(__file__).resolve().parents[3] / "data" / "kubernetes" / "nodes"
MASTER = {"key": "node-role.kubernetes.io/control-plane", "effect": "NoSchedule"}


def recorded(name: str = "carol", **labels: str) -> Object:
    found: Object = json.loads((RECORDED / "carol.json").read_text())
    found["metadata"]["name"] = name
    found["metadata"]["labels"].update({key.replace("__", "/").replace("_", "."): v for key, v in labels.items()})
    return found


def offering(found: Object, **resources: str) -> Object:
    del found["status"]["allocatable"]["nvidia.com/gpu"]
    found["status"]["allocatable"].update({key.replace("_", ".") + "/gpu": value for key, value in resources.items()})
    return found


def settings(**pods: Any) -> PodSettings:
    return PodSettings.model_validate({"runtime_image": "r:1", **pods})


def told(*found: Object, pods: PodSettings | None = None, **reading: Any) -> tuple[list[str], list[str]]:
    """Names of the nodes that cells can be made of, and the remarks."""
    made = survey(found, pods or settings(), NodeReading.model_validate(reading))
    return [node.name for node in made.nodes], list(made.remarks)


TYPED = {"nvidia_com__gpu_product": "Tesla-V100"}


def test_nodes_with_a_type_need_no_remark() -> None:
    names, remarks = told(recorded("dan", **TYPED), recorded("carol", **TYPED))
    assert (names, remarks) == (["carol", "dan"], [])


def test_an_unknown_type_is_told_with_the_label_to_set() -> None:
    names, (remark,) = told(recorded("carol"), recorded("dan"))
    assert names == ["carol", "dan"]
    assert "all GPU; " in remark
    assert "`kubectl label node NAME jupyter-pai/gpu-type=WORD`" in remark
    assert remark.endswith(": carol, dan.")


def test_the_control_plane_is_left_out_unless_tasks_tolerate_it() -> None:
    master = recorded("bob", **TYPED)
    master["spec"]["taints"] = [MASTER]
    names, (remark,) = told(master, recorded("carol", **TYPED))
    assert names == ["carol"]
    expected = "Left out, because the cluster itself is run there (node-role.kubernetes.io/control-plane:NoSchedule): "
    assert remark == expected + "bob."
    tolerant = settings(tolerations=[{"key": MASTER["key"], "operator": "Exists"}])
    assert told(master, pods=tolerant) == (["bob"], [])


def test_other_taints_are_no_reason_to_leave_a_node_out() -> None:
    tainted = recorded(**TYPED)
    tainted["spec"]["taints"] = [{"key": "team", "value": "a", "effect": "NoSchedule"}]
    assert told(tainted) == (["carol"], [])


def test_nodes_without_gpus_are_told() -> None:
    names, (remark,) = told(*(offering(recorded(f"cpu-{i:02}")) for i in range(10)))
    assert len(names) == 10
    assert remark.startswith("Without GPUs, hence without cells;")
    assert remark.endswith("cpu-07 and 2 more.")


def test_gpus_that_nothing_counts_are_told() -> None:
    assert "counted by nvidia.com/gpu and these are amd.com/gpu" in told(offering(recorded(), amd_com="8"))[1][0]
    assert "no device plugin offers nvidia.com/gpu there" in told(offering(recorded(**TYPED)))[1][0]
    visible = settings(gpus={"by": "visible-devices"})
    assert "`kubectl label node NAME jupyter-pai/gpu-count=N`" in told(recorded(), pods=visible)[1][0]
    counted = recorded(jupyter_pai__gpu_count="2", **TYPED)
    counted["metadata"]["labels"]["jupyter-pai/gpu-count"] = "2"
    assert told(counted, pods=visible) == (["carol"], [])


def test_a_type_with_a_dot_cannot_name_cells() -> None:
    product = "A100-SXM4-40GB-MIG-1g.5gb"
    names, (remark,) = told(recorded(nvidia_com__gpu_product=product))
    assert names == []
    assert f"as {product} has" in remark
    assert told(recorded(nvidia_com__gpu_product=product), gpu_types={product: "MIG"}) == (["carol"], [])


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({"allocatable": {"cpu": "many"}}, "Left out, because what the cluster says of it cannot be read ('many'"),
        ({"conditions": []}, "Not ready now (its kubelet has not said yet that it is ready), so that its cells wait"),
    ],
)
def test_troubles_are_told(change: dict[str, Any], expected: str) -> None:
    found = recorded(**TYPED)
    found["status"].update(change)
    assert told(found)[1][0].startswith(expected)
