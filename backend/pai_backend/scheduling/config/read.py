"""Text -> :class:`ClusterConfig`, or every fault of the text at once.

The reference panics or crashes at the first of these mistakes, and accepts some that book a machine twice.
Source of the rules: the validation of microsoft/hivedscheduler, strictened where it lets harm through.
"""

from __future__ import annotations

from dataclasses import replace

import yaml

from pai_backend.model.errors import DocumentError
from pai_backend.scheduling.config import document
from pai_backend.scheduling.config.document import Faults, Path, TooManyFaults
from pai_backend.scheduling.config.model import CellType, ClusterConfig, PhysicalCell, Quota, VirtualCluster
from pai_backend.scheduling.config.outer import unwrapped
from pai_backend.scheduling.config.physical import PhysicalReader
from pai_backend.scheduling.config.safety import check_safety
from pai_backend.scheduling.config.types import chain_levels, read_skus, read_types

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
    faults, config, least = Faults(), None, ""
    try:
        whole = document.compose(text, faults)
        root = None if whole is None else unwrapped(whole, text, faults)
        config = None if root is None else _read(root, faults)
    except TooManyFaults:
        least = "at least "
    if config is None or faults.errors:
        count = f"{least}{len(faults.errors)} fault{'s' if len(faults.errors) > 1 else ''}"
        message = f"the cluster configuration has {count}: {faults.errors[0].message}"
        raise DocumentError(message, errors=faults.errors)
    return replace(config, warnings=tuple(faults.warnings))


def _read(root: yaml.MappingNode, faults: Faults) -> ClusterConfig:
    sections = document.mapping(root, (), faults, _ROOT_KEYS)
    path: Path = ("physicalCluster",)
    section = sections.get("physicalCluster")
    physical = document.mapping(section, path, faults, ("skuTypes", "cellTypes", "physicalCells"))
    if not physical:
        faults.error(path, section or root, "there is no physicalCluster", "Describe the machines.")
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
            message = f"pinned cell {name} belongs to no virtual cluster"
            hint = "Name it in a virtual cluster's pinnedCells; until then it is an ordinary cell."
            faults.warn(("physicalCluster", "physicalCells"), node, message, hint)


class _VirtualReader:
    """Reads ``virtualClusters`` against the physical side."""

    def __init__(
        self,
        types: dict[str, CellType],
        cells: tuple[PhysicalCell, ...],
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
            message = f"{chain} is not the top of any physical cell"
            self.faults.error((*path, "cellType"), node, message, f"Start with one of: {have}.")
            return None
        unknown = [step for step in steps if step not in levels]
        if unknown or len(steps) > len(levels) or (at := [levels.index(step) for step in steps]) != sorted(set(at)):
            message = f"{written} does not go down the chain {chain}" + (f": no {unknown[0]} in it" if unknown else "")
            self.faults.error((*path, "cellType"), node, message, f"Its levels are {'.'.join(levels)}.")
            return None
        return Quota(chain, kind, number)

    def _pin(self, item: yaml.Node, path: Path, cluster: str) -> str:
        found = document.mapping(item, path, self.faults, ("pinnedCellId",))
        name = document.text(found.get("pinnedCellId"), (*path, "pinnedCellId"), self.faults, needed=True)
        node = found.get("pinnedCellId", item)
        if name and name not in self.pins:
            have = document.some(self.pins)
            self.faults.error(path, node, f"no physical cell has pinnedCellId {name}", f"There is: {have}.")
            return ""
        if name and name in self.owner:
            message = f"pinned cell {name} is already owned by {self.owner[name]}"
            self.faults.error(path, node, message, "Give it to one virtual cluster, once.")
            return ""
        self.owner[name] = cluster
        return name
