"""Lazily preempted groups get their claim on the quota back as soon as there is room for it, where they are."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pai_backend.scheduling.cells.held import Held, State
from pai_backend.scheduling.core.group import OPPORTUNISTIC
from pai_backend.scheduling.core.restore import claim

if TYPE_CHECKING:
    from pai_backend.scheduling.core.cluster import Cluster


def upgrade(cluster: Cluster) -> tuple[str, ...]:
    """Names of displaced groups that count on their quota again; oldest first, nobody loses anything for it.

    A group is upgraded as a whole: each of its pods must find a free quota cell that may stand where the pod runs, and
    all promises to others must still hold.
    """
    found = [held for held in cluster.groups.values() if _may_upgrade(held)]
    return tuple(held.group.name for held in sorted(found, key=lambda held: held.serial) if claim(cluster, held))


def _may_upgrade(held: Held) -> bool:
    return (
        bool(held.displaced_by and held.spots)
        and held.state is State.ALLOCATED
        and held.group.priority != OPPORTUNISTIC
        and all(spot.owned and not spot.mask & spot.node.reserved for spot in held.spots)
    )
