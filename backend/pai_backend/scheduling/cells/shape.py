"""Which leaves of a node form which cell, as bit masks; the choice of leaves for one task.

The reference tries combinations of leaves, which is exponential. Here the smallest cell with enough leaves is found by
counting bits, which is linear in the number of cells of a node and reaches the same lowest common ancestor.
"""

from __future__ import annotations

from collections.abc import Sequence


class Shape:
    """The part of a chain at and below the node level; one object for all its nodes.

    ``masks[l]`` are the cells of level ``l`` (1 is the leaf), depth first; ``sizes[l]`` is how many leaves one has.
    """

    __slots__ = ("full", "leaves", "masks", "sizes")

    def __init__(self, children: Sequence[int]) -> None:
        """``children[i]`` children has a cell of level ``i + 2``; empty for a node that is a single leaf."""
        self.sizes = [0, 1]
        for count in children:
            self.sizes.append(self.sizes[-1] * count)
        self.leaves = self.sizes[-1]
        self.full = (1 << self.leaves) - 1
        self.masks: list[tuple[int, ...]] = [()]
        for size in self.sizes[1:]:
            one = (1 << size) - 1
            self.masks.append(tuple(one << start for start in range(0, self.leaves, size)))

    def level_of(self, mask: int) -> int:
        """The level of the lowest cell that contains all leaves of ``mask``."""
        for level in range(1, len(self.sizes)):
            size = self.sizes[level]
            low = (mask & -mask).bit_length() - 1
            if mask.bit_length() <= (low // size + 1) * size:
                return level
        return len(self.sizes) - 1

    def choose(self, free: int, count: int, avoid: int = 0) -> int:
        """``count`` leaves of ``free`` in the lowest possible cell; 0 when there are not so many.

        Among equal cells the one furthest from ``avoid`` (leaves of opportunistic tasks, which are better left
        together), then the first. Within the cell the lowest leaves.
        """
        if free.bit_count() < count:
            return 0
        if count == 1 and not avoid:
            return free & -free
        for level in range(1, len(self.sizes)):
            if self.sizes[level] < count:
                continue
            found = [mask for mask in self.masks[level] if (free & mask).bit_count() >= count]
            if found:
                best = (
                    found[0] if not avoid or len(found) == 1 else min(found, key=lambda mask: self._near(mask, avoid))
                )
                return lowest(free & best, count)
        return 0

    def _near(self, mask: int, avoid: int) -> tuple[int, ...]:
        """How much of ``avoid`` shares ever smaller cells with ``mask``, from the node's children down."""
        near = []
        for level in range(len(self.sizes) - 2, 0, -1):
            size = self.sizes[level]
            cell = self.masks[level][((mask & -mask).bit_length() - 1) // size]
            if cell.bit_count() < mask.bit_count():
                break
            near.append((cell & avoid).bit_count())
        return tuple(near)


def lowest(mask: int, count: int) -> int:
    """The ``count`` lowest bits of ``mask``, which has as many."""
    rest = mask
    for _ in range(count):
        rest &= rest - 1
    return mask ^ rest


def bits(mask: int) -> tuple[int, ...]:
    """The positions of the bits, ascending."""
    found = []
    while mask:
        low = mask & -mask
        found.append(low.bit_length() - 1)
        mask ^= low
    return tuple(found)
