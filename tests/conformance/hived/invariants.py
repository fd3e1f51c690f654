"""The seven laws of the recorded data's README, on our side. The seventh, determinism, is playing a trace twice."""

from __future__ import annotations

from collections import Counter

from pai_backend.scheduling import Ledger
from pai_backend.scheduling.cells.tree import Held, State
from pai_backend.scheduling.core.decision import Bound, Decision, Preempt
from pai_backend.scheduling.request import Group
from tests.conformance.hived.answer import free_counts, used_leaves
from tests.support.cell_laws import audit


def after_operation(cluster: Ledger) -> list[str]:
    """Laws 1 to 4, and that every count is what the trees say."""
    broken = []
    try:
        audit(cluster)
    except AssertionError as law:
        broken.append(f"counts: {law}")
    broken += _one_group_a_leaf(cluster)
    for held in cluster.groups.values():
        broken += _whole_group(held)
    broken += _within_quota(cluster)
    broken += [
        f"4: chain {name} cannot keep its promises" for name, chain in cluster.chains.items() if not chain.is_safe()
    ]
    return broken


def _one_group_a_leaf(cluster: Ledger) -> list[str]:
    """1: a leaf runs one group; a preemptor overlaps with its own victims only."""
    runs: dict[tuple[int, int], Held] = {}
    broken = []
    for held in cluster.groups.values():
        if held.state is not State.PREEMPTING:
            for leaf in _leaves(held):
                if leaf in runs:
                    broken.append(f"1: {held.group.name} and {runs[leaf].group.name} run on the same leaf")
                runs[leaf] = held
    kept: dict[tuple[int, int], Held] = {}
    for held in cluster.groups.values():
        if held.state is State.PREEMPTING:
            for leaf in _leaves(held):
                if leaf in runs and held not in runs[leaf].pursuers:
                    broken.append(f"1: {held.group.name} keeps a leaf of {runs[leaf].group.name}, not its victim")
                if leaf in kept:
                    broken.append(f"1: {held.group.name} and {kept[leaf].group.name} keep the same leaf")
                kept[leaf] = held
    return broken


def _leaves(held: Held) -> list[tuple[int, int]]:
    return [(id(spot.node), leaf) for spot in held.spots for leaf in range(spot.node.leaves) if spot.mask >> leaf & 1]


def _whole_group(held: Held) -> list[str]:
    """2: all pods, each with its number of leaves, in one chain. Leaves that left the configuration are not counted."""
    if held.stored is None or held.stored.group is not held.group:
        return []
    broken = []
    first = 0
    for member in held.group.members:
        own = [pod for number, pod in held.stored.pods.items() if first <= number < first + member.pods]
        first += member.pods
        least = member.pods if member.min_pods is None else member.min_pods
        if not least <= len(own) <= member.pods or any(len(pod.cells) != member.leaves for pod in own):
            broken.append(f"2: {held.group.name} has pods {own}, asked {member}")
    if len({spot.node.chain.name for spot in held.spots}) > 1:
        broken.append(f"2: {held.group.name} lies in two chains")
    return broken


def _within_quota(cluster: Ledger) -> list[str]:
    """3: guaranteed groups use no more of a quota than there is, and a pinned cell only when they name it."""
    broken = []
    for (vc, _), quotas in (*cluster.quotas.items(), *cluster.pinned.items()):
        if sum(quotas.owned.values()) > quotas.leaves:
            broken.append(f"3: {vc} uses more than it owns in {quotas.chain.name}")
        for held in quotas.owners:
            if held.group.vc != vc or held.group.pinned_id != quotas.pinned_id:
                broken.append(f"3: {held.group.name} uses quota of {vc} {quotas.pinned_id}")
    for chain in cluster.chains.values():
        taken: Counter[int] = Counter()
        for quotas in cluster.quotas.values():
            if quotas.chain is chain:
                taken.update(root.level for root in quotas.roots if root.physical is not None)
        for level, count in taken.items():
            owned = sum(
                root.level == level
                for quotas in cluster.quotas.values()
                if quotas.chain is chain
                for root in quotas.roots
            )
            if count > owned:
                broken.append(f"3: {count} cells of level {level} in use, {owned} owned")
    return broken


def of_decision(cluster: Ledger, group: Group, decision: Decision) -> list[str]:
    """5 and 6: victims may be ended for this group, and nothing new is placed on bad leaves."""
    if not isinstance(decision, Bound | Preempt) or decision.plan is None:
        return []
    broken = []
    for spot in decision.plan.spots.values():
        if spot.mask & spot.node.broken:
            broken.append(f"6: {group.name} is placed on bad leaves of {spot.node.name}")
    for held in decision.plan.evicted:
        after = -1 if held in decision.plan.displaced else held.priority
        if after >= group.priority or (after >= 0 and held.group.vc != group.vc):
            broken.append(f"5: {held.group.name} may not be ended for {group.name}")
    if isinstance(decision, Preempt) != bool(decision.plan.evicted):
        broken.append(f"5: {group.name} is bound while somebody runs there")
    return broken


def when_empty(cluster: Ledger) -> list[str]:
    """6: with all groups gone and all nodes healthy, everything is free again. Leaves the cluster so."""
    for held in list(cluster.groups.values()):
        cluster.release(held.group.name)
    for name in cluster.nodes:
        cluster.set_node_health(name, healthy=True)
    broken = after_operation(cluster)
    fresh = type(cluster)(cluster.config)
    if free_counts(cluster) != free_counts(fresh):
        broken.append(f"6: free lists are {free_counts(cluster)}, at the start {free_counts(fresh)}")
    if any(used_leaves(cluster).values()):
        broken.append(f"6: leaves are still in use: {used_leaves(cluster)}")
    return broken
