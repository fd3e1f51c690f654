"""Free physical cells of one chain: split on demand, merged when all buddies are free again.

Each level has a list. Taking a cell inside a larger free one splits that one: all children enter the list below and the
taken one leaves it, the last of the list moving into its place. The order matters only for which of several equal cells
is found first, and is the reference's.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from heapq import heapify, heappop, heappush
from typing import Generic, Protocol, Self, TypeVar

from pai_backend.model.errors import Bug
from pai_backend.scheduling.cells.journal import Journal


class Listed(Protocol):
    """What free lists know of a cell; see :class:`~pai_backend.scheduling.cells.tree.T`."""

    level: int
    leaves: int
    number: int
    position: int
    listed: int
    split: bool

    @property
    def parent(self) -> Self | None:
        """The cell one level above."""

    @property
    def children(self) -> tuple[Self, ...]:
        """The cells one level below, in order."""

    @property
    def virtual(self) -> object | None:
        """What stands on it."""

    @property
    def opportunistic(self) -> int:
        """Leaves below that run opportunistic tasks."""

    @property
    def bad(self) -> int:
        """Leaves below that are not healthy."""

    def enter(self, position: int) -> None:
        """It is in the free list of its level from now on, at this place."""

    def leave(self) -> None:
        """It is in no free list any more."""


T = TypeVar("T", bound=Listed)
SLACK = 64
"""How many entries of a heap may be outdated, apart from as many as there are cells."""
_NUMBER_BITS = 24
_NUMBER = (1 << _NUMBER_BITS) - 1


class Buddy(Generic[T]):
    """The free lists of a chain.

    ``left[l]`` counts the cells of level ``l`` that are free or can be split off; ``bad[l]`` lists those of them
    that are not healthy. Level 0 is unused.
    """

    def __init__(
        self,
        tops: Sequence[T],
        sizes: Sequence[int],
        cells: Sequence[T],
        promises_kept: Callable[[list[int], int], bool],
        journal: Journal,
    ) -> None:
        """``cells`` are all cells by number, some of which are made later; ``promises_kept`` says whether so many free
        cells per level are enough for all promises but one, of the level that is given as well.
        """
        self.sizes = sizes
        self.cells = cells
        self.promises_kept = promises_kept
        self.journal = journal
        levels = len(sizes)
        self.lists: list[list[T]] = [[] for _ in range(levels)]
        self.left = [0] * levels
        self.bad: list[list[T]] = [[] for _ in range(levels)]
        self._heaps: list[list[int]] = [[] for _ in range(levels)]
        """Per level, (opportunistic leaves, position, number) of cells; an entry that is no longer true is dropped."""
        for top in tops:
            self.append(top)
        for level in range(levels - 1, 0, -1):
            self.left[level] = sum(top.leaves // sizes[level] for top in tops)

    # -- the lists -------------------------------------------------------------------------------------------------

    def append(self, cell: T) -> None:
        """Put a cell at the end of its list."""
        cells = self.lists[cell.level]
        cell.enter(len(cells))
        cells.append(cell)
        self.rate(cell)
        self.journal.note(self._drop_last, cell)

    def _drop_last(self, cell: T) -> None:
        self.lists[cell.level].pop()
        cell.leave()

    def remove(self, cell: T) -> None:
        """Take a cell out of its list; the last one takes its place."""
        cells = self.lists[cell.level]
        at = cell.position
        last = cells.pop()
        if last is not cell:
            cells[at] = last
            last.position = at
            self.rate(last)
        cell.leave()
        self.journal.note(self._insert, cell, at)

    def _insert(self, cell: T, at: int) -> None:
        cells = self.lists[cell.level]
        if at == len(cells):
            cells.append(cell)
        else:
            last = cells[at]
            last.position = len(cells)
            cells.append(last)
            self.rate(last)
            cells[at] = cell
        cell.enter(at)
        self.rate(cell)

    def rate(self, cell: T) -> None:
        """The cell's place or its opportunistic load changed: candidates are tried by these two."""
        heap, cells = self._heaps[cell.level], self.lists[cell.level]
        heappush(heap, _key(cell))
        if len(heap) > 2 * len(cells) + SLACK:
            # What is tried and undone enters the same cells again and again.
            heap[:] = map(_key, cells)
            heapify(heap)

    # -- taking and giving back ------------------------------------------------------------------------------------

    def listed(self, cell: T) -> T | None:
        """The free cell that ``cell`` is or lies in; None when it is taken or split."""
        found: T | None = cell
        while found is not None and found.position < 0:
            if found.split or found.virtual is not None:
                return None
            found = found.parent
        return found

    def take(self, cell: T) -> None:
        """Take a free cell, splitting what it lies in. Raises Bug when it is not free."""
        if self.listed(cell) is None:
            raise Bug(f"{cell} is not free")
        self._count(cell, -1)
        at: T | None = cell
        while at is not None:
            parent = at.parent
            opened = parent is not None and not parent.split
            if parent is not None and opened:
                for child in parent.children:
                    self.append(child)
                self._set_split(parent, split=True)
            self.remove(at)
            at = parent if opened else None

    def put(self, cell: T) -> None:
        """Give a taken cell back and merge upwards as long as all buddies are free."""
        at = cell
        while at.parent is not None and at.parent.listed == len(at.parent.children) - 1:
            parent = at.parent
            for buddy in parent.children:
                if buddy is not at:
                    self.remove(buddy)
            self._set_split(parent, split=False)
            at = parent
        self.append(at)
        self._count(cell, 1)

    def _set_split(self, cell: T, *, split: bool) -> None:
        self.journal.set(cell, "split", split)
        sign = -1 if split else 1
        self._add_left(cell.level, sign)
        if cell.bad:
            self.note_bad(cell, sign)

    def _count(self, cell: T, sign: int) -> None:
        """The cell and all below it leave (-1) or enter (1) what is left."""
        sizes = self.sizes
        for level in range(1, cell.level + 1):
            self._add_left(level, sign * (cell.leaves // sizes[level]))
        if cell.bad:
            for each in bad_within(cell):
                self.note_bad(each, sign)

    def _add_left(self, level: int, delta: int) -> None:
        self.left[level] += delta
        self.journal.note(self._add_left, level, -delta)

    def note_bad(self, cell: T, sign: int) -> None:
        """A bad cell enters (1) or leaves (-1) what is free."""
        cells = self.bad[cell.level]
        if sign > 0:
            cells.append(cell)
            self.journal.note(cells.pop)
            return
        at = cells.index(cell)
        last = cells.pop()
        if last is not cell:
            cells[at] = last
        self.journal.note(self._undo_bad, cell, at)

    def _undo_bad(self, cell: T, at: int) -> None:
        cells = self.bad[cell.level]
        if at == len(cells):
            cells.append(cell)
        else:
            cells.append(cells[at])
            cells[at] = cell

    # -- finding ---------------------------------------------------------------------------------------------------

    def first(self, level: int, fits: Callable[[T], bool], idle: int = 0) -> T | None:
        """The first cell of ``level`` that fits and that may be taken without breaking anyone's promise.

        Looks where buddy allocation would: in the lowest list that has cells, then, as far as the promises allow, in
        those above. Within a list, fewest opportunistic leaves first. What fits has ``idle`` unused leaves;
        so the look ends where opportunistic groups leave fewer.
        """
        start = level
        while start < len(self.lists) - 1 and not self.lists[start]:
            start += 1
        for source in range(start, len(self.lists)):
            if source > start and not self.safe(level, source):
                continue
            found = self._first_in(source, level, fits, idle)
            if found is not None:
                return found
        return None

    def _first_in(self, source: int, level: int, fits: Callable[[T], bool], idle: int) -> T | None:
        most = self.sizes[source] - idle
        heap = self._heaps[source]
        seen: list[int] = []
        found = None
        while heap and found is None:
            key = heap[0]
            cell = self.cells[key & _NUMBER]
            position = key >> _NUMBER_BITS & _NUMBER
            if cell.position != position or cell.opportunistic != key >> 2 * _NUMBER_BITS:
                heappop(heap)
                continue
            if cell.opportunistic > most:
                break
            found = _descend(cell, level, fits)
            if found is None:
                seen.append(heappop(heap))
        for key in seen:
            heappush(heap, key)
        return found

    def every(self, level: int) -> Iterator[T]:
        """All cells of ``level`` that may be taken, best first; the caller decides how many to look at."""
        start = level
        while start < len(self.lists) - 1 and not self.lists[start]:
            start += 1
        for source in range(start, len(self.lists)):
            if source > start and not self.safe(level, source):
                continue
            for cell in sorted(self.lists[source], key=lambda each: (each.opportunistic, each.position)):
                yield from below(cell, level)

    def safe(self, level: int, source: int) -> bool:
        """Whether one cell of ``level`` may come out of the list of ``source`` with all other promises kept."""
        free = [len(cells) for cells in self.lists]
        if not free[source]:
            return False
        sizes = self.sizes
        free[source] -= 1
        for at in range(source - 1, level - 1, -1):
            free[at] += sizes[at + 1] // sizes[at] - 1
        return self.promises_kept(free, level)


def _key(cell: Listed) -> int:
    """Sorts by opportunistic leaves, then by place in the list."""
    return (cell.opportunistic << _NUMBER_BITS | cell.position) << _NUMBER_BITS | cell.number


def _descend(cell: T, level: int, fits: Callable[[T], bool]) -> T | None:
    """The first cell of ``level`` in ``cell`` that fits, by fewest opportunistic leaves at every step."""
    if cell.level == level:
        return cell if fits(cell) else None
    children = cell.children
    if cell.opportunistic:
        children = tuple(sorted(children, key=lambda each: each.opportunistic))
    for child in children:
        found = _descend(child, level, fits)
        if found is not None:
            return found
    return None


def below(cell: T, level: int) -> Iterator[T]:
    """All cells of ``level`` in ``cell``, by fewest opportunistic leaves at every step."""
    if cell.level == level:
        yield cell
        return
    for child in sorted(cell.children, key=lambda each: each.opportunistic):
        yield from below(child, level)


def bad_within(cell: T) -> Iterator[T]:
    """The cell, when bad, and the bad cells below it, top down."""
    if cell.bad:
        yield cell
        for child in cell.children:
            yield from bad_within(child)
