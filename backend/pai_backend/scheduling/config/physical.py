"""Reads ``physicalCells``: trees of real cells, with the addresses that the document leaves out inferred.

Inference, as HiveD does it: a top cell is its index in the list; a cell above the node level is its number among its
kind below the same top; at the node level the count starts again, so that leaves are 0..n-1 within their node.
A given address replaces one segment only.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import yaml

from pai_backend.scheduling.config import document
from pai_backend.scheduling.config.document import Faults, Path
from pai_backend.scheduling.config.model import CellType, PhysicalCell
from pai_backend.scheduling.config.types import MAX_LEAVES, check_chain

_CELL_KEYS = ("cellType", "cellAddress", "pinnedCellId", "cellChildren")


@dataclass
class PhysicalReader:
    """One pass over the physical cells; remembers what must be unique."""

    types: dict[str, CellType]
    faults: Faults
    pins: dict[str, tuple[str, str]] = field(default_factory=dict)
    """Pinned id -> (chain, type) of its cell."""
    _nodes: set[tuple[str, str]] = field(default_factory=set)
    _twice: set[tuple[str, str]] = field(default_factory=set)
    _machines: dict[tuple[str, str], str] = field(default_factory=dict)
    """(node, leaf address) -> chain, since a machine may be in two chains but a device only in one."""

    def read(self, node: yaml.Node | None, path: Path) -> tuple[PhysicalCell, ...]:
        """All physical cells whose type is sound."""
        cells, leaves = [], 0
        for here, entry in document.sequence(node, path, self.faults):
            found = document.mapping(entry, here, self.faults, _CELL_KEYS)
            type_node = found.get("cellType")
            top = document.text(type_node, (*here, "cellType"), self.faults, needed=True)
            where = type_node or entry
            more = check_chain(self.types, top, where, (*here, "cellType"), self.faults) if top else 0
            leaves += more
            if leaves > MAX_LEAVES:
                message = f"this cell and those before it have {leaves} leaves"
                self.faults.error(here, entry, message, f"At most {MAX_LEAVES} in the whole cluster.")
                break
            if more:
                cells.append(self._cell(entry, here, top, top, int(here[-1]), ""))
        return tuple(cells)

    def _cell(self, entry: yaml.Node | None, path: Path, chain: str, kind: str, number: int, node: str) -> PhysicalCell:
        """One cell and what is below it; ``number`` is its inferred address, ``node`` the machine it is in."""
        found = document.mapping(entry, path, self.faults, _CELL_KEYS)
        where = found.get("cellAddress") or entry
        given = document.text(found.get("cellAddress"), (*path, "cellAddress"), self.faults)
        address = given or str(number)
        stated = document.text(found.get("cellType"), (*path, "cellType"), self.faults)
        if stated and stated != kind:
            self.faults.error((*path, "cellType"), found["cellType"], f"this cell is a {kind}", f"Write {kind}.")
        self._pin(found.get("pinnedCellId"), path, chain, kind)
        spec = self.types.get(kind)
        if spec is None:
            self._leaf(where, path, chain, node, address)
            return PhysicalCell(kind, address, self._id(found, path))
        if spec.is_node:
            node, number = address, 0
            self._node(where, path, chain, address, bool(given))
        elif "/" in address:
            self.faults.error((*path, "cellAddress"), where, "an address may not contain /", "Choose another name.")
        children = self._children(found.get("cellChildren"), path, chain, spec, number, node)
        return PhysicalCell(kind, address, self._id(found, path), children)

    def _children(
        self, listed: yaml.Node | None, path: Path, chain: str, spec: CellType, number: int, node: str
    ) -> tuple[PhysicalCell, ...]:
        """The children as listed, or all inferred when none is."""
        here = (*path, "cellChildren")
        items: list[tuple[Path, yaml.Node | None]] = list(document.sequence(listed, here, self.faults))
        if items and len(items) != spec.count:
            message = f"a {spec.name} has {spec.count} children of type {spec.child}, {len(items)} are listed"
            hint = "List all of them, or none to have them inferred."
            self.faults.error(here, listed, message, hint)
            return ()
        items = items or [((*here, index), None) for index in range(spec.count)]
        base = number * spec.count
        return tuple(
            self._cell(item, where, chain, spec.child, base + index, node) for index, (where, item) in enumerate(items)
        )

    def _id(self, found: dict[str, yaml.Node], path: Path) -> str:
        return document.text(found.get("pinnedCellId"), (*path, "pinnedCellId"), Faults())

    def _pin(self, node: yaml.Node | None, path: Path, chain: str, kind: str) -> None:
        name = document.text(node, (*path, "pinnedCellId"), self.faults)
        if name and name in self.pins:
            message = f"pinnedCellId {name} is on two cells"
            self.faults.error((*path, "pinnedCellId"), node, message, "Give each pinned cell its own id.")
        elif name:
            self.pins[name] = (chain, kind)

    def _node(self, where: yaml.Node | None, path: Path, chain: str, address: str, given: bool) -> None:
        place = (*path, "cellAddress")
        if not given:
            hint = "Add cellAddress with the machine's name."
            self.faults.error(place, where, "a node-level cell has no address", hint)
        elif "/" in address:
            self.faults.error(place, where, "a node's name may not contain /", "Use the machine's name.")
        elif (chain, address) in self._nodes:
            message = f"node {address} is twice in chain {chain}"
            self.faults.error(place, where, message, "Each machine may appear once in a chain.")
            self._twice.add((chain, address))
        self._nodes.add((chain, address))

    def _leaf(self, where: yaml.Node | None, path: Path, chain: str, node: str, address: str) -> None:
        place = (*path, "cellAddress")
        if not address.isascii() or not address.isdigit() or len(address) > 9:
            self.faults.error(place, where, "a leaf's address must be a number", "Write the device's index, as in 0.")
        elif (chain, node) in self._twice:
            return  # the fault of the node says it all
        elif self._machines.setdefault((node, address), chain) != chain or self._seen_leaf(chain, node, address):
            message = f"device {address} of node {node} is listed twice"
            self.faults.error(place, where, message, "Give each device to one cell.")

    def _seen_leaf(self, chain: str, node: str, address: str) -> bool:
        key = (chain, f"{node}/{address}")
        seen = key in self._nodes
        self._nodes.add(key)
        return seen
