"""Kinds of hardware that a document may name."""

from __future__ import annotations

import pytest

from pai_backend.model.node import Gpu, Node
from pai_backend.scheduling.config.model import Sku
from pai_backend.scheduling.config.read import read_config
from pai_backend.scheduling.jobs.demand import sizing_of
from pai_backend.scheduling.jobs.quota import misfits, named_kinds
from pai_backend.testing.builders import make_role, make_spec

PINNED = """
physicalCluster:
  skuTypes:
    A: {gpu: 1, cpu: 4, memory: 8Gi}
  cellTypes:
    A-NODE: {childCellType: A, childCellNumber: 2, isNodeLevel: true}
    B-NODE: {childCellType: B, childCellNumber: 1, isNodeLevel: true}
  physicalCells:
    - {cellType: A-NODE, cellAddress: carol}
    - {cellType: B-NODE, cellAddress: dan, pinnedCellId: MINE}
virtualClusters:
  default:
    virtualCells: [{cellType: A-NODE, cellNumber: 1}]
    pinnedCells: [{pinnedCellId: MINE}]
  idle: {}
"""


def node(name: str, *gpus: str) -> Node:
    devices = tuple(Gpu(index=index, type=kind) for index, kind in enumerate(gpus))
    return Node(name=name, machine=name, address="127.0.0.1", cpus=8, memory_mb=16_384, gpus=devices)


def test_kinds_of_a_written_configuration_are_those_that_are_not_refused() -> None:
    config = read_config(PINNED)
    sizing = sizing_of(config)
    assert named_kinds(config, []) == {"A": Sku(1, 4, "8Gi"), "B": Sku()}
    assert named_kinds(config, [], "default") == {"A": Sku(1, 4, "8Gi")}
    assert named_kinds(config, [], "idle") == {}
    for kind, refused in (("A", False), ("B", True)):
        spec = make_spec(roles=[make_role(gpus=1).model_copy(update={"sku_type": kind})])
        assert bool(misfits(spec, config, sizing)) is refused


@pytest.mark.parametrize("vc", ["", "default"])
def test_without_a_configuration_kinds_are_those_of_the_nodes_as_far_as_they_have_names(vc: str) -> None:
    nodes = [node("carol", "P100", "P100", "TITANX"), node("dan", ""), node("eve"), node("fay", "P100")]
    kinds = named_kinds(None, nodes, vc)
    assert kinds == {
        "P100": Sku(1, 4, "8192Mi"),
        "TITANX": Sku(1, 8, "16384Mi"),
        "CPU": Sku(0, 1, "2048Mi"),
    }
