"""Cells and groups as HiveD's inspect API shows them. Source: microsoft/hivedscheduler, ``pkg/api/types.go``."""

from __future__ import annotations

from pydantic import Field, RootModel

from pai_backend.api.wire import Camel


class CellAddress(Camel):
    """The other side of a cell: where a virtual one stands, or what stands on a physical one."""

    cell_type: str
    cell_address: str


class Cell(Camel):
    """A physical or virtual cell with all below it."""

    leaf_cell_type: str | None = Field(default=None, description="Of the top of a tree: the type of its leaves.")
    cell_type: str
    is_node_level: bool | None = Field(default=None, description="True for a machine.")
    cell_address: str
    cell_state: str = Field(description="Free, Used, Reserving (used and kept for another) or Reserved.")
    cell_healthiness: str = Field(description="Healthy or Bad.")
    cell_priority: int = Field(description="The highest of those who use it; -1 opportunistic, -2 unused.")
    vc: str | None = None
    virtual_cell: CellAddress | None = None
    physical_cell: CellAddress | None = None
    cell_children: tuple[Cell, ...] = ()


class CellList(RootModel[tuple[Cell, ...]]):
    """Trees of cells."""


class CellsOfClusters(RootModel[dict[str, tuple[Cell, ...]]]):
    """Virtual cluster -> its trees."""


class ClusterCells(Camel):
    """All trees: the machines, and what each virtual cluster owns."""

    physical_cluster: tuple[Cell, ...]
    virtual_clusters: dict[str, tuple[Cell, ...]]


class GroupName(Camel):
    """Whose status it is."""

    name: str


class LazyPreemption(Camel):
    """Who took a group's quota, so that it runs on opportunistically."""

    preemptor: str


class GroupState(Camel):
    """A group that has cells."""

    vc: str
    priority: int
    state: str = Field(description="Allocated, Preempting or BeingPreempted.")
    physical_placement: dict[str, tuple[int, ...]] = Field(description="Node -> indexes of leaves.")
    virtual_placement: dict[str, tuple[str, ...]] = Field(description="Quota cell -> addresses of its leaves.")
    lazy_preemption_status: LazyPreemption | None = None


class AffinityGroup(Camel):
    """An affinity group: tasks that were placed together."""

    metadata: GroupName
    status: GroupState


class AffinityGroups(Camel):
    """All of them that the caller may see."""

    items: tuple[AffinityGroup, ...]
