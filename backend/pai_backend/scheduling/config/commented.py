"""A configuration as a file for people to go on writing: grouped by shape of machine, with words beside it."""

from __future__ import annotations

import dataclasses
import math
import textwrap
from collections.abc import Iterable
from itertools import groupby

import yaml

from pai_backend.scheduling.config.model import ClusterConfig, PhysicalCell, VirtualCluster

WIDTH = 118  # columns of a comment


def commented(config: ClusterConfig, title: str, remarks: Iterable[str] = ()) -> str:
    """YAML that :func:`~pai_backend.scheduling.config.read.read_config` reads back equal, with a title and remarks.

    What a reader infers by itself is left out: the addresses 0, 1, … of the GPUs of a node.
    """
    head = [title, *remarks]
    physical = [
        _comment("What each GPU of a type has of its node's CPUs and memory, at least: tasks are sized by it."),
        _section("skuTypes", {name: dataclasses.asdict(sku) for name, sku in config.skus.items()}),
        _comment("A node is one cell of its GPUs. Levels can be added below it (switches) and above it (racks)."),
        _section("cellTypes", _types(config)),
        "physicalCells:\n" if config.physical else "physicalCells: []\n",
        *(_nodes(config, kind, list(cells)) for kind, cells in groupby(config.physical, key=lambda cell: cell.type)),
    ]
    return "\n".join(
        [
            "#\n".join(map(_comment, head)),
            "physicalCluster:\n" + textwrap.indent("".join(physical), "  "),
            _comment("Who owns how many cells of a type. Nobody takes from a virtual cluster what it owns.")
            + _section("virtualClusters", {each.name: _owned(each, config) for each in _clusters(config)}),
        ]
    )


def _types(config: ClusterConfig) -> dict[str, object]:
    return {
        each.name: {"childCellType": each.child, "childCellNumber": each.count}
        | ({"isNodeLevel": True} if each.is_node else {})
        for each in config.cell_types.values()
    }


def _clusters(config: ClusterConfig) -> Iterable[VirtualCluster]:
    return config.virtual_clusters.values()


def _owned(cluster: VirtualCluster, config: ClusterConfig) -> dict[str, object]:
    quotas = [
        {"cellType": config.dotted(quota.chain, quota.type), "cellNumber": quota.number} for quota in cluster.quotas
    ]
    pins = [{"pinnedCellId": name} for name in cluster.pinned]
    return {"virtualCells": quotas} | ({"pinnedCells": pins} if pins else {})


def _nodes(config: ClusterConfig, kind: str, cells: list[PhysicalCell]) -> str:
    leaves = config.leaves(kind)
    said = f"{len(cells)} node{'s' if len(cells) > 1 else ''} of {leaves} × {config.levels(kind)[0]}"
    return "  " + _comment(said) + textwrap.indent(_yaml([_cell(cell) for cell in cells]), "  ")


def _cell(cell: PhysicalCell, top: bool = True) -> dict[str, object]:
    written: dict[str, object] = {"cellType": cell.type} if top else {}
    written["cellAddress"] = cell.address
    if cell.pinned_id:
        written["pinnedCellId"] = cell.pinned_id
    inferred = [PhysicalCell(child.type, str(number)) for number, child in enumerate(cell.children)]
    if list(cell.children) != inferred:
        written["cellChildren"] = [_cell(child, top=False) for child in cell.children]
    return written


def _section(key: str, value: object) -> str:
    return _yaml({key: value}) if value else f"{key}: {{}}\n"


def _yaml(value: object) -> str:
    """Collections of plain words on a line of their own each, the others as blocks."""
    return str(yaml.safe_dump(value, sort_keys=False, allow_unicode=True, default_flow_style=None, width=math.inf))


def _comment(text: str) -> str:
    words = (line for part in text.splitlines() for line in textwrap.wrap(part, WIDTH - 2, break_on_hyphens=False))
    return "".join(f"# {line}\n" for line in words)
