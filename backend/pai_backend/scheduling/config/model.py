"""A checked cluster configuration as plain frozen values.

Words are HiveD's: a *cell type* with children, *physical cells* as trees with addresses, *virtual clusters* that own
cells of given types and pinned cells. A *chain* is a tree of types, named by its top type.
Source: microsoft/hivedscheduler, ``pkg/api/config.go`` and its example configurations.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property

from pai_backend.model.change import CellsOwned, ClusterChange, VcChange
from pai_backend.model.errors import Fault


@dataclass(frozen=True)
class Sku:
    """What one leaf cell of a type brings along, for sizing tasks; ``memory`` as Kubernetes writes it (``4096Mi``)."""

    gpu: int = 1
    cpu: int = 0
    memory: str = ""


@dataclass(frozen=True)
class CellType:
    """A level of a tree: ``count`` children of type ``child``. A type that is no such entry is a leaf type."""

    name: str
    child: str
    count: int
    is_node: bool = False


@dataclass(frozen=True)
class CellSpec:
    """A real cell with its own address segment (inferred where the document leaves it out)."""

    type: str
    address: str
    pinned_id: str = ""
    children: tuple[CellSpec, ...] = ()


@dataclass(frozen=True)
class Quota:
    """``number`` cells of ``type`` in ``chain`` that a virtual cluster owns."""

    chain: str
    type: str
    number: int


@dataclass(frozen=True)
class VirtualCluster:
    """What a virtual cluster owns, in the order of the document."""

    name: str
    quotas: tuple[Quota, ...] = ()
    pinned: tuple[str, ...] = ()


@dataclass(frozen=True)
class ClusterConfig:
    """A whole configuration that passed every check. ``warnings`` are faults that do no harm."""

    cell_types: Mapping[str, CellType]
    physical: tuple[CellSpec, ...]
    virtual_clusters: Mapping[str, VirtualCluster]
    skus: Mapping[str, Sku] = field(default_factory=dict)
    warnings: tuple[Fault, ...] = ()

    def levels(self, chain: str) -> tuple[str, ...]:
        """The types of a chain from leaf (level 1) to top."""
        names = [chain]
        while names[-1] in self.cell_types:
            names.append(self.cell_types[names[-1]].child)
        return tuple(reversed(names))

    def dotted(self, chain: str, kind: str) -> str:
        """``POOL.NODE.GPU``: the path from the chain's top to a type in it."""
        levels = self.levels(chain)
        return ".".join(reversed(levels[levels.index(kind) :]))

    def leaves(self, kind: str) -> int:
        """Leaf cells in a cell of this type."""
        return math.prod(self.cell_types[each].count for each in self.levels(kind)[1:])

    def chains(self) -> tuple[str, ...]:
        """The chains in order of first appearance among the physical cells."""
        return self._chains

    @cached_property
    def _chains(self) -> tuple[str, ...]:
        """Found once: of 10,000 machines that takes a while, and every document is held against them."""
        return tuple(dict.fromkeys(cell.type for cell in self.physical))

    def machines(self) -> Iterator[CellSpec]:
        """All node-level cells, in order; a machine may be in two chains."""
        stack = list(reversed(self.physical))
        while stack:
            cell = stack.pop()
            if self.cell_types[cell.type].is_node:
                yield cell
            else:
                stack.extend(reversed(cell.children))

    def nodes(self) -> tuple[str, ...]:
        """Node names in order of first appearance."""
        return tuple(dict.fromkeys(cell.address for cell in self.machines()))

    @cached_property
    def pins(self) -> Mapping[str, str]:
        """Pinned id -> the type of its cell."""
        found: dict[str, str] = {}
        stack = list(self.physical)
        while stack:
            cell = stack.pop()
            if cell.pinned_id:
                found[cell.pinned_id] = cell.type
            stack.extend(cell.children)
        return found


def compare(before: ClusterConfig, after: ClusterConfig) -> ClusterChange:
    """What differs by the configurations alone; virtual clusters in the order of the new one, then those that go."""
    names = dict.fromkeys((*after.virtual_clusters, *before.virtual_clusters))
    old, new = before.nodes(), after.nodes()
    known, still = set(old), set(new)
    return ClusterChange(
        virtual_clusters=tuple(_compared(name, before, after) for name in names),
        added_nodes=tuple(name for name in new if name not in known),
        removed_nodes=tuple(name for name in old if name not in still),
    )


def _compared(vc: str, before: ClusterConfig, after: ClusterConfig) -> VcChange:
    old, new = _owned(vc, before), _owned(vc, after)
    return VcChange(
        vc=vc,
        exists_before=vc in before.virtual_clusters,
        exists_after=vc in after.virtual_clusters,
        gpus_before=sum(number * leaves for number, leaves in old.values()),
        gpus_after=sum(number * leaves for number, leaves in new.values()),
        cells=tuple(
            CellsOwned(cell=cell, before=old.get(cell, _NONE)[0], after=new.get(cell, _NONE)[0])
            for cell in dict.fromkeys((*new, *old))
        ),
    )


_NONE = (0, 0)


def _owned(vc: str, config: ClusterConfig) -> dict[str, tuple[int, int]]:
    """Kind of cell -> how many of it, and leaf cells in each."""
    found: dict[str, tuple[int, int]] = {}
    owner = config.virtual_clusters.get(vc)
    for quota in owner.quotas if owner is not None else ():
        cell = config.dotted(quota.chain, quota.type)
        found[cell] = found.get(cell, _NONE)[0] + quota.number, config.leaves(quota.type)
    for name in owner.pinned if owner is not None else ():
        found[f"pinned {name}"] = 1, config.leaves(config.pins[name])
    return found
