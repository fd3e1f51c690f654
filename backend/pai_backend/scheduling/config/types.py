"""Reads ``skuTypes`` and ``cellTypes``: what kinds of cells there are and how they nest."""

from __future__ import annotations

import yaml

from pai_backend.scheduling.config import document
from pai_backend.scheduling.config.document import Faults, Path
from pai_backend.scheduling.config.model import CellType, Sku

_TYPE_KEYS = ("childCellType", "childCellNumber", "isNodeLevel")
MAX_LEAVES_PER_NODE = 256
"""Far above any machine; keeps a mistyped number from building a tree that fills the memory."""
MAX_LEAVES = 1 << 20


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
    types = {}
    for name, entry in entries.items():
        here = (*path, name)
        found = document.mapping(entry, here, faults, _TYPE_KEYS)
        child = document.text(found.get("childCellType"), (*here, "childCellType"), faults, needed=True)
        count = document.number(found.get("childCellNumber"), (*here, "childCellNumber"), faults, least=1)
        is_node = document.flag(found.get("isNodeLevel"), (*here, "isNodeLevel"), faults)
        types[name] = CellType(name, child, count, is_node)
    for name in _cyclic(types):
        faults.error((*path, name), entries[name], f"cell type {name} contains itself", "Break the cycle of children.")
        del types[name]
    return types


def _cyclic(types: dict[str, CellType]) -> list[str]:
    """Types from which a chain of children never reaches a leaf."""
    bad = []
    for start in types:
        seen, name = {start}, types[start].child
        while name in types and name not in seen:
            seen.add(name)
            name = types[name].child
        if name in types:
            bad.append(start)
    return bad


def chain_levels(types: dict[str, CellType], top: str) -> list[str]:
    """Type names from top to leaf."""
    names = [top]
    while names[-1] in types:
        names.append(types[names[-1]].child)
    return names


def check_chain(types: dict[str, CellType], top: str, node: yaml.Node, path: Path, faults: Faults) -> bool:
    """Whether a type may be the top of a physical tree; records why not."""
    if top not in types:
        known = ", ".join(sorted(types)) or "none"
        faults.error(path, node, f"cell type {top} is not defined", f"Defined in cellTypes: {known}.")
        return False
    levels = chain_levels(types, top)
    marked = [name for name in levels[:-1] if types[name].is_node]
    if len(marked) > 1:
        hint = f"Leave isNodeLevel on one of {', '.join(marked)}."
        faults.error(path, node, f"chain {top} has {len(marked)} node levels", hint)
        return False
    if not marked:
        above = [name for name in types if types[name].is_node and top in chain_levels(types, name)[1:]]
        hint = f"Use {above[0]} or a type above it." if above else "Mark the type that is a machine with isNodeLevel."
        faults.error(path, node, f"chain {top} has no node level at or below its top", hint)
        return False
    leaves = total = 1
    for name in reversed(levels[:-1]):
        total *= types[name].count
        leaves = total if types[name].is_node else leaves
    if leaves > MAX_LEAVES_PER_NODE or total > MAX_LEAVES:
        message = f"a cell of type {top} has {total} leaves, {leaves} in a node"
        faults.error(path, node, message, f"At most {MAX_LEAVES_PER_NODE} in a node and {MAX_LEAVES} in all.")
        return False
    return True
