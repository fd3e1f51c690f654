"""The one arithmetic condition on which the guarantee rests: all quotas can be carved out of the real cells at once.

From the top of a chain downwards: the whole cells there, less what virtual clusters own at this level, split into
children, must never be negative. Then buddy allocation can serve every remaining quota whatever the others do.
Pinned cells lie at fixed places, so the cells around them are split before counting.
Source: HiveD (OSDI 2020), section 4, and the reference's check at start, which forgets where pinned cells lie.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence

import yaml

from pai_backend.scheduling.config.document import Faults, Path, some
from pai_backend.scheduling.config.model import ClusterConfig, PhysicalCell


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
            message = f"pinned cell {name} lies inside another pinned cell"
            faults.error(path, node, message, "Pin the outer or the inner one.")
        available = 0
        for kind in reversed(config.levels(chain)):
            available += whole[kind]
            needed = promised[chain, kind]
            if needed.total() > available:
                who = some(f"{name} {count}" for name, count in sorted(needed.items()))
                message = f"chain {chain}: {needed.total()} cells of type {kind} are promised ({who}), {available} left"
                faults.error(path, node, message, f"Lower the numbers by {needed.total() - available} or add cells.")
                break
            if kind in config.cell_types:
                available = (available - needed.total()) * config.cell_types[kind].count


def whole_cells(tops: Sequence[PhysicalCell], pins: set[str]) -> tuple[Counter[str], list[str]]:
    """Largest cells free of pins, by type, and the ids of pinned cells inside pinned cells."""
    whole: Counter[str] = Counter()
    nested: list[str] = []

    def pinned_below(cell: PhysicalCell) -> list[str]:
        own = [cell.pinned_id] if cell.pinned_id in pins else []
        below = [name for child in cell.children for name in pinned_below(child)]
        if own:
            nested.extend(below)
        return own + below

    def count(cell: PhysicalCell) -> None:
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
