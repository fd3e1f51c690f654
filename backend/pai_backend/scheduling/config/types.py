"""Cell types, and whether the cluster can provide what is promised of them."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence

import yaml

from pai_backend.model.text import Text
from pai_backend.scheduling.config import document
from pai_backend.scheduling.config.document import Faults, Path, some
from pai_backend.scheduling.config.model import CellSpec, CellType, ClusterConfig, Sku

_TYPE_KEYS = ("childCellType", "childCellNumber", "isNodeLevel")
MAX_LEAVES_PER_NODE = 256
"""Far above any machine; keeps a mistyped number from building a tree that fills the memory."""
MAX_LEAVES = 1 << 18
"""Of all physical cells together: each is an object in memory, and reading 262,144 takes a second."""
MAX_TYPES = 1_000
MAX_LEVELS = 32
"""Of a chain; cells are read by recursion. Switches, racks, machines, sockets and devices are five."""


def read_skus(node: yaml.Node | None, path: Path, faults: Faults) -> dict[str, Sku]:
    """``skuTypes`` by leaf type. The scheduler itself needs none; tasks are sized by them."""
    skus = {}
    for name, entry in document.mapping(node, path, faults).items():
        here = (*path, name)
        found = document.mapping(entry, here, faults, ("gpu", "cpu", "memory"))
        gpu = document.number(found.get("gpu"), (*here, "gpu"), faults, least=0, default=1)
        cpu = document.number(found.get("cpu"), (*here, "cpu"), faults, least=0, default=0)
        skus[name] = Sku(gpu, cpu, document.text(found.get("memory"), (*here, "memory"), faults))
    return skus


def read_types(node: yaml.Node | None, path: Path, faults: Faults) -> dict[str, CellType]:
    """``cellTypes`` by name, only those that are sound: no cycle, positive numbers."""
    entries = document.mapping(node, path, faults)
    if len(entries) > MAX_TYPES:
        faults.error(
            path,
            node,
            Text("there are {number} cell types", number=len(entries)),
            Text("At most {most}. Describe them by number.", most=MAX_TYPES),
        )
        return {}
    types = {}
    for name, entry in entries.items():
        here = (*path, name)
        found = document.mapping(entry, here, faults, _TYPE_KEYS)
        child = document.text(found.get("childCellType"), (*here, "childCellType"), faults, needed=True)
        count = document.number(found.get("childCellNumber"), (*here, "childCellNumber"), faults, least=1)
        is_node = document.flag(found.get("isNodeLevel"), (*here, "isNodeLevel"), faults)
        types[name] = CellType(name, child, count, is_node)
    for name, levels in _levels(types).items():
        here, entry = (*path, name), entries[name]
        if levels == 0:
            faults.error(
                here, entry, Text("cell type {name} contains itself", name=name), Text("Break the cycle of children.")
            )
        elif levels > MAX_LEVELS:
            faults.error(
                here,
                entry,
                Text("cell type {name} has {levels} levels", name=name, levels=levels),
                Text("At most {most}.", most=MAX_LEVELS),
            )
        else:
            continue
        del types[name]
    return types


def _levels(types: dict[str, CellType]) -> dict[str, int]:
    """Levels of each type down to its leaf, which is 1; 0 where a chain of children never reaches one.

    Each type is walked over once, so that a long chain takes time by its length.
    """
    found: dict[str, int] = {}
    for start in types:
        chain: dict[str, None] = {}
        name = start
        while name in types and name not in found and name not in chain:
            chain[name] = None
            name = types[name].child
        below = found.get(name, 0 if name in types else 1)
        for each in reversed(chain):
            below = below + 1 if below else 0
            found[each] = below
    return found


def chain_levels(types: dict[str, CellType], top: str) -> list[str]:
    """Type names from top to leaf."""
    names = [top]
    while names[-1] in types:
        names.append(types[names[-1]].child)
    return names


def check_chain(types: dict[str, CellType], top: str, node: yaml.Node, path: Path, faults: Faults) -> int:
    """The leaves of a type that may be the top of a physical tree; 0 for another, with the fault recorded."""
    if top not in types:
        hint = Text("Defined in cellTypes: {names}.", names=document.some(sorted(types)))
        faults.error(path, node, Text("cell type {type} is not defined", type=top), hint)
        return 0
    levels = chain_levels(types, top)
    marked = [name for name in levels[:-1] if types[name].is_node]
    if len(marked) > 1:
        hint = Text("Leave isNodeLevel on one of {names}.", names=", ".join(marked))
        faults.error(path, node, Text("chain {type} has {number} node levels", type=top, number=len(marked)), hint)
        return 0
    if not marked:
        above = [name for name in types if types[name].is_node and top in chain_levels(types, name)[1:]]
        hint = (
            Text("Use {type} or a type above it.", type=above[0])
            if above
            else Text("Mark the type that is a machine with isNodeLevel.")
        )
        faults.error(path, node, Text("chain {type} has no node level at or below its top", type=top), hint)
        return 0
    leaves = total = 1
    for name in reversed(levels[:-1]):
        total *= types[name].count
        leaves = total if types[name].is_node else leaves
    if leaves > MAX_LEAVES_PER_NODE or total > MAX_LEAVES:
        message = Text(
            "a cell of type {type} has {total} leaves, {leaves} in a node", type=top, total=total, leaves=leaves
        )
        faults.error(
            path,
            node,
            message,
            Text(
                "At most {most_in_node} in a node and {most} in all.", most_in_node=MAX_LEAVES_PER_NODE, most=MAX_LEAVES
            ),
        )
        return 0
    return total


def check_safety(config: ClusterConfig, node: yaml.Node | None, faults: Faults) -> None:
    """Record a fault for each chain whose quotas do not fit, naming the virtual clusters that ask."""
    path: Path = ("virtualClusters",)
    pins = {pin for cluster in config.virtual_clusters.values() for pin in cluster.pinned}
    promised, tops = _promised(config), defaultdict(list)
    for cell in config.physical:
        tops[cell.type].append(cell)
    for chain in config.chains():
        whole, nested = whole_cells(tops[chain], pins)
        for name in nested:
            message = Text("pinned cell {name} lies inside another pinned cell", name=name)
            faults.error(path, node, message, Text("Pin the outer or the inner one."))
        available = 0
        for kind in reversed(config.levels(chain)):
            available += whole[kind]
            needed = promised[chain, kind]
            if needed.total() > available:
                who = some(f"{name} {count}" for name, count in sorted(needed.items()))
                message = Text(
                    "chain {chain}: {number} cells of type {type} are promised ({who}), {available} left",
                    chain=chain,
                    number=needed.total(),
                    type=kind,
                    who=who,
                    available=available,
                )
                faults.error(
                    path,
                    node,
                    message,
                    Text("Lower the numbers by {number} or add cells.", number=needed.total() - available),
                )
                break
            if kind in config.cell_types:
                available = (available - needed.total()) * config.cell_types[kind].count


def whole_cells(tops: Sequence[CellSpec], pins: set[str]) -> tuple[Counter[str], list[str]]:
    """Largest cells free of pins, by type, and the ids of pinned cells inside pinned cells."""
    whole: Counter[str] = Counter()
    nested: list[str] = []

    def pinned_below(cell: CellSpec) -> list[str]:
        own = [cell.pinned_id] if cell.pinned_id in pins else []
        below = [name for child in cell.children for name in pinned_below(child)]
        if own:
            nested.extend(below)
        return own + below

    def count(cell: CellSpec) -> None:
        if cell.pinned_id in pins:
            return
        if not pinned_below(cell):
            whole[cell.type] += 1
            return
        for child in cell.children:
            count(child)

    for cell in tops:
        pinned_below(cell)
        found = list(nested)
        count(cell)
        nested[:] = found
    return whole, nested


def _promised(config: ClusterConfig) -> dict[tuple[str, str], Counter[str]]:
    """Cells that virtual clusters own, pinned ones apart: by chain and type, then by cluster."""
    found: dict[tuple[str, str], Counter[str]] = defaultdict(Counter)
    for cluster in config.virtual_clusters.values():
        for quota in cluster.quotas:
            if quota.number:
                found[quota.chain, quota.type][cluster.name] += quota.number
    return found
