"""A cluster configuration to start from: divided among virtual clusters, written with comments and notes.

A cell type says nothing of taints, so nodes of equal hardware are one chain although some may be meant for others: the
notes say what taints and cordons mean for a configuration that was made from its nodes.
"""

from __future__ import annotations

import dataclasses
import math
import textwrap
from collections.abc import Iterable, Mapping
from dataclasses import replace
from itertools import groupby

import yaml

from pai_backend.model.labels import Effect, Taint
from pai_backend.model.node import Node
from pai_backend.scheduling.config.derive import DEFAULT_VC
from pai_backend.scheduling.config.model import CellSpec, ClusterConfig, Quota, VirtualCluster

WHOLE = 100


def divide(config: ClusterConfig, percents: Mapping[str, int]) -> ClusterConfig:
    """Every shape of node divided in these percents, in whole nodes; the rest stays with ``default``.

    Rounded by largest remainder, so that a share is off by less than a node of each shape; of equal remainders the
    virtual cluster that was named first has the node. Raises ValueError for more than all.
    """
    given = sum(number for name, number in percents.items() if name != DEFAULT_VC)
    wanted = {name: number for name, number in percents.items() if name != DEFAULT_VC}
    rest = WHOLE - given
    if rest < 0 or percents.get(DEFAULT_VC, rest) != rest:
        raise ValueError(f"the shares are {sum(percents.values())} percent; {DEFAULT_VC} has what is left of {WHOLE}")
    wanted[DEFAULT_VC] = rest
    owned: dict[str, list[Quota]] = {name: [] for name in (DEFAULT_VC, *wanted)}
    for quota in config.virtual_clusters[DEFAULT_VC].quotas:
        for name, number in _rounded(quota.number, wanted).items():
            if number:
                owned[name].append(replace(quota, number=number))
    return replace(config, virtual_clusters={name: VirtualCluster(name, tuple(own)) for name, own in owned.items()})


def _rounded(total: int, percents: Mapping[str, int]) -> dict[str, int]:
    found = {name: total * percent // WHOLE for name, percent in percents.items()}
    by_remainder = sorted(percents, key=lambda name: -(total * percents[name] % WHOLE))  # stable: as they were named
    for name in by_remainder[: total - sum(found.values())]:
        found[name] += 1
    return found


MOST_NAMED = 8
"""Nodes that a note names; it says how many more there are."""


def notes(nodes: Iterable[Node]) -> list[str]:
    """A sentence for each GPU type whose nodes have taints that keep tasks off, and one for cordoned nodes."""
    every = sorted(nodes, key=lambda node: node.name)
    types = sorted({gpu.type for node in every for gpu in node.gpus})
    found = [note for kind in types for note in _of_type(kind, [node for node in every if _has(node, kind)])]
    cordoned = [node.name for node in every if not node.schedulable]
    if cordoned:
        found.append(f"Cordoned, so that nothing starts there for now: {_named(cordoned)}.")
    return found


def _of_type(kind: str, nodes: list[Node]) -> Iterable[str]:
    by_taints: dict[tuple[Taint, ...], list[str]] = {}
    for node in nodes:
        taints = tuple(taint for taint in node.taints if taint.effect is not Effect.PREFER_NO_SCHEDULE)
        by_taints.setdefault(taints, []).append(node.name)
    if not any(by_taints):
        return
    said = "; ".join(f"{_taints(taints)} on {_named(names)}" for taints, names in by_taints.items())
    if len(by_taints) == 1:
        yield f"{kind}: {said}. Nothing starts there unless cluster.sku_scheduling.{kind} tolerates it."
    else:
        yield (
            f"{kind}: equal hardware with different taints is one type here: {said}. Jobs use the nodes whose taints "
            f"cluster.sku_scheduling.{kind} tolerates; nodes that are meant for others need a type of their own."
        )


def _has(node: Node, kind: str) -> bool:
    return any(gpu.type == kind for gpu in node.gpus)


def _taints(taints: tuple[Taint, ...]) -> str:
    return ", ".join(map(str, taints)) or "none"


def _named(names: list[str]) -> str:
    more = f" and {len(names) - MOST_NAMED} more" if len(names) > MOST_NAMED else ""
    return ", ".join(names[:MOST_NAMED]) + more


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
            _comment("Who owns how many cells of a type. No other virtual cluster can preempt what it owns.")
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


def _nodes(config: ClusterConfig, kind: str, cells: list[CellSpec]) -> str:
    leaves = config.leaves(kind)
    said = f"{len(cells)} node{'s' if len(cells) > 1 else ''} of {leaves} × {config.levels(kind)[0]}"
    return "  " + _comment(said) + textwrap.indent(_yaml([_cell(cell) for cell in cells]), "  ")


def _cell(cell: CellSpec, top: bool = True) -> dict[str, object]:
    written: dict[str, object] = {"cellType": cell.type} if top else {}
    written["cellAddress"] = cell.address
    if cell.pinned_id:
        written["pinnedCellId"] = cell.pinned_id
    inferred = [CellSpec(child.type, str(number)) for number, child in enumerate(cell.children)]
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
