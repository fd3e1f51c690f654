"""Two configurations side by side: what each virtual cluster owns, and which nodes come and go."""

from __future__ import annotations

from pai_backend.model.change import CellsOwned, ClusterChange, VcChange
from pai_backend.scheduling.config.model import ClusterConfig, PhysicalCell


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
    pins = _types_of_pins(config) if owner is not None and owner.pinned else {}
    for name in owner.pinned if owner is not None else ():
        found[f"pinned {name}"] = 1, config.leaves(pins[name])
    return found


def _types_of_pins(config: ClusterConfig) -> dict[str, str]:
    found: dict[str, str] = {}
    stack: list[PhysicalCell] = list(config.physical)
    while stack:
        cell = stack.pop()
        if cell.pinned_id:
            found[cell.pinned_id] = cell.type
        stack.extend(cell.children)
    return found
