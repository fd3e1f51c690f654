"""A configuration made from the nodes that an engine reports, and one written as YAML.

Nothing is known of switches and racks, so a node is one cell of its GPUs, one chain a shape, and the virtual cluster
``default`` owns every node: first come, first served in whole gangs. An administrator writes the rest into the file.
"""

from __future__ import annotations

from collections.abc import Iterable

import yaml

from pai_backend.model.node import Node
from pai_backend.scheduling.config.model import (
    CellSpec,
    CellType,
    ClusterConfig,
    Quota,
    Sku,
    VirtualCluster,
)

DEFAULT_VC = "default"


def derive(nodes: Iterable[Node]) -> ClusterConfig:
    """One chain per node shape (GPU type and number), all owned by the virtual cluster ``default``.

    A machine with GPUs of two types is in two chains. Nodes without GPU have no cells: tasks that need none are
    placed by CPU and memory alone. The order of nodes does not matter.
    """
    shapes: dict[tuple[str, int], list[tuple[Node, tuple[int, ...]]]] = {}
    for node in sorted(nodes, key=lambda each: each.name):
        for kind in sorted({gpu.type for gpu in node.gpus}):
            indexes = tuple(sorted(gpu.index for gpu in node.gpus if gpu.type == kind))
            shapes.setdefault((kind, len(indexes)), []).append((node, indexes))
    types: dict[str, CellType] = {}
    skus: dict[str, Sku] = {}
    cells, quotas = [], []
    for (kind, count), members in sorted(shapes.items()):
        top = f"{kind}-NODE-{count}"
        types[top] = CellType(top, kind, count, is_node=True)
        for node, indexes in members:
            leaves = tuple(CellSpec(kind, str(index)) for index in indexes)
            cells.append(CellSpec(top, node.name, "", leaves))
        quotas.append(Quota(top, top, len(members)))
        skus[kind] = _smallest(skus.get(kind), count, [node for node, _ in members])
    return ClusterConfig(types, tuple(cells), {DEFAULT_VC: VirtualCluster(DEFAULT_VC, tuple(quotas))}, skus)


def _smallest(known: Sku | None, count: int, nodes: list[Node]) -> Sku:
    """The share of CPU and memory that each GPU of this type certainly has."""
    cpu = min(node.cpus // count for node in nodes)
    memory = min(node.memory_mb // count for node in nodes)
    if known is not None:
        cpu, memory = min(cpu, known.cpu), min(memory, int(known.memory.removesuffix("Mi")))
    return Sku(1, cpu, f"{memory}Mi")


def to_yaml(config: ClusterConfig) -> str:
    """The configuration as text that :func:`~pai_backend.scheduling.config.read.read_config` reads back equal."""
    types = {
        each.name: {"childCellType": each.child, "childCellNumber": each.count}
        | ({"isNodeLevel": True} if each.is_node else {})
        for each in config.cell_types.values()
    }
    clusters = {
        each.name: {
            "virtualCells": [
                {"cellType": config.dotted(quota.chain, quota.type), "cellNumber": quota.number}
                for quota in each.quotas
            ],
            "pinnedCells": [{"pinnedCellId": name} for name in each.pinned],
        }
        for each in config.virtual_clusters.values()
    }
    document = {
        "physicalCluster": {
            "skuTypes": {
                name: {"gpu": sku.gpu, "cpu": sku.cpu, "memory": sku.memory} for name, sku in config.skus.items()
            },
            "cellTypes": types,
            "physicalCells": [{"cellType": cell.type, **_cell(cell)} for cell in config.physical],
        },
        "virtualClusters": clusters,
    }
    return yaml.safe_dump(document, sort_keys=False, allow_unicode=True)


def _cell(cell: CellSpec) -> dict[str, object]:
    written: dict[str, object] = {"cellAddress": cell.address}
    if cell.pinned_id:
        written["pinnedCellId"] = cell.pinned_id
    if cell.children:
        written["cellChildren"] = [_cell(child) for child in cell.children]
    return written
