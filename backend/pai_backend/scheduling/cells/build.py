"""Trees from a configuration: chains of physical cells, and each virtual cluster's quota in them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from pai_backend.scheduling.cells.buddy import Buddy
from pai_backend.scheduling.cells.held import Held
from pai_backend.scheduling.cells.journal import Journal
from pai_backend.scheduling.cells.physical import Node, PhysicalCell, Wide
from pai_backend.scheduling.cells.ranking import Ranking
from pai_backend.scheduling.cells.shape import Shape
from pai_backend.scheduling.cells.virtual import Unit, VirtualCell
from pai_backend.scheduling.config import model
from pai_backend.scheduling.config.model import ClusterConfig


class Chain:
    """One tree of cell types and all its cells. Levels are numbered from 1, the leaf; ``types[level]`` names them."""

    def __init__(self, config: ClusterConfig, name: str, journal: Journal) -> None:
        self.name = name
        levels = config.levels(name)
        self.types = ("", *levels)
        self.leaf_type = levels[0]
        self.level_of = {kind: level for level, kind in enumerate(levels, 1)}
        counts = [config.cell_types[kind].count for kind in levels[1:]]
        self.sizes = [0, 1]
        for count in counts:
            self.sizes.append(self.sizes[-1] * count)
        self.node_level = next(self.level_of[kind] for kind in levels[1:] if config.cell_types[kind].is_node)
        self.shape = Shape(counts[: self.node_level - 1])
        self.cells: list[PhysicalCell] = []
        self.by_level: list[list[PhysicalCell]] = [[] for _ in self.sizes]
        self.nodes: list[Node] = []
        self.tops = tuple(self._cell(spec, None, len(levels)) for spec in config.physical if spec.type == name)
        self.free = [dict.fromkeys(config.virtual_clusters, 0) for _ in self.sizes]
        """Per level and virtual cluster, quota cells that stand on nothing yet; pinned ones do not count."""
        self.promised = [0] * len(self.sizes)
        """The sum of ``free`` per level."""
        self.broken = 0
        """Leaves that are not healthy; while there are none, health costs nothing."""
        self.oppo = 0
        """Leaves that run opportunistic groups."""
        self.reserved = 0
        """Leaves that are kept for preemptors."""
        self.buddy = Buddy(self, journal)
        most = self.shape.leaves
        self.ranking = Ranking(self.nodes, _measure_node, most, journal)

    def _cell(self, spec: model.PhysicalCell, parent: PhysicalCell | None, level: int) -> PhysicalCell:
        if level > self.node_level:
            cell = Wide(self, level, parent, spec.address, spec.pinned_id)
            self.register(cell)
            cell.adopt(tuple(self._cell(child, cell, level - 1) for child in spec.children))
            return cell
        node = Node(self, parent, spec)
        self.register(node)
        self.nodes.append(node)
        return node

    def register(self, cell: PhysicalCell) -> None:
        """Number a new cell."""
        cell.number = len(self.cells)
        self.cells.append(cell)
        self.by_level[cell.level].append(cell)

    def at_level(self, level: int) -> list[PhysicalCell]:
        """All cells of a level, in order of the configuration."""
        if level >= self.node_level:
            return self.by_level[level]
        cells: list[PhysicalCell] = list(self.nodes)
        for _ in range(self.node_level - level):
            cells = [child for cell in cells for child in cell.children]
        return cells

    def pinned(self) -> dict[str, PhysicalCell]:
        """Cells with a pinned id, by it."""
        for node in self.nodes:
            if has_pin(node.spec):
                bool(node.children)
        return {cell.pinned_id: cell for cell in self.cells if cell.pinned_id}

    def promises_kept(self, free: list[int], taken: int = 0) -> bool:
        """Whether cells so many per level can serve every quota that stands on nothing, less one of level ``taken``."""
        available = 0
        for level in range(len(self.sizes) - 1, 0, -1):
            available += free[level] - self.promised[level] + (level == taken)
            if available < 0:
                return False
            available *= self.sizes[level] // self.sizes[level - 1] if level > 1 else 1
        return True

    def is_safe(self) -> bool:
        """Whether the free lists can serve every quota that stands on nothing: the guarantee itself."""
        return self.promises_kept([len(cells) for cells in self.buddy.lists])


class Quotas:
    """What one virtual cluster owns in one chain, or in one pinned cell: roots by level and the units below them."""

    def __init__(self, vc: str, chain: Chain, pinned_id: str = "") -> None:
        self.vc = vc
        self.chain = chain
        self.pinned_id = pinned_id
        self.roots: list[VirtualCell] = []
        self.units: list[Unit] = []
        self.ranking: Ranking[Unit]
        self.leaves = 0
        self.sizes: Counter[int] = Counter()
        """Units by number of leaves."""
        self.owned: dict[int, int] = {}
        """Priority -> leaves that count as in use by groups of it."""
        self.owners: dict[Held, int] = {}
        """Groups -> leaves that count as theirs."""
        self._newest = 0
        self._sorted = True
        self.doomed: list[VirtualCell] = []
        """Roots bound to bad cells for want of healthy ones, oldest first."""

    def add(self, level: int, address: str) -> VirtualCell:
        """One more quota cell."""
        root = self._grow(level, None, address)
        self.roots.append(root)
        self.leaves += self.chain.sizes[level]
        return root

    def _grow(self, level: int, parent: VirtualCell | None, address: str) -> VirtualCell:
        chain = self.chain
        if level <= chain.node_level:
            return Unit(self, chain, level, parent, address)
        cell = VirtualCell(self, chain, level, parent, address)
        count = chain.sizes[level] // chain.sizes[level - 1]
        cell.children = tuple(self._grow(level - 1, cell, f"{address}/{index}") for index in range(count))
        return cell

    def finish(self, journal: Journal, *, by_size: bool) -> None:
        """All cells are there: order the units as they are tried.

        Of empty units the smallest first, or with ``by_size`` False as HiveD does: whole nodes first.
        """
        found = [unit for root in self.roots for unit in units_of(root)]
        self.units = sorted(found, key=lambda unit: -unit.level)
        self.sizes = Counter(unit.size for unit in self.units)
        most = max((unit.size for unit in self.units), default=1)
        self.ranking = Ranking(self.units, _measure_by_size if by_size else _measure_unit, most, journal)

    def credit(self, held: Held, leaves: int) -> None:
        """So many more leaves count as the group's; fewer when negative."""
        priority = held.group.priority
        owned = self.owned.get(priority, 0) + leaves
        if owned:
            self.owned[priority] = owned
        else:
            del self.owned[priority]
        own = self.owners.get(held, 0)
        if own + leaves:
            if not own:
                self._sorted = self._sorted and held.serial >= self._newest
                self._newest = max(self._newest, held.serial)
            self.owners[held] = own + leaves
        else:
            del self.owners[held]

    def oldest_first(self) -> Iterator[Held]:
        """The owners by order of submission. They nearly always are in it; after an undo they are sorted again."""
        if not self._sorted:
            self.owners = dict(sorted(self.owners.items(), key=lambda item: item[0].serial))
            self._sorted = True
        return iter(self.owners)

    def unbound_root(self, level: int) -> VirtualCell | None:
        """The first quota cell of that level that stands on nothing."""
        return next((root for root in self.roots if root.level == level and root.physical is None), None)


def units_of(cell: VirtualCell) -> Iterator[Unit]:
    """The units in a virtual cell, in order."""
    if isinstance(cell, Unit):
        yield cell
    for child in cell.children:
        yield from units_of(child)


def has_pin(spec: model.PhysicalCell) -> bool:
    """Whether a cell below this one is pinned."""
    return any(child.pinned_id or has_pin(child) for child in spec.children)


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
