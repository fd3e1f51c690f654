"""Trees from a configuration: chains of real cells, and each virtual cluster's quota in them."""

from __future__ import annotations

from collections import Counter

from pai_backend.scheduling.cells.buddy import Buddy
from pai_backend.scheduling.cells.journal import Journal
from pai_backend.scheduling.cells.ranking import Ranking
from pai_backend.scheduling.cells.tree import Chain, Node, PhysicalCell, Quotas, Unit, VirtualCell, Wide, units_of
from pai_backend.scheduling.config import model
from pai_backend.scheduling.config.model import ClusterConfig


def make_chain(config: ClusterConfig, name: str, journal: Journal) -> Chain:
    """A chain with all its cells, which are free."""
    levels = config.levels(name)
    counts = [config.cell_types[kind].count for kind in levels[1:]]
    node_level = next(level for level, kind in enumerate(levels, 1) if level > 1 and config.cell_types[kind].is_node)
    chain = Chain(name, levels, counts, node_level, config.virtual_clusters)
    chain.tops = tuple(_cell(chain, spec, None, len(levels)) for spec in config.physical if spec.type == name)
    chain.buddy = Buddy(chain.tops, chain.sizes, chain.cells, chain.promises_kept, journal)
    chain.ranking = Ranking(chain.nodes, _measure_node, chain.shape.leaves, journal)
    return chain


def _cell(chain: Chain, spec: model.PhysicalCell, parent: PhysicalCell | None, level: int) -> PhysicalCell:
    if level > chain.node_level:
        cell = Wide(chain, level, parent, spec.address, spec.pinned_id)
        chain.register(cell)
        cell.adopt(tuple(_cell(chain, child, cell, level - 1) for child in spec.children))
        return cell
    node = Node(chain, parent, spec)
    chain.register(node)
    chain.nodes.append(node)
    return node


def pinned_cells(chain: Chain) -> dict[str, PhysicalCell]:
    """Cells with a pinned id, by it."""
    for node in chain.nodes:
        if _has_pin(node.spec):
            bool(node.children)
    return {cell.pinned_id: cell for cell in chain.cells if cell.pinned_id}


def _has_pin(spec: model.PhysicalCell) -> bool:
    return any(child.pinned_id or _has_pin(child) for child in spec.children)


def add_quota(quotas: Quotas, level: int, address: str) -> None:
    """One more quota cell."""
    quotas.roots.append(_grow(quotas, level, None, address))
    quotas.leaves += quotas.chain.sizes[level]


def _grow(quotas: Quotas, level: int, parent: VirtualCell | None, address: str) -> VirtualCell:
    chain = quotas.chain
    if level <= chain.node_level:
        return Unit(quotas, chain, level, parent, address)
    cell = VirtualCell(quotas, chain, level, parent, address)
    count = chain.sizes[level] // chain.sizes[level - 1]
    cell.children = tuple(_grow(quotas, level - 1, cell, f"{address}/{index}") for index in range(count))
    return cell


def order_units(quotas: Quotas, journal: Journal, *, by_size: bool) -> None:
    """All quota cells are there: order the units as they are tried.

    Of empty units the smallest first, or with ``by_size`` False as HiveD does: whole nodes first.
    """
    found = [unit for root in quotas.roots for unit in units_of(root)]
    quotas.units = sorted(found, key=lambda unit: -unit.level)
    quotas.sizes = Counter(unit.size for unit in quotas.units)
    most = max((unit.size for unit in quotas.units), default=1)
    quotas.ranking = Ranking(quotas.units, _measure_by_size if by_size else _measure_unit, most, journal)


def _measure_unit(unit: Unit) -> tuple[int, int]:
    """Fullest first, bad ones last; an unbound unit has all its leaves, if a place for it is found."""
    leaves = unit.chain.shape.leaves
    if unit.physical is None:
        return leaves, unit.size
    node = unit.physical.node
    if node is not None and unit.physical.mask & ~node.broken == 0:
        return leaves + 1, 0
    return leaves - unit.used.bit_count(), unit.idle().bit_count()


def _measure_by_size(unit: Unit) -> tuple[int, int]:
    """The same, but of empty units the smallest first.

    A node that is owned whole is then not begun for what a part of one, owned too, has room for.
    """
    leaves = unit.chain.shape.leaves
    if unit.physical is None:
        return leaves + unit.size, unit.size
    node = unit.physical.node
    if node is not None and unit.physical.mask & ~node.broken == 0:
        return 2 * leaves + 1, 0
    used = unit.used.bit_count()
    return leaves - used if used else leaves + unit.size, unit.idle().bit_count()


def _measure_node(node: Node) -> tuple[int, int]:
    """For opportunistic groups: most opportunistic leaves first, then fewest guaranteed ones; bad nodes last."""
    leaves = node.shape.leaves
    oppo = (node.oppo & ~node.reserved).bit_count()
    rest = (node.guaranteed | node.reserved).bit_count()
    if node.broken == node.mask:
        return (leaves + 1) * (leaves + 1), 0
    return (leaves - oppo) * (leaves + 1) + rest, node.idle().bit_count()
