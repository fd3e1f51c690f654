"""A preemptor that had its place kept before a restart gets the same cells kept again."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pai_backend.scheduling.cells.held import Held, Spot, State
from pai_backend.scheduling.core.group import OPPORTUNISTIC, Placement
from pai_backend.scheduling.core.restore import find_unit

if TYPE_CHECKING:
    from pai_backend.scheduling.core.cluster import Cluster


def reserve(cluster: Cluster, placement: Placement) -> bool:
    """Keep these cells for the group, whoever still runs there; False, changing nothing, when that cannot be.

    To be called once all running groups have been restored.
    """
    spots = _locate(cluster, placement)
    if spots is None or placement.group.priority == OPPORTUNISTIC or placement.group.name in cluster.groups:
        return False
    cluster.version += 1
    held = cluster.enroll(placement, spots, [pod.ordinal for pod in placement.pods])
    held.state = State.PREEMPTING
    done: list[Spot] = []
    for spot in spots:
        unit = find_unit(cluster, held, spot)
        if unit is None or spot.node.reserved & spot.mask:
            break
        spot.unit, spot.cell = unit
        cluster.holding.reserve(held, spot)
        done.append(spot)
        if not spot.node.chain.is_safe():
            break
    else:
        _pursue(held)
        return True
    for spot in reversed(done):
        cluster.holding.cancel(held, spot)
    del cluster.groups[placement.group.name]
    return False


def _pursue(held: Held) -> None:
    """Whoever runs there is asked to end."""
    for spot in held.spots:
        for other, mask in spot.node.running.items():
            if mask & spot.mask:
                held.pursue(other)


def _locate(cluster: Cluster, placement: Placement) -> list[Spot] | None:
    """The leaves of each pod; None when the configuration no longer has them all."""
    spots = []
    for pod in placement.pods:
        every = cluster.nodes.get(pod.node, ())
        nodes = [node for node in every if placement.group.spread or node.chain.name == placement.chain]
        nodes.sort(key=lambda node: any(index not in node.place for index in pod.devices))
        if not nodes or any(index not in nodes[0].place or not pod.owned for index in pod.devices):
            return None
        mask = 0
        for index in pod.devices:
            mask |= 1 << nodes[0].place[index]
        spots.append(Spot(nodes[0], mask, None, None, pod.owned))
    return spots
