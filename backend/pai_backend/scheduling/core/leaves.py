"""Which leaves of a node pods take when some of them are still in use: as few groups as possible have to go."""

from __future__ import annotations

from pai_backend.scheduling.cells.tree import Held, Node


def make_room(node: Node, room: int, count: int, gone: set[Held]) -> int:
    """At least ``count`` leaves of ``room`` as a mask, at the price of the fewest groups; 0 when there are not so many.

    Idle leaves first, those of groups that go anyway, then whole groups: opportunistic ones before guaranteed ones, and
    of those the largest, unless a smaller one is enough. That is the smallest number of groups, since no two share a
    leaf. Adds to ``gone`` who must go.
    """
    if room.bit_count() < count:
        return 0
    idle = room & node.idle()
    if idle.bit_count() >= count:
        return idle
    holders = _holders(node, room)
    for held, mask in holders:
        if held in gone:
            idle |= mask
    blocks = [(held, mask) for held, mask in holders if held not in gone]
    missing = count - idle.bit_count()
    cheap = [block for block in blocks if block[0].priority < 0]
    dear = [block for block in blocks if block[0].priority >= 0]
    from_dear = _fewest(dear, missing - sum(mask.bit_count() for _, mask in cheap))
    missing -= sum(mask.bit_count() for _, mask in from_dear)
    for held, mask in (*from_dear, *_fewest(cheap, missing)):
        idle |= mask
        gone.add(held)
    return idle


def _holders(node: Node, room: int) -> list[tuple[Held, int]]:
    """Groups on these leaves; a preemptor only with leaves on which nothing runs any more."""
    running = [(held, mask & room) for held, mask in node.running.items() if mask & room]
    busy = node.guaranteed | node.oppo
    waiting = [(held, mask & room & ~busy) for held, mask in node.reserving.items() if mask & room & ~busy]
    return sorted(running + waiting, key=lambda block: block[1] & -block[1])


def _fewest(blocks: list[tuple[Held, int]], missing: int) -> list[tuple[Held, int]]:
    """The fewest blocks with ``missing`` leaves in all: the largest ones, and last the first that is enough."""
    left = list(blocks)
    taken = []
    while missing > 0 and left:
        enough = (block for block in left if block[1].bit_count() >= missing)
        block = next(enough, None) or max(left, key=lambda each: each[1].bit_count())
        left.remove(block)
        taken.append(block)
        missing -= block[1].bit_count()
    return taken
