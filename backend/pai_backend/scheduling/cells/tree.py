"""The trees: real cells and quota cells, what stands on what, and which group holds which leaves.

They are one structure whose parts refer to each other, so that their types stand together.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from pai_backend.scheduling.cells.buddy import Buddy
from pai_backend.scheduling.cells.ranking import Ranking
from pai_backend.scheduling.cells.shape import Shape, bits
from pai_backend.scheduling.config import model
from pai_backend.scheduling.request import Group, GroupPlace


class State(StrEnum):
    """``preempting``: keeps a reservation while its victims end. ``being-preempted``: asked to end."""

    ALLOCATED = "allocated"
    PREEMPTING = "preempting"
    BEING_PREEMPTED = "being-preempted"


@dataclass(slots=True, eq=False)
class Spot:
    """Where one pod is: leaves ``mask`` of ``node``, through ``unit`` on ``cell``; both None when opportunistic.

    ``owned`` is the type of the quota cell that pays; it stays known while a group is lazily preempted.
    """

    node: Node
    mask: int
    unit: QuotaUnit | None
    cell: PhysicalCell | None
    owned: str = ""


@dataclass(slots=True, eq=False)
class Held:
    """A group with a place. Two are equal only if they are the same object; dicts keyed by it keep insertion order."""

    group: Group
    spots: list[Spot]
    state: State
    serial: int
    """Order of submission; recovery replays it."""
    ordinals: list[int] = field(default_factory=list)
    """The pod number of each spot."""
    victims: list[Held] = field(default_factory=list)
    """Who has to end for it, while it is a preemptor."""
    pursuers: dict[Held, None] = field(default_factory=dict)
    """Preemptors that wait for it to end."""
    displaced_by: str = ""
    """Who lazily preempted it: it runs on as an opportunistic group. Empty when not displaced."""
    stored: GroupPlace | None = None
    """Its place as decided. Kept as it was, also where leaves left the configuration: they run on, uncounted."""

    @property
    def priority(self) -> int:
        """The priority that counts now: -1 while displaced."""
        return -1 if self.displaced_by else self.group.priority

    @property
    def chain(self) -> str:
        """The chain it lies in; "" when all of its leaves left the configuration."""
        return self.spots[0].node.chain.name if self.spots else ""


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

    def enter(self, position: int) -> None:
        """It is in the free list of its level from now on, at this place."""
        self.position = position
        if self.parent is not None:
            self.parent.listed += 1
        if self.node is not None and self.node is not self:
            self.node.free_below[self] = None

    def leave(self) -> None:
        """It is in no free list any more."""
        self.position = -1
        if self.parent is not None:
            self.parent.listed -= 1
        if self.node is not None and self.node is not self:
            del self.node.free_below[self]

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

    The cells below it become objects only when they are asked for: most nodes are never taken apart.

    ``guaranteed`` and ``oppo`` leaves run tasks; ``reserved`` ones are kept for a preemptor and may still run its
    victims; ``broken`` ones are not healthy. ``running`` and ``reserving`` say which group holds which leaves.
    ``rank``, ``free``, ``stamp``, ``stale`` belong to the ranking in which opportunistic groups look for nodes.
    """

    __slots__ = (
        "broken",
        "free",
        "free_below",
        "guaranteed",
        "indexes",
        "name",
        "oppo",
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

    def __init__(self, chain: Chain, parent: PhysicalCell | None, spec: model.CellSpec) -> None:
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
        self.units: list[QuotaUnit] = []
        """Virtual units that stand on leaves of this node."""
        self.free_below: dict[PhysicalCell, None] = {}
        """Cells below this node that are in a free list."""
        self.rank = self.free = self.stamp = 0
        self.stale = False

    @property
    def children(self) -> tuple[PhysicalCell, ...]:
        """The cells one level below, in order; made on first use."""
        if not self._children and self.level > 1:
            self._make_children(self, self.spec, 0)
        return self._children

    def _make_children(self, cell: PhysicalCell, spec: model.CellSpec, first: int) -> None:
        """The cells below ``cell``, whose leaves start at ``first``."""
        chain, level = self.chain, cell.level - 1
        made = []
        for child in spec.children:
            part = PhysicalCell(chain, level, cell, child.address, child.pinned_id)
            part.mask = self.shape.masks[level][first // chain.sizes[level]]
            chain.register(part)
            self._make_children(part, child, first)
            first += chain.sizes[level]
            made.append(part)
        cell.adopt(tuple(made))

    def idle(self) -> int:
        """Healthy leaves on which no group runs, and that none reserves."""
        return self.mask & ~(self.guaranteed | self.oppo | self.reserved | self.broken)

    def devices(self, mask: int) -> tuple[int, ...]:
        """Device indexes of the leaves of ``mask``, in leaf order."""
        return tuple(self.indexes[leaf] for leaf in bits(mask))


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


class QuotaUnit(VirtualCell):
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


class Chain:
    """One tree of cell types and all its cells. Levels are numbered from 1, the leaf; ``types[level]`` names them."""

    def __init__(
        self, name: str, levels: Sequence[str], counts: Sequence[int], node_level: int, vcs: Collection[str]
    ) -> None:
        """``counts[i]`` children has a cell of level ``i + 2``. Its cells are made in ``build``."""
        self.name = name
        self.types = ("", *levels)
        self.leaf_type = levels[0]
        self.level_of = {kind: level for level, kind in enumerate(levels, 1)}
        self.sizes = [0, 1]
        for count in counts:
            self.sizes.append(self.sizes[-1] * count)
        self.node_level = node_level
        self.shape = Shape(counts[: node_level - 1])
        self.cells: list[PhysicalCell] = []
        self.by_level: list[list[PhysicalCell]] = [[] for _ in self.sizes]
        self.nodes: list[Node] = []
        self.tops: tuple[PhysicalCell, ...] = ()
        self.free = [dict.fromkeys(vcs, 0) for _ in self.sizes]
        """Per level and virtual cluster, quota cells that stand on nothing yet; pinned ones do not count."""
        self.promised = [0] * len(self.sizes)
        """The sum of ``free`` per level."""
        self.broken = 0
        """Leaves that are not healthy; while there are none, health costs nothing."""
        self.oppo = 0
        """Leaves that run opportunistic groups."""
        self.reserved = 0
        """Leaves that are kept for preemptors."""
        self.buddy: Buddy[PhysicalCell]
        self.ranking: Ranking[Node]

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
        self.units: list[QuotaUnit] = []
        self.ranking: Ranking[QuotaUnit]
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


def units_of(cell: VirtualCell) -> Iterator[QuotaUnit]:
    """The units in a virtual cell, in order."""
    if isinstance(cell, QuotaUnit):
        yield cell
    for child in cell.children:
        yield from units_of(child)


def leaves_of(spec: model.CellSpec) -> Iterator[model.CellSpec]:
    """The leaves of a configured cell, depth first."""
    if not spec.children:
        yield spec
    for child in spec.children:
        yield from leaves_of(child)


def ancestors(cell: PhysicalCell) -> Iterator[Wide]:
    """The cells above the node level that contain this one."""
    parent = cell.parent
    while parent is not None:
        if isinstance(parent, Wide):
            yield parent
        parent = parent.parent
