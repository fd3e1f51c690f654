"""Another configuration while jobs run: what would happen, and making it happen. No running group is ended by it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from pai_backend.scheduling.cells.tree import State
from pai_backend.scheduling.core.restore import restore
from pai_backend.scheduling.core.trees import Trees
from pai_backend.scheduling.request import GroupPlace


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


@dataclass(frozen=True, slots=True)
class Standing:
    """What is kept when the configuration changes, as plain values: groups by name in order of submission."""

    placements: tuple[GroupPlace, ...]
    displaced: dict[str, bool]
    """All groups; whether they run without a claim."""
    reserved: tuple[str, ...]
    bad: dict[str, list[int]]
    """All nodes; their devices that are not healthy."""


def standing(trees: Trees) -> Standing:
    """What there is."""
    groups = sorted(trees.groups.values(), key=lambda held: held.serial)
    return Standing(
        tuple(trees.placements().values()),
        {held.group.name: bool(held.displaced_by) for held in groups},
        tuple(held.group.name for held in groups if held.state is State.PREEMPTING),
        {name: [index for node in nodes for index in node.devices(node.broken)] for name, nodes in trees.nodes.items()},
    )


def refill(fresh: Trees, was: Standing, vcs: Mapping[str, str]) -> Effects:
    """Give empty trees of another configuration the health and the running groups that there were; what differs.

    ``vcs`` tells the virtual cluster of groups that are another one's in the new configuration.
    """
    for name, bad in was.bad.items():
        if bad:
            fresh.set_broken(name, healthy=True, bad_devices=bad)
    restored = restore(fresh, [_owned_by(each, vcs) for each in was.placements])
    displaced, kept, regained = [], [], []
    for name, was_displaced in was.displaced.items():
        after = fresh.groups.get(name)
        if after is None:
            continue
        if after.displaced_by and not was_displaced:
            displaced.append(name)
        elif was_displaced and not after.displaced_by:
            regained.append(name)
        elif name not in restored.missing:
            kept.append(name)
    return Effects(
        tuple(kept),
        tuple(displaced),
        tuple(regained),
        was.reserved,
        tuple(restored.missing.items()),
        tuple(name for name in fresh.nodes if name not in was.bad),
        tuple(name for name in was.bad if name not in fresh.nodes),
    )


def _owned_by(placement: GroupPlace, vcs: Mapping[str, str]) -> GroupPlace:
    group = placement.group
    return replace(placement, group=replace(group, vc=vcs.get(group.name, group.vc)))
