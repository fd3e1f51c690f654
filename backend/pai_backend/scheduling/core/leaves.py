"""Which leaves of a node a pod takes when some of them are still in use: as few groups as possible have to go."""

from __future__ import annotations

from pai_backend.scheduling.cells.held import Held
from pai_backend.scheduling.cells.physical import Node


def choose_leaves(node: Node, room: int, count: int, gone: set[Held], avoid: int = 0) -> int:
    """``count`` leaves of ``room`` as a mask, 0 when there are not so many. Adds to ``gone`` who must go for it.
    Keeps away from leaves of ``avoid``.

    Idle leaves and those of groups that go anyway first. Then whole groups: opportunistic ones before guaranteed ones,
    the largest first, which is the smallest number of groups since no two share a leaf.
    """
    if room.bit_count() < count:
        return 0
    idle = room & node.idle()
    if idle.bit_count() >= count:
        return node.shape.choose(idle, count, avoid)
    holders = _holders(node, room)
    for held, mask in holders:
        if held in gone:
            idle |= mask
    blocks = [(held, mask & ~idle) for held, mask in holders if held not in gone]
    if idle.bit_count() < count:
        idle = _add_blocks(idle, blocks, count)
    chosen = node.shape.choose(idle, count)
    gone.update(held for held, mask in holders if mask & chosen)
    return chosen


def _holders(node: Node, room: int) -> list[tuple[Held, int]]:
    """Groups on these leaves; a preemptor only with leaves on which nothing runs any more."""
    running = [(held, mask & room) for held, mask in node.running.items() if mask & room]
    busy = node.guaranteed | node.oppo
    waiting = [(held, mask & room & ~busy) for held, mask in node.reserving.items() if mask & room & ~busy]
    return running + waiting


def _add_blocks(idle: int, blocks: list[tuple[Held, int]], count: int) -> int:
    """Add the leaves of the fewest groups that make ``count``: as few guaranteed ones as possible, then others."""

    def order(block: tuple[Held, int]) -> tuple[int, int]:
        return (-block[1].bit_count(), block[1] & -block[1])

    cheap = sorted((block for block in blocks if block[0].priority < 0), key=order)
    dear = sorted((block for block in blocks if block[0].priority >= 0), key=order)
    missing = count - idle.bit_count()
    from_cheap = sum(mask.bit_count() for _, mask in cheap)
    for _, mask in dear:
        if missing <= from_cheap:
            break
        idle |= mask
        missing -= mask.bit_count()
    for _, mask in cheap:
        if missing <= 0:
            break
        idle |= mask
        missing -= mask.bit_count()
    return idle
