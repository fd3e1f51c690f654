"""Which virtual cell stands on which physical cell, from a unit up to its quota cell."""

from __future__ import annotations

from pai_backend.model.errors import Bug
from pai_backend.scheduling.cells.journal import Journal
from pai_backend.scheduling.cells.tree import Node, PhysicalCell, Unit, VirtualCell


class Binder:
    """Binds and unbinds; a quota cell that becomes bound leaves the free list, and returns to it when unbound."""

    def __init__(self, journal: Journal) -> None:
        self.journal = journal

    def bind(self, cell: VirtualCell, physical: PhysicalCell) -> VirtualCell | None:
        """Let ``cell`` and what contains it stand on ``physical`` and what contains that.

        Answers the quota cell when it was bound by this, else None. Raises Bug, and changes nothing,
        when the trees do not match.
        """
        pairs = _pairs(cell, physical)
        for virtual, real in pairs:
            if virtual.parent is None:
                self._take(virtual, real)
                return virtual
            self._pair(virtual, real)
        return None

    def unbind(self, cell: VirtualCell) -> VirtualCell | None:
        """Let ``cell``, and what contains it as far as nothing else there is bound, stand on nothing.

        Pinned and doomed quota cells stay. Answers the quota cell when it was unbound.
        """
        at: VirtualCell | None = cell
        while at is not None and at.physical is not None and not at.bound:
            if at.parent is None:
                if at.pinned or at.doomed:
                    return None
                self._give_back(at)
                return at
            self._part(at)
            at = at.parent
        return None

    def _take(self, root: VirtualCell, real: PhysicalCell) -> None:
        chain = root.chain
        chain.buddy.take(real)
        self._add_free(root, -1)
        self._pair(root, real)

    def _give_back(self, root: VirtualCell) -> None:
        real = root.physical
        assert real is not None
        self._part(root)
        self._add_free(root, 1)
        root.chain.buddy.put(real)

    def _add_free(self, root: VirtualCell, delta: int) -> None:
        chain, level, vc = root.chain, root.level, root.quotas.vc
        chain.free[level][vc] += delta
        chain.promised[level] += delta
        self.journal.note(_undo_free, root, delta)

    def _pair(self, cell: VirtualCell, real: PhysicalCell, at: int | None = None) -> None:
        """Join the two; a unit becomes number ``at`` of its node's units, the last when None."""
        cell.physical, real.virtual = real, cell
        if cell.parent is not None:
            cell.parent.bound += 1
        if isinstance(cell, Unit):
            units = _node_of(real).units
            units.insert(len(units) if at is None else at, cell)
            cell.quotas.ranking.touch(cell)
        self.journal.note(self._part, cell)

    def _part(self, cell: VirtualCell) -> None:
        real, at = cell.physical, None
        assert real is not None
        cell.physical = real.virtual = None
        if cell.parent is not None:
            cell.parent.bound -= 1
        if isinstance(cell, Unit):
            units = _node_of(real).units
            at = units.index(cell)
            del units[at]
            cell.quotas.ranking.touch(cell)
        self.journal.note(self._pair, cell, real, at)

    def pin(self, root: VirtualCell, real: PhysicalCell) -> None:
        """Bind a pinned quota cell for good; at start, before anything else is bound."""
        root.chain.buddy.take(real)
        root.pinned = True
        self._pair(root, real)


def _pairs(cell: VirtualCell, physical: PhysicalCell) -> list[tuple[VirtualCell, PhysicalCell]]:
    """Which virtual cell comes to stand on which, from ``cell`` up to what is bound already. Raises Bug if none can."""
    pairs: list[tuple[VirtualCell, PhysicalCell]] = []
    at: VirtualCell | None = cell
    real: PhysicalCell | None = physical
    while at is not None and at.physical is None:
        if real is None or real.virtual is not None or real.level != at.level:
            raise Bug(f"{cell} cannot stand on {physical}")
        pairs.append((at, real))
        at, real = at.parent, real.parent
    if at is not None and at.physical is not real:
        raise Bug(f"{cell} cannot stand on {physical}: its parent stands elsewhere")
    if at is None and physical.chain.buddy.listed(pairs[-1][1]) is None:
        raise Bug(f"{cell} cannot stand on {physical}, which is not free")
    return pairs


def _undo_free(root: VirtualCell, delta: int) -> None:
    chain, level = root.chain, root.level
    chain.free[level][root.quotas.vc] -= delta
    chain.promised[level] -= delta


def _node_of(cell: PhysicalCell) -> Node:
    if cell.node is None:
        raise Bug(f"{cell} is above the node level")
    return cell.node
