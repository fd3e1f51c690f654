"""Which virtual cell stands on which physical cell; bad leaves, and the virtual cells that are doomed by them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from pai_backend.model.errors import Bug
from pai_backend.scheduling.cells.buddy import bad_within
from pai_backend.scheduling.cells.journal import Journal
from pai_backend.scheduling.cells.shape import bits
from pai_backend.scheduling.cells.tree import (
    Chain,
    Node,
    PhysicalCell,
    Quotas,
    QuotaUnit,
    VirtualCell,
    ancestors,
    units_of,
)


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
        self.journal.note(self._add_free, root, -delta)

    def _pair(self, cell: VirtualCell, real: PhysicalCell, at: int | None = None) -> None:
        """Join the two; a unit becomes number ``at`` of its node's units, the last when None."""
        cell.physical, real.virtual = real, cell
        if cell.parent is not None:
            cell.parent.bound += 1
        if isinstance(cell, QuotaUnit):
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
        if isinstance(cell, QuotaUnit):
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


def _node_of(cell: PhysicalCell) -> Node:
    if cell.node is None:
        raise Bug(f"{cell} is above the node level")
    return cell.node


class Health:
    """Applies health to the trees. ``quotas`` maps (virtual cluster, chain) to its unpinned quota."""

    def __init__(self, binder: Binder, quotas: Mapping[tuple[str, str], Quotas], journal: Journal) -> None:
        self.binder = binder
        self.journal = journal
        self._later: dict[Chain, list[PhysicalCell]] | None = None
        """Chains to settle, with the cells that were bound meanwhile; None when settling is done at once."""
        self._of_chain: dict[str, list[Quotas]] = {}
        for (_, chain), quota in sorted(quotas.items()):
            self._of_chain.setdefault(chain, []).append(quota)

    def set(self, node: Node, broken: int) -> None:
        """From now on exactly the leaves of ``broken`` are bad."""
        for leaf in bits(node.broken ^ broken):
            self._turn(node, leaf)

    def _turn(self, node: Node, leaf: int) -> None:
        """A leaf goes bad or heals, and with it every cell around it that this decides."""
        buddy = node.chain.buddy
        around = [(cell, bool(cell.bad), buddy.listed(cell) is not None) for cell in _lineage(node, leaf)]
        self._flip(node, 1 << leaf)
        for cell, was_bad, listed in around:
            if listed and bool(cell.bad) != was_bad:
                buddy.note_bad(cell, -1 if was_bad else 1)
        if node.broken >> leaf & 1:
            self._show(node)
        else:
            self._release_healed(node)
        self.settle(node.chain)

    def _flip(self, node: Node, mask: int) -> None:
        before = node.broken.bit_count()
        node.broken ^= mask
        delta = node.broken.bit_count() - before
        node.chain.broken += delta
        for above in ancestors(node):
            above.bad_leaves += delta
        node.chain.ranking.touch(node)
        for unit in node.units:
            unit.quotas.ranking.touch(unit)
        self.journal.note(self._flip, node, mask)

    def _show(self, node: Node) -> None:
        """Bind a bad node inside a bound cell to a free virtual node there, so that its loss is seen."""
        path: list[PhysicalCell] = []
        at: PhysicalCell | None = node
        while at is not None and at.virtual is None:
            path.append(at)
            at = at.parent
        if at is None or at.virtual is None or not path:
            return
        virtual = at.virtual
        for _ in path:
            virtual = next(child for child in virtual.children if child.physical is None)
        self.binder.bind(virtual, node)

    def _release_healed(self, node: Node) -> None:
        """Unbind cells that were bound only because they were bad."""
        for unit in list(node.units):
            cell = unit.physical
            if cell is None or cell.bad:
                continue
            self._clear_doom(unit.root)
            if not unit.used:
                self.binder.unbind(unit)
        at: PhysicalCell | None = node
        while at is not None:
            if at.virtual is not None and at.virtual.parent is None and not at.bad:
                self._clear_doom(at.virtual)
                if not isinstance(at.virtual, QuotaUnit) and not at.virtual.bound:
                    self.binder.unbind(at.virtual)
            at = at.parent

    def _clear_doom(self, root: VirtualCell) -> None:
        """A root whose cell is healthy is not doomed, whether it is in use or not."""
        if root.doomed and root.physical is not None and not root.physical.bad:
            self._set_doomed(root, doomed=False)

    def _set_doomed(self, root: VirtualCell, *, doomed: bool) -> None:
        others = [each for each in root.quotas.doomed if each is not root]
        self.journal.set(root.quotas, "doomed", [*others, root] if doomed else others)
        self.journal.set(root, "doomed", doomed)

    @contextmanager
    def later(self, *, settle: bool = True) -> Iterator[None]:
        """Settle at the end what changes inside: a plan's virtual cells must not be doomed while it is carried out.

        Without ``settle`` not even then: for what is undone anyway.
        """
        outer, self._later = self._later, {}
        try:
            yield
        finally:
            changed, self._later = self._later, outer
        if settle:
            for chain, cells in changed.items():
                self.settle(chain, *cells)

    def settle(self, chain: Chain, *bound: PhysicalCell) -> None:
        """Doom and undoom quota cells until each level is right. ``bound`` were just bound to quota cells.

        Costs nothing while all leaves are healthy. Each change moves one quota cell towards what is true, and what it
        does to other levels is looked at in the next round.
        """
        if not chain.broken and not any(quota.doomed for quota in self._of_chain.get(chain.name, ())):
            return
        if self._later is not None:
            self._later.setdefault(chain, []).extend(bound)
            return
        for cell in bound:
            self._show_within(cell)
        changed = True
        while changed:
            changed = False
            for level in range(1, len(chain.sizes)):
                for quota in self._of_chain.get(chain.name, ()):
                    while self._doom_one(chain, quota, level) or self._undoom_one(chain, quota, level):
                        changed = True

    def _doom_one(self, chain: Chain, quota: Quotas, level: int) -> bool:
        buddy = chain.buddy
        if buddy.left[level] - len(buddy.bad[level]) >= chain.free[level][quota.vc]:
            return False
        root = quota.unbound_root(level)
        if root is None or not buddy.bad[level]:
            return False
        cell = buddy.bad[level][0]
        self._set_doomed(root, doomed=True)
        self.binder.bind(root, cell)
        self._show_within(cell)
        return True

    def _undoom_one(self, chain: Chain, quota: Quotas, level: int) -> bool:
        buddy = chain.buddy
        if buddy.left[level] - len(buddy.bad[level]) <= chain.free[level][quota.vc]:
            return False
        root = next((each for each in quota.doomed if each.level == level and not in_use(each)), None)
        if root is None:
            return False
        self.undoom(root)
        return True

    def keep_for_bad(self, root: VirtualCell) -> None:
        """A quota cell on a bad cell is no longer used below: it is doomed from now on, if it has to be."""
        if not root.pinned and not in_use(root):
            if not root.doomed:
                self._set_doomed(root, doomed=True)
            self.settle(root.chain)

    def undoom(self, root: VirtualCell) -> None:
        """Free an unused doomed quota cell, even when its cell is bad."""
        self._set_doomed(root, doomed=False)
        for unit in units_of(root):
            if unit.physical is not None:
                self.binder.unbind(unit)
        if root.physical is not None:
            self.binder.unbind(root)

    def _show_within(self, cell: PhysicalCell) -> None:
        """Bind the bad nodes inside a newly bound cell to virtual nodes."""
        for each in list(bad_within(cell)):
            if isinstance(each, Node) and each is not cell and each.virtual is None:
                self._show(each)


def in_use(root: VirtualCell) -> bool:
    """Whether any group owns leaves of this quota cell."""
    return any(unit.used for unit in units_of(root))


def _lineage(node: Node, leaf: int) -> list[PhysicalCell]:
    """The leaf and the cells that contain it, upwards."""
    at: PhysicalCell = node
    while at.level > 1:
        at = next(child for child in at.children if child.mask >> leaf & 1)
    found = [at]
    while (above := found[-1].parent) is not None:
        found.append(above)
    return found
