"""Makes the cluster do what the reference did, where it would have done something else itself."""

from __future__ import annotations

from pai_backend.scheduling import Ledger
from pai_backend.scheduling.cells.tree import Held, Spot, State
from pai_backend.scheduling.core.decision import Preempt
from pai_backend.scheduling.core.place import displace, make_plan
from pai_backend.scheduling.core.restore import find_unit
from pai_backend.scheduling.request import Group, GroupPlace, on_cells
from tests.conformance.hived.answer import Answer


class CannotFollow(Exception):
    """The recorded outcome is impossible in our state."""


def follow(cluster: Ledger, group: Group, theirs: Answer) -> None:
    """Bring the group where the reference brought it."""
    if theirs.kind not in ("bound", "preempt"):
        return
    for name in (*theirs.cancelled, group.name):
        if (held := cluster.groups.get(name)) is not None and held.state is State.PREEMPTING:
            cluster.release(name)
    for name in theirs.displaced:
        held = cluster.groups.get(name)
        if held is not None and not held.displaced_by:
            displace(cluster.holding, held, group.name)
    if theirs.kind == "bound":
        _bind(cluster, group, theirs)
    else:
        _reserve(cluster, group, theirs)
    cluster._wrote()


def _bind(cluster: Ledger, group: Group, theirs: Answer) -> None:
    owned = theirs.owned or ("",) * len(theirs.pods)
    pods = {
        ordinal: on_cells(node, devices, theirs.chain, kind)
        for ordinal, ((node, devices), kind) in enumerate(zip(theirs.pods, owned, strict=True))
    }
    try:
        restored = cluster.restore([GroupPlace(group, theirs.chain, pods)])
    except ValueError as error:
        raise CannotFollow(str(error)) from error
    if restored.displaced:
        raise CannotFollow(f"{restored.displaced} would lose their quota")


def _reserve(cluster: Ledger, group: Group, theirs: Answer) -> None:
    """Reserve the recorded leaves; the record does not say which quota cells pay, so each kind is tried."""
    chains = [chain for chain in cluster.chains.values() if _has(cluster, chain.name, theirs)]
    for chain in chains:
        quotas = cluster.owner(group.vc, chain, group.pinned_id)
        kinds = [] if quotas is None else list(dict.fromkeys(chain.types[root.level] for root in quotas.roots))
        with_spots = _spots(cluster, group, chain.name, kinds, theirs)
        if with_spots is not None:
            plan = make_plan(dict(enumerate(with_spots)))
            pods = {
                n: on_cells(node, devices, chain.name, spot.owned)
                for n, ((node, devices), spot) in enumerate(zip(theirs.pods, with_spots, strict=True))
            }
            names = tuple(held.group.name for held in plan.evicted)
            cluster.apply(
                Preempt(GroupPlace(group, chain.name, pods), plan=plan, version=cluster.version, victims=names)
            )
            return
    raise CannotFollow("no quota cell stands where the reference reserved")


def _has(cluster: Ledger, chain: str, theirs: Answer) -> bool:
    nodes = {node.name: node for node in cluster.chains[chain].nodes}
    return all(name in nodes and all(index in nodes[name].place for index in devices) for name, devices in theirs.pods)


def _spots(cluster: Ledger, group: Group, chain: str, kinds: list[str], theirs: Answer) -> list[Spot] | None:
    nodes = {node.name: node for node in cluster.chains[chain].nodes}
    stand_in = Held(group, [], State.PREEMPTING, 0)
    spots = []
    for name, devices in theirs.pods:
        node = nodes[name]
        mask = sum(1 << node.place[index] for index in devices)
        for kind in kinds:
            spot = Spot(node, mask, None, None, kind)
            found = find_unit(cluster, stand_in, spot)
            if found is not None:
                spot.unit, spot.cell = found
                cluster.binder.bind(*found)
                spots.append(spot)
                break
        else:
            return None
    return spots
