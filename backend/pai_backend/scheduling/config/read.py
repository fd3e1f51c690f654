"""Text -> :class:`ClusterConfig`, or every fault of the text at once.

The reference panics or crashes at the first of these mistakes, and accepts some that book a machine twice.
Source of the rules: the validation of microsoft/hivedscheduler, strictened where it lets harm through.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace

import yaml

from pai_backend.model.errors import DocumentError
from pai_backend.model.text import Text
from pai_backend.scheduling.config import document
from pai_backend.scheduling.config.document import Faults, Path, TooManyFaults
from pai_backend.scheduling.config.model import CellSpec, CellType, ClusterConfig, Quota, VirtualCluster
from pai_backend.scheduling.config.types import (
    MAX_LEAVES,
    chain_levels,
    check_chain,
    check_safety,
    read_skus,
    read_types,
)

KEY = "hivedscheduler"
_BLOCK = "|"
_LINE = re.compile(r"[^\n\r\x85\u2028\u2029]*+(?:\r\n|[\n\r\x85\u2028\u2029]|\Z)")  # as YAML counts them


def unwrapped(root: yaml.MappingNode, text: str, faults: Faults) -> yaml.MappingNode | None:
    """HiveD's own configuration within ``root``, the root of ``text``; ``root`` itself where nothing is around it.

    Places stay those of ``text``: its other lines are emptied and the block is read where it stands. None with the
    fault recorded.
    """
    if not any(isinstance(key, yaml.ScalarNode) and key.value == KEY for key, _ in root.value):
        return root
    outer = document.mapping(root, (), faults)
    path: Path = (KEY, "config")
    if "physicalCluster" in outer:
        faults.error(
            (KEY,), outer[KEY], Text("{key} and physicalCluster are both given", key=KEY), Text("Keep one of the two.")
        )
        return None
    for name in outer:
        if name != KEY:
            faults.warn(
                (name,),
                outer[name],
                Text("{name} means nothing here", name=name),
                Text("Only {key} is read of such a file.", key=KEY),
            )
    inner = document.mapping(outer[KEY], (KEY,), faults, ("config",)).get("config")
    if isinstance(inner, yaml.MappingNode):
        return inner
    if not isinstance(inner, yaml.ScalarNode) or inner.style != _BLOCK:
        hint = Text("Write `config: |` and the configuration below it, further to the right.")
        faults.error(path, inner or outer[KEY], Text("{key} has no config", key=KEY), hint)
        return None
    lines = _LINE.findall(text)
    first, end = inner.start_mark.line + 1, inner.end_mark.line
    return document.compose("\n" * first + "".join(lines[first : max(end, first)]), faults)


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

    def read(self, node: yaml.Node | None, path: Path) -> tuple[CellSpec, ...]:
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
                message = Text("this cell and those before it have {leaves} leaves", leaves=leaves)
                self.faults.error(here, entry, message, Text("At most {most} in the whole cluster.", most=MAX_LEAVES))
                break
            if more:
                cells.append(self._cell(entry, here, top, top, int(here[-1]), ""))
        return tuple(cells)

    def _cell(self, entry: yaml.Node | None, path: Path, chain: str, kind: str, number: int, node: str) -> CellSpec:
        """One cell and what is below it; ``number`` is its inferred address, ``node`` the machine it is in."""
        found = document.mapping(entry, path, self.faults, _CELL_KEYS)
        where = found.get("cellAddress") or entry
        given = document.text(found.get("cellAddress"), (*path, "cellAddress"), self.faults)
        address = given or str(number)
        stated = document.text(found.get("cellType"), (*path, "cellType"), self.faults)
        if stated and stated != kind:
            self.faults.error(
                (*path, "cellType"),
                found["cellType"],
                Text("this cell is a {type}", type=kind),
                Text("Write {type}.", type=kind),
            )
        self._pin(found.get("pinnedCellId"), path, chain, kind)
        spec = self.types.get(kind)
        if spec is None:
            self._leaf(where, path, chain, node, address)
            return CellSpec(kind, address, self._id(found, path))
        if spec.is_node:
            node, number = address, 0
            self._node(where, path, chain, address, bool(given))
        elif "/" in address:
            self.faults.error(
                (*path, "cellAddress"), where, Text("an address may not contain /"), Text("Choose another name.")
            )
        children = self._children(found.get("cellChildren"), path, chain, spec, number, node)
        return CellSpec(kind, address, self._id(found, path), children)

    def _children(
        self, listed: yaml.Node | None, path: Path, chain: str, spec: CellType, number: int, node: str
    ) -> tuple[CellSpec, ...]:
        """The children as listed, or all inferred when none is."""
        here = (*path, "cellChildren")
        items: list[tuple[Path, yaml.Node | None]] = list(document.sequence(listed, here, self.faults))
        if items and len(items) != spec.count:
            message = Text(
                "a {type} has {count} children of type {child}, {listed} are listed",
                type=spec.name,
                count=spec.count,
                child=spec.child,
                listed=len(items),
            )
            hint = Text("List all of them, or none to have them inferred.")
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
            message = Text("pinnedCellId {name} is on two cells", name=name)
            self.faults.error((*path, "pinnedCellId"), node, message, Text("Give each pinned cell its own id."))
        elif name:
            self.pins[name] = (chain, kind)

    def _node(self, where: yaml.Node | None, path: Path, chain: str, address: str, given: bool) -> None:
        place = (*path, "cellAddress")
        if not given:
            hint = Text("Add cellAddress with the machine's name.")
            self.faults.error(place, where, Text("a node-level cell has no address"), hint)
        elif "/" in address:
            self.faults.error(place, where, Text("a node's name may not contain /"), Text("Use the machine's name."))
        elif (chain, address) in self._nodes:
            message = Text("node {address} is twice in chain {chain}", address=address, chain=chain)
            self.faults.error(place, where, message, Text("Each machine may appear once in a chain."))
            self._twice.add((chain, address))
        self._nodes.add((chain, address))

    def _leaf(self, where: yaml.Node | None, path: Path, chain: str, node: str, address: str) -> None:
        place = (*path, "cellAddress")
        if not address.isascii() or not address.isdigit() or len(address) > 9:
            self.faults.error(
                place, where, Text("a leaf's address must be a number"), Text("Write the device's index, as in 0.")
            )
        elif (chain, node) in self._twice:
            return  # the fault of the node says it all
        elif self._machines.setdefault((node, address), chain) != chain or self._seen_leaf(chain, node, address):
            message = Text("device {address} of node {node} is listed twice", address=address, node=node)
            self.faults.error(place, where, message, Text("Give each device to one cell."))

    def _seen_leaf(self, chain: str, node: str, address: str) -> bool:
        key = (chain, f"{node}/{address}")
        seen = key in self._nodes
        self._nodes.add(key)
        return seen


_ROOT_KEYS = (
    "physicalCluster",
    "virtualClusters",
    "kubeApiServerAddress",
    "kubeConfigFilePath",
    "webServerAddress",
    "forcePodBindThreshold",
    "waitingPodSchedulingBlockMilliSec",
)
"""Settings of HiveD's own server are accepted, so that an existing file is read as it is; they mean nothing here."""


def read_config(text: str) -> ClusterConfig:
    """Read a cluster configuration in HiveD's schema, or OpenPAI's file of services around one.

    Raises :class:`~pai_backend.model.errors.DocumentError` whose ``errors`` list the faults found, 100 at most, each
    with its YAML path, 1-based line and column, and the remedy.
    """
    faults, config, too_many = Faults(), None, False
    try:
        whole = document.compose(text, faults)
        root = None if whole is None else unwrapped(whole, text, faults)
        config = None if root is None else _read(root, faults)
    except TooManyFaults:
        too_many = True
    if config is None or faults.errors:
        number, fault = len(faults.errors), faults.errors[0].message
        message = Text("the cluster configuration has {number} faults: {fault}", number=number, fault=fault)
        if too_many:
            message = Text(
                "the cluster configuration has at least {number} faults: {fault}", number=number, fault=fault
            )
        elif number == 1:
            message = Text("the cluster configuration has 1 fault: {fault}", fault=fault)
        raise DocumentError(message, errors=faults.errors)
    return replace(config, warnings=tuple(faults.warnings))


def _read(root: yaml.MappingNode, faults: Faults) -> ClusterConfig:
    sections = document.mapping(root, (), faults, _ROOT_KEYS)
    path: Path = ("physicalCluster",)
    section = sections.get("physicalCluster")
    physical = document.mapping(section, path, faults, ("skuTypes", "cellTypes", "physicalCells"))
    if not physical:
        faults.error(path, section or root, Text("there is no physicalCluster"), Text("Describe the machines."))
    skus = read_skus(physical.get("skuTypes"), (*path, "skuTypes"), faults)
    types = read_types(physical.get("cellTypes"), (*path, "cellTypes"), faults)
    reader = PhysicalReader(types, faults)
    cells = reader.read(physical.get("physicalCells"), (*path, "physicalCells"))
    clusters = _VirtualReader(types, cells, reader.pins, faults).read(sections.get("virtualClusters"))
    chains = {name for cell in cells for name in chain_levels(types, cell.type)}
    used = {name: types[name] for name in types if name in chains}
    config = ClusterConfig(used, cells, clusters, skus)
    if not faults.errors:
        check_safety(config, sections.get("virtualClusters"), faults)
    _warn_unused_pins(config, reader, physical.get("physicalCells"), faults)
    return config


def _warn_unused_pins(config: ClusterConfig, reader: PhysicalReader, node: yaml.Node | None, faults: Faults) -> None:
    taken = {pin for cluster in config.virtual_clusters.values() for pin in cluster.pinned}
    for name in reader.pins:
        if name not in taken:
            message = Text("pinned cell {name} belongs to no virtual cluster", name=name)
            hint = Text("Name it in a virtual cluster's pinnedCells; until then it is an ordinary cell.")
            faults.warn(("physicalCluster", "physicalCells"), node, message, hint)


class _VirtualReader:
    """Reads ``virtualClusters`` against the physical side."""

    def __init__(
        self,
        types: dict[str, CellType],
        cells: tuple[CellSpec, ...],
        pins: dict[str, tuple[str, str]],
        faults: Faults,
    ) -> None:
        self.types = types
        self.chains = {cell.type: chain_levels(types, cell.type) for cell in cells}
        self.pins = pins
        self.faults = faults
        self.owner: dict[str, str] = {}

    def read(self, node: yaml.Node | None) -> dict[str, VirtualCluster]:
        """All virtual clusters in document order."""
        path: Path = ("virtualClusters",)
        clusters = {}
        for name, entry in document.mapping(node, path, self.faults).items():
            here = (*path, name)
            found = document.mapping(entry, here, self.faults, ("virtualCells", "pinnedCells"))
            quotas = [
                quota
                for where, item in document.sequence(found.get("virtualCells"), (*here, "virtualCells"), self.faults)
                if (quota := self._quota(item, where)) is not None
            ]
            pins = [
                pin
                for where, item in document.sequence(found.get("pinnedCells"), (*here, "pinnedCells"), self.faults)
                if (pin := self._pin(item, where, name))
            ]
            clusters[name] = VirtualCluster(name, tuple(quotas), tuple(pins))
        return clusters

    def _quota(self, item: yaml.Node, path: Path) -> Quota | None:
        found = document.mapping(item, path, self.faults, ("cellType", "cellNumber"))
        node = found.get("cellType", item)
        written = document.text(found.get("cellType"), (*path, "cellType"), self.faults, needed=True)
        number = document.number(found.get("cellNumber"), (*path, "cellNumber"), self.faults, least=0)
        if not written:
            return None
        steps = written.split(".")
        chain, kind = steps[0], steps[-1]
        levels = self.chains.get(chain)
        if levels is None:
            have = document.some(self.chains)
            message = Text("{chain} is not the top of any physical cell", chain=chain)
            self.faults.error((*path, "cellType"), node, message, Text("Start with one of: {names}.", names=have))
            return None
        unknown = [step for step in steps if step not in levels]
        if unknown or len(steps) > len(levels) or (at := [levels.index(step) for step in steps]) != sorted(set(at)):
            message = Text("{path} does not go down the chain {chain}", path=written, chain=chain)
            if unknown:
                message = Text(
                    "{path} does not go down the chain {chain}: no {type} in it",
                    path=written,
                    chain=chain,
                    type=unknown[0],
                )
            self.faults.error(
                (*path, "cellType"), node, message, Text("Its levels are {levels}.", levels=".".join(levels))
            )
            return None
        return Quota(chain, kind, number)

    def _pin(self, item: yaml.Node, path: Path, cluster: str) -> str:
        found = document.mapping(item, path, self.faults, ("pinnedCellId",))
        name = document.text(found.get("pinnedCellId"), (*path, "pinnedCellId"), self.faults, needed=True)
        node = found.get("pinnedCellId", item)
        if name and name not in self.pins:
            have = document.some(self.pins)
            self.faults.error(
                path,
                node,
                Text("no physical cell has pinnedCellId {name}", name=name),
                Text("There is: {names}.", names=have),
            )
            return ""
        if name and name in self.owner:
            message = Text("pinned cell {name} is already owned by {owner}", name=name, owner=self.owner[name])
            self.faults.error(path, node, message, Text("Give it to one virtual cluster, once."))
            return ""
        self.owner[name] = cluster
        return name
