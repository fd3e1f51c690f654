"""Virtual cells: a virtual cluster's quota as trees, and the units in which tasks are placed."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pai_backend.scheduling.cells.build import Chain, Quotas
    from pai_backend.scheduling.cells.held import Held
    from pai_backend.scheduling.cells.physical import PhysicalCell


class VirtualCell:
    """A cell of a virtual cluster at or above the level of its units.

    ``physical`` is the real cell it stands on, None while nothing below it is in use. ``root`` is the quota cell it
    belongs to (itself for one); ``bound`` counts children that stand on something.
    """

    __slots__ = (
        "address",
        "bound",
        "chain",
        "children",
        "doomed",
        "level",
        "parent",
        "physical",
        "pinned",
        "quotas",
        "root",
    )

    def __init__(self, quotas: Quotas, chain: Chain, level: int, parent: VirtualCell | None, address: str) -> None:
        self.quotas = quotas
        self.chain = chain
        self.level = level
        self.parent = parent
        self.root: VirtualCell = self if parent is None else parent.root
        self.children: tuple[VirtualCell, ...] = ()
        self.address = address
        self.physical: PhysicalCell | None = None
        self.bound = 0
        self.doomed = False
        """Bound to a bad cell because too few healthy ones are left; only roots."""
        self.pinned = False
        """Bound for good to a pinned cell; only roots."""

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.quotas.vc}:{self.address})"


class Unit(VirtualCell):
    """The largest virtual cell a task must fit in: a node, or a quota cell below the node level.

    Leaves are those of the node it stands on, so that an unbound unit has no leaves in use. ``owners`` are guaranteed
    groups by the leaves that count as theirs (a preemptor's reservation counts before what its victim still runs on).
    """

    __slots__ = ("free", "owners", "rank", "size", "stale", "stamp", "used")

    def __init__(self, quotas: Quotas, chain: Chain, level: int, parent: VirtualCell | None, address: str) -> None:
        super().__init__(quotas, chain, level, parent, address)
        self.size = chain.sizes[level]
        self.owners: dict[Held, int] = {}
        self.used = 0
        self.rank = 0
        self.free = self.size
        self.stamp = 0
        self.stale = False

    def idle(self) -> int:
        """Leaves that can be taken without ending anything; of a bound unit."""
        cell = self.physical
        if cell is None or cell.node is None:
            return 0
        node = cell.node
        return cell.mask & ~(node.guaranteed | node.oppo | node.reserved | node.broken | self.used)

    def below(self, priority: int) -> int:
        """Healthy leaves that no guaranteed group of at least this priority owns; of a bound unit."""
        cell = self.physical
        if cell is None or cell.node is None:
            return 0
        taken = cell.node.broken
        for held, mask in self.owners.items():
            if held.group.priority >= priority:
                taken |= mask
        return cell.mask & ~taken
