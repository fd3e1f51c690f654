"""Giving leaves to groups and taking them back: the only place that changes masks, owners and the counts above them."""

from __future__ import annotations

from pai_backend.scheduling.cells.binding import Binder, Health
from pai_backend.scheduling.cells.journal import Journal
from pai_backend.scheduling.cells.tree import Held, Node, QuotaUnit, Spot, ancestors


class Holding:
    """Moves groups on and off leaves. Every primitive is its own inverse, which is what the journal notes."""

    def __init__(self, binder: Binder, health: Health, journal: Journal) -> None:
        self.binder = binder
        self.health = health
        self.journal = journal

    def run(self, held: Held, spot: Spot) -> None:
        """The group runs there from now on: through its unit when it has one, else opportunistically."""
        if spot.unit is None:
            self._flip(spot.node, oppo=spot.mask)
        else:
            self._bind(spot)
            self._own(spot.unit, held, spot.mask)
            self._flip(spot.node, guaranteed=spot.mask)
        self._running(spot.node, held, spot.mask)

    def stop(self, held: Held, spot: Spot) -> None:
        """It no longer runs there. Leaves that a preemptor reserved stay the preemptor's."""
        self._running(spot.node, held, spot.mask)
        if spot.unit is None:
            self._flip(spot.node, oppo=spot.mask)
            return
        self._flip(spot.node, guaranteed=spot.mask)
        self._disown(spot.unit, held, spot.mask)

    def reserve(self, held: Held, spot: Spot) -> None:
        """Keep leaves for a preemptor; what still runs there loses its claim on the quota, not its leaves."""
        unit = spot.unit
        assert unit is not None
        self._bind(spot)
        for owner, mask in list(unit.owners.items()):
            if mask & spot.mask:
                self._own(unit, owner, mask & spot.mask)
        self._own(unit, held, spot.mask)
        self._reserving(spot.node, held, spot.mask)
        self._flip(spot.node, reserved=spot.mask)

    def cancel(self, held: Held, spot: Spot) -> None:
        """Give up a reservation: the claim returns to what still runs there."""
        unit = spot.unit
        assert unit is not None
        self._flip(spot.node, reserved=spot.mask)
        self._reserving(spot.node, held, spot.mask)
        self._own(unit, held, spot.mask)
        for owner, mask in spot.node.running.items():
            overlap = mask & spot.mask
            if overlap and owner.priority >= 0:
                self._own(unit, owner, overlap)
        self._let_go(unit)

    def confirm(self, held: Held, spot: Spot) -> None:
        """A reservation becomes a run; nothing else may run there any more."""
        self._flip(spot.node, reserved=spot.mask)
        self._reserving(spot.node, held, spot.mask)
        self._flip(spot.node, guaranteed=spot.mask)
        self._running(spot.node, held, spot.mask)

    def displace(self, held: Held, spot: Spot) -> None:
        """Lazy preemption: the tasks run on, but opportunistically; the quota is free for others."""
        unit = spot.unit
        assert unit is not None
        self._flip(spot.node, guaranteed=spot.mask, oppo=spot.mask)
        self._disown(unit, held, spot.mask)

    def replace(self, held: Held, spot: Spot) -> None:
        """The inverse of :meth:`displace`: the tasks count on ``spot.unit`` again."""
        unit = spot.unit
        assert unit is not None
        self._bind(spot)
        self._own(unit, held, spot.mask)
        self._flip(spot.node, guaranteed=spot.mask, oppo=spot.mask)

    def _bind(self, spot: Spot) -> None:
        unit, cell = spot.unit, spot.cell
        if unit is not None and unit.physical is None and cell is not None:
            root = self.binder.bind(unit, cell)
            if root is not None and root.physical is not None:
                self.health.settle(unit.chain, root.physical)

    def _disown(self, unit: QuotaUnit, held: Held, mask: int) -> None:
        own = unit.owners.get(held, 0) & mask
        if own:
            self._own(unit, held, own)
        self._let_go(unit)

    def _let_go(self, unit: QuotaUnit) -> None:
        """Unbind an unused unit; one on a bad cell only when its owner can get a healthy one instead."""
        cell = unit.physical
        if unit.used or cell is None:
            return
        if cell.bad:
            self.health.keep_for_bad(unit.root)
        elif self.binder.unbind(unit) is not None:
            self.health.settle(unit.chain)

    def _own(self, unit: QuotaUnit, held: Held, mask: int) -> None:
        """Flip whose leaves these are."""
        left = _flip_own(unit.owners, held, mask)
        unit.used ^= mask
        unit.quotas.credit(held, left.bit_count() - (left ^ mask).bit_count())
        unit.quotas.ranking.touch(unit)
        self.journal.note(self._own, unit, held, mask)

    def _running(self, node: Node, held: Held, mask: int) -> None:
        if self.journal.entries is not None:
            self.journal.note(setattr, node, "running", dict(node.running))  # in its order
        _flip_own(node.running, held, mask)

    def _reserving(self, node: Node, held: Held, mask: int) -> None:
        if self.journal.entries is not None:
            self.journal.note(setattr, node, "reserving", dict(node.reserving))
        _flip_own(node.reserving, held, mask)

    def _flip(self, node: Node, guaranteed: int = 0, oppo: int = 0, reserved: int = 0) -> None:
        node.guaranteed ^= guaranteed
        if reserved:
            before = node.reserved.bit_count()
            node.reserved ^= reserved
            node.chain.reserved += node.reserved.bit_count() - before
        if oppo:
            before = node.oppo.bit_count()
            node.oppo ^= oppo
            delta = node.oppo.bit_count() - before
            node.chain.oppo += delta
            for above in ancestors(node):
                above.oppo_leaves += delta
            _rate(node)
        node.chain.ranking.touch(node)
        for unit in node.units:
            unit.quotas.ranking.touch(unit)
        self.journal.note(self._flip, node, guaranteed, oppo, reserved)


def _flip_own(owners: dict[Held, int], held: Held, mask: int) -> int:
    """Flip these leaves of a group, which comes last then; what is left of it."""
    left = owners.pop(held, 0) ^ mask
    if left:
        owners[held] = left
    return left


def _rate(node: Node) -> None:
    """Tell the free list that the opportunistic load of what is listed here changed."""
    buddy = node.chain.buddy
    for part in node.free_below:
        buddy.rate(part)
    if node.position >= 0:
        buddy.rate(node)
    for above in ancestors(node):
        if above.position >= 0:
            buddy.rate(above)
