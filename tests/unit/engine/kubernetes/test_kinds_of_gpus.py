"""Nodes that offer several resources: whole GPUs, slices of GPUs, shared ones."""

from __future__ import annotations

from decimal import Decimal

import pytest

from pai_backend.engine.kubernetes.nodes import node_of
from pai_backend.model.cluster_settings import NodeReading
from pai_backend.model.node import Gpu, Node
from pai_backend.model.pod_settings import PodGpuSettings
from pai_backend.scheduling.config.derive import derive, to_yaml
from pai_backend.scheduling.config.read import read_config

from .test_nodes import node

MIG, SHARED = "nvidia.com/mig-1g.10gb", "nvidia.com/gpu.shared"
GPUS = PodGpuSettings(resources={"MIG-1g": MIG, "SHARED": SHARED})
LABELS = {"jupyter-pai/gpu-type": "A100", "nvidia.com/gpu.memory": "81920", f"{MIG}.memory": "9856"}


def read(
    held: dict[str, int] | None = None, gpus: PodGpuSettings = GPUS, offered: dict[str, str] | None = None
) -> Node:
    found = node(labels=LABELS)
    found["status"]["allocatable"] |= {MIG: "7", **(offered or {})}
    return node_of(found, gpus, NodeReading(), held={name: Decimal(number) for name, number in (held or {}).items()})


def test_each_resource_is_a_type_of_devices_with_numbers_of_its_own() -> None:
    found = read()
    whole = tuple(Gpu(index=index, type="A100", memory_mb=81920) for index in range(2))
    assert found.gpus == whole + tuple(Gpu(index=1000 + index, type="MIG-1g", memory_mb=9856) for index in range(7))
    fewer = read(offered={"nvidia.com/gpu": "1", SHARED: "2"})
    assert [gpu.index for gpu in fewer.gpus] == [0, *range(1000, 1007), 2000, 2001], "no number has moved"


def test_a_resource_that_a_node_does_not_have_or_that_its_own_type_has_is_no_further_one() -> None:
    assert {gpu.type for gpu in read(gpus=PodGpuSettings()).gpus} == {"A100"}
    same = PodGpuSettings(resources={"V100": "nvidia.com/gpu", "A100": "nvidia.com/gpu", "MIG-1g": MIG, "MIG": MIG})
    assert {gpu.type for gpu in read(gpus=same).gpus} == {"A100", "MIG-1g"}
    visible = PodGpuSettings(by="visible-devices", resources=GPUS.resources)
    assert read(gpus=visible).gpus == ()


@pytest.mark.parametrize(
    ("held", "total", "by_type"),
    [
        ({}, 0, {"A100": 0, "MIG-1g": 0}),
        ({MIG: 3}, 3, {"A100": 0, "MIG-1g": 3}),
        ({MIG: 9, "nvidia.com/gpu": 1}, 8, {"A100": 1, "MIG-1g": 7}),
        ({"cpu": 1, SHARED: 5}, 0, {"A100": 0, "MIG-1g": 0}),
    ],
)
def test_what_others_hold_is_counted_for_each_resource(
    held: dict[str, int], total: int, by_type: dict[str, int]
) -> None:
    others = read(held).others
    assert (others.gpus, others.by_type) == (total, by_type)


def test_a_configuration_that_is_made_of_such_a_node_has_a_chain_for_each_type() -> None:
    config = derive([read()])
    assert {cell.type: [leaf.address for leaf in cell.children] for cell in config.physical} == {
        "A100-NODE-2": ["0", "1"],
        "MIG-1g-NODE-7": [str(1000 + index) for index in range(7)],
    }
    assert read_config(to_yaml(config)) == config
