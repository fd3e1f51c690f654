"""Physical cells: real devices, and who holds them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from pai_backend.scheduling.cells.shape import Shape, bits
from pai_backend.scheduling.config import model

if TYPE_CHECKING:
    from pai_backend.scheduling.cells.build import Chain
    from pai_backend.scheduling.cells.held import Held
    from pai_backend.scheduling.cells.virtual import Unit, VirtualCell


class PhysicalCell:
    """A cell of real devices.

    ``position`` is its place in the free list of its level, -1 when it is not listed (taken, split, or inside a whole
    free cell). ``node`` is the machine it is or lies in, None above the node level; ``mask`` its leaves there.
    """

    __slots__ = (
        "_children",
        "address",
        "chain",
        "leaves",
        "level",
        "listed",
        "mask",
        "node",
        "number",
        "parent",
        "pinned_id",
        "position",
        "split",
        "virtual",
    )

    def __init__(self, chain: Chain, level: int, parent: PhysicalCell | None, segment: str, pinned_id: str) -> None:
        self.chain = chain
        self.level = level
        self.parent: PhysicalCell | None = parent
        self._children: tuple[PhysicalCell, ...] = ()
        self.address: str = segment if parent is None else f"{parent.address}/{segment}"
        self.pinned_id = pinned_id
        self.leaves = chain.sizes[level]
        self.number = 0
        self.node: Node | None = None if parent is None else parent.node
        self.mask = 0
        self.virtual: VirtualCell | None = None
        self.split = False
        self.position = -1
        self.listed = 0
        """How many children are in the free list: all of them free means they merge."""

    @property
    def children(self) -> tuple[PhysicalCell, ...]:
        """The cells one level below, in order."""
        return self._children

    def adopt(self, children: tuple[PhysicalCell, ...]) -> None:
        """Say what the children are; once, while the tree is built."""
        self._children = children

    @property
    def opportunistic(self) -> int:
        """Leaves below that run opportunistic tasks."""
        return 0 if self.node is None else (self.node.oppo & self.mask).bit_count()

    @property
    def bad(self) -> int:
        """Leaves below that are not healthy; a cell is healthy only when this is 0."""
        return 0 if self.node is None else (self.node.broken & self.mask).bit_count()

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.address})"


class Wide(PhysicalCell):
    """A cell above the node level: its counts are kept, since summing up nodes would cost."""

    __slots__ = ("bad_leaves", "oppo_leaves")

    def __init__(self, chain: Chain, level: int, parent: PhysicalCell | None, segment: str, pinned_id: str) -> None:
        super().__init__(chain, level, parent, segment, pinned_id)
        self.oppo_leaves = 0
        self.bad_leaves = 0

    @property
    def opportunistic(self) -> int:
        """Leaves below that run opportunistic tasks."""
        return self.oppo_leaves

    @property
    def bad(self) -> int:
        """Leaves below that are not healthy."""
        return self.bad_leaves


class Node(PhysicalCell):
    """A machine's cells in one chain, with the masks of who is where.

    The cells below it become objects only when somebody asks for them: most nodes are never taken apart.

    ``guaranteed`` and ``oppo`` leaves run tasks; ``reserved`` ones are kept for a preemptor and may still run its
    victims; ``broken`` ones are not healthy. ``running`` and ``reserving`` say which group holds which leaves.
    ``rank``, ``free``, ``stamp``, ``stale`` belong to the ranking in which opportunistic groups look for nodes.
    """

    __slots__ = (
        "broken",
        "free",
        "guaranteed",
        "indexes",
        "name",
        "oppo",
        "parts",
        "place",
        "rank",
        "reserved",
        "reserving",
        "running",
        "shape",
        "spec",
        "stale",
        "stamp",
        "units",
    )

    def __init__(self, chain: Chain, parent: PhysicalCell | None, spec: model.PhysicalCell) -> None:
        super().__init__(chain, chain.node_level, parent, spec.address, spec.pinned_id)
        self.name = spec.address
        self.spec = spec
        self.node = self
        self.shape: Shape = chain.shape
        self.mask = self.shape.full
        self.indexes = tuple(int(leaf.address) for leaf in leaves_of(spec))
        """Device index of each leaf, in leaf order; they need not be ascending."""
        self.place = {index: leaf for leaf, index in enumerate(self.indexes)}
        """Device index -> leaf."""
        self.guaranteed = self.oppo = self.reserved = self.broken = 0
        self.running: dict[Held, int] = {}
        self.reserving: dict[Held, int] = {}
        self.units: list[Unit] = []
        """Virtual units that stand on leaves of this node."""
        self.parts: dict[PhysicalCell, None] = {}
        """Cells below this node that are in a free list."""
        self.rank = self.free = self.stamp = 0
        self.stale = False

    @property
    def children(self) -> tuple[PhysicalCell, ...]:
        """The cells one level below, in order; made on first use."""
        if not self._children and self.level > 1:
            self._make_parts(self, self.spec, 0)
        return self._children

    def _make_parts(self, cell: PhysicalCell, spec: model.PhysicalCell, first: int) -> None:
        """The cells below ``cell``, whose leaves start at ``first``."""
        chain, level = self.chain, cell.level - 1
        parts = []
        for child in spec.children:
            part = PhysicalCell(chain, level, cell, child.address, child.pinned_id)
            part.mask = self.shape.masks[level][first // chain.sizes[level]]
            chain.register(part)
            self._make_parts(part, child, first)
            first += chain.sizes[level]
            parts.append(part)
        cell.adopt(tuple(parts))

    def idle(self) -> int:
        """Healthy leaves that nobody runs on or keeps."""
        return self.mask & ~(self.guaranteed | self.oppo | self.reserved | self.broken)

    def devices(self, mask: int) -> tuple[int, ...]:
        """Device indexes of the leaves of ``mask``, in leaf order."""
        return tuple(self.indexes[leaf] for leaf in bits(mask))


def leaves_of(spec: model.PhysicalCell) -> Iterator[model.PhysicalCell]:
    """The leaves of a configured cell, depth first."""
    if not spec.children:
        yield spec
    for child in spec.children:
        yield from leaves_of(child)
