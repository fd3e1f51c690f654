"""Another configuration while jobs run: what would happen, and making it happen. No running group is ended by it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from pai_backend.scheduling.cells.tree import State
from pai_backend.scheduling.core.restore import restore
from pai_backend.scheduling.core.trees import Trees
from pai_backend.scheduling.request import Placement


@dataclass(frozen=True, slots=True)
class Effects:
    """What a change of configuration does, by group name in order of submission."""

    kept: tuple[str, ...] = ()
    """They run on exactly as before."""
    displaced: tuple[str, ...] = ()
    """They run on, but their quota is gone: any group that is entitled to their leaves may end them."""
    regained: tuple[str, ...] = ()
    """They had been displaced and count on their quota again."""
    cancelled: tuple[str, ...] = ()
    """Preemptors that lose their reservation and are decided anew."""
    missing: tuple[tuple[str, int], ...] = ()
    """Groups that run on leaves which are no longer in the configuration, and on how many."""
    added_nodes: tuple[str, ...] = ()
    removed_nodes: tuple[str, ...] = ()


def refill(cluster: Trees, fresh: Trees, vcs: Mapping[str, str]) -> Effects:
    """Give fresh trees of another configuration the same health and the same running groups; what differs then.

    ``vcs`` tells the virtual cluster of groups that are another one's in the new configuration.
    """
    for name, nodes in cluster.nodes.items():
        bad = [index for node in nodes for index in node.devices(node.broken)]
        if bad and name in fresh.nodes:
            fresh.set_node_health(name, healthy=True, bad_devices=bad)
    groups = sorted(cluster.groups.values(), key=lambda held: held.serial)
    restored = restore(fresh, [_owned_by(each, vcs) for each in cluster.placements().values()])
    displaced, kept, regained = [], [], []
    for held in groups:
        name = held.group.name
        after = fresh.groups.get(name)
        if after is None:
            continue
        if after.displaced_by and not held.displaced_by:
            displaced.append(name)
        elif held.displaced_by and not after.displaced_by:
            regained.append(name)
        elif name not in restored.missing:
            kept.append(name)
    return Effects(
        tuple(kept),
        tuple(displaced),
        tuple(regained),
        tuple(held.group.name for held in groups if held.state is State.PREEMPTING),
        tuple(restored.missing.items()),
        tuple(name for name in fresh.nodes if name not in cluster.nodes),
        tuple(name for name in cluster.nodes if name not in fresh.nodes),
    )


def _owned_by(placement: Placement, vcs: Mapping[str, str]) -> Placement:
    group = placement.group
    return replace(placement, group=replace(group, vc=vcs.get(group.name, group.vc)))
