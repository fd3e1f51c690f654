"""The cluster: decides where groups go and keeps what was decided. Pure: no clock, no I/O, no randomness."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager

from pai_backend.model.errors import Bug, Fault, InvalidParameters
from pai_backend.scheduling.cells.binding import Binder
from pai_backend.scheduling.cells.build import Chain, Quotas
from pai_backend.scheduling.cells.health import Health
from pai_backend.scheduling.cells.held import Held, Spot, State
from pai_backend.scheduling.cells.holding import Holding
from pai_backend.scheduling.cells.journal import Journal
from pai_backend.scheduling.cells.physical import Node, PhysicalCell
from pai_backend.scheduling.config.model import ClusterConfig
from pai_backend.scheduling.core.diagnose import diagnose
from pai_backend.scheduling.core.group import Bound, Decision, Group, Placement, PodPlace, Preempt, Wait
from pai_backend.scheduling.core.place import Option, Planner, displace
from pai_backend.scheduling.core.request import check_group
from pai_backend.scheduling.core.scope import parts_of
from pai_backend.scheduling.core.search import Limits, Plan


class Outdated(Exception):
    """The cluster changed since the decision was made: ask again."""


class Cluster:
    """All cells of a configuration and all groups that hold some.

    ``down`` names nodes that are bad from the start. Deciding (:meth:`try_place`) changes nothing; :meth:`commit` does.
    """

    def __init__(self, config: ClusterConfig, down: Collection[str] = ()) -> None:
        self.config = config
        self.journal = Journal()
        self.chains = {name: Chain(config, name, self.journal) for name in config.chains()}
        self.quotas: dict[tuple[str, str], Quotas] = {}
        """(virtual cluster, chain) -> quota."""
        self.pinned: dict[tuple[str, str], Quotas] = {}
        """(virtual cluster, pinned id) -> quota."""
        self.nodes: dict[str, list[Node]] = {}
        """Node name -> its cells in each chain."""
        self.groups: dict[str, Held] = {}
        """Groups with a place or a reservation, by name, in order of submission."""
        self.version = 0
        """Grows with every change; a decision is good for the version it was made on."""
        self._serial = 0
        self._suggested: tuple[frozenset[str] | None, Limits | None] = (None, None)
        self.binder = Binder(self.journal)
        self._build()
        self.health = Health(self.binder, self.quotas, self.journal)
        self.holding = Holding(self.binder, self.health, self.journal)
        for name in down:
            self.set_node_health(name, healthy=False)

    def _build(self) -> None:
        """Node table, quotas, and pinned cells bound to their owners for good."""
        for chain in self.chains.values():
            for node in chain.nodes:
                self.nodes.setdefault(node.name, []).append(node)
        pins = {cell.pinned_id: cell for chain in self.chains.values() for cell in chain.cells if cell.pinned_id}
        for cluster in self.config.virtual_clusters.values():
            number = 0
            for quota in cluster.quotas:
                chain = self.chains[quota.chain]
                level = chain.level_of[quota.type]
                owner = self.quotas.setdefault((cluster.name, quota.chain), Quotas(cluster.name, chain))
                for _ in range(quota.number):
                    owner.add(level, f"{cluster.name}/{number}")
                    number += 1
                chain.free[level][cluster.name] += quota.number
                chain.promised[level] += quota.number
            for name in cluster.pinned:
                cell = pins[name]
                own = self.pinned[cluster.name, name] = Quotas(cluster.name, cell.chain, name)
                own.add(cell.level, f"{cluster.name}/{number}")
                number += 1
        for each in (*self.quotas.values(), *self.pinned.values()):
            each.finish(self.journal)
            if each.pinned_id:
                self.binder.pin(each.roots[0], pins[each.pinned_id])

    # -- deciding --------------------------------------------------------------------------------------------------

    def try_place(self, group: Group, suggested: Collection[str] | None = None) -> Decision:
        """Where the group goes, whom it waits for to end, or why it waits. Changes nothing.

        ``suggested`` are the nodes that CPU, memory, ports and selectors allow; None allows all. A group that has a
        reservation keeps it as long as it is good. Raises InvalidParameters or NoVirtualCluster for a request that can
        never be right, and InvalidParameters for a group that already has a place.
        """
        options = check_group(self, group)
        limits = None if group.ignore_suggested else self._limits(suggested)
        self._settle(options)
        held = self.groups.get(group.name)
        if held is None:
            return self._decide(group, options, limits)
        if held.state is not State.PREEMPTING:
            fault = Fault(path="$.name", message=f"group {group.name} already has a place", hint="Release it first.")
            raise InvalidParameters(fault.message, errors=[fault])
        if _still_good(held, limits):
            plan = Plan(dict(enumerate(held.spots)), evicted=_in_the_way(held))
            return self._answer(group, plan)
        with self.journal.trial():
            self._cancel(held)
            self._settle(options)
            return self._decide(group, options, limits)

    def _decide(self, group: Group, options: Sequence[Option], limits: Limits | None) -> Decision:
        plan = self._idle(group, options, limits)
        if plan is None:
            least = [member.pods if member.min_pods is None else member.min_pods for member in group.members]
            plan = Planner(self.holding, group, parts_of(group, least), limits).evicting(options)
        if plan is None:
            return Wait(diagnose(self, group, options, limits))
        return self._answer(group, plan)

    def _idle(self, group: Group, options: Sequence[Option], limits: Limits | None) -> Plan | None:
        """A place without evicting anyone, for as many pods as fit when the group is elastic."""
        for counts in _sizes(group):
            planner = Planner(self.holding, group, parts_of(group, counts), limits)
            for option in options:
                plan = planner.idle(option)
                if plan is not None:
                    return plan
        return None

    def try_grow(self, name: str, suggested: Collection[str] | None = None) -> Bound | Wait:
        """More pods for an elastic group that runs with fewer than it asked for; never evicts. Changes nothing.

        The answer's placement has all pods. Raises InvalidParameters when the group does not run or is complete.
        """
        held = self.groups.get(name)
        missing = [] if held is None else _missing_pods(held)
        if held is None or held.state is not State.ALLOCATED or held.displaced_by or not missing:
            fault = Fault(path="$.name", message=f"group {name} cannot grow", hint="Only a running elastic group can.")
            raise InvalidParameters(fault.message, errors=[fault])
        options = [option for option in check_group(self, held.group) if option.chain.name == held.chain]
        limits = _growth_limits(held, None if held.group.ignore_suggested else self._limits(suggested))
        self._settle(options)
        for count in range(len(missing), 0, -1):
            parts = _growth_parts(held, missing[:count])
            for option in options:
                plan = Planner(self.holding, held.group, parts, limits).idle(option)
                if plan is not None:
                    plan.spots = dict(zip(held.ordinals, held.spots, strict=True)) | plan.spots
                    answer = self._answer(held.group, plan)
                    assert isinstance(answer, Bound)
                    return answer
        return Wait(diagnose(self, held.group, options, limits))

    def _answer(self, group: Group, plan: Plan) -> Bound | Preempt:
        plan.version = self.version
        ordinals = sorted(plan.spots)
        spots = [plan.spots[ordinal] for ordinal in ordinals]
        pods = tuple(
            PodPlace(ordinal, spot.node.name, spot.node.devices(spot.mask), spot.owned)
            for ordinal, spot in zip(ordinals, spots, strict=True)
        )
        placement = Placement(group, spots[0].node.chain.name, pods)
        displaced = tuple(held.group.name for held in plan.displaced)
        cancelled = tuple(held.group.name for held in plan.cancelled if held.group.name != group.name)
        if plan.evicted:
            victims = tuple(held.group.name for held in plan.evicted)
            return Preempt(placement, victims, displaced, cancelled, plan)
        return Bound(placement, displaced, cancelled, plan)

    # -- changing --------------------------------------------------------------------------------------------------

    def commit(self, decision: Bound | Preempt) -> None:
        """Carry out a decision: the group holds its place, or reserves it while its victims end.

        Raises :class:`Outdated`, and changes nothing, when the cluster changed since the decision was made.
        """
        plan, group = decision.plan, decision.placement.group
        if plan is None or plan.version != self.version:
            raise Outdated(f"the cluster changed since {group.name} was decided")
        self.version += 1
        held = self.groups.get(group.name)
        if held is not None and held.state is State.PREEMPTING:
            if held.spots == list(plan.spots.values()):
                self._advance(held, plan)
                return
            self._cancel(held)
            held = None
        for other in plan.cancelled:
            if other.group.name in self.groups:
                self._cancel(other)
        for other in plan.displaced:
            displace(self.holding, other, group.name)
        self._hold(decision.placement, held, plan)

    def _hold(self, placement: Placement, held: Held | None, plan: Plan) -> None:
        """Take the plan's leaves: for good, or as a reservation."""
        ordinals = sorted(plan.spots)
        if held is not None:
            held.stored = placement
            for ordinal in ordinals:
                if ordinal not in held.ordinals:
                    held.ordinals.append(ordinal)
                    held.spots.append(plan.spots[ordinal])
                    self.holding.run(held, plan.spots[ordinal])
            return
        spots = [plan.spots[ordinal] for ordinal in ordinals]
        held = self.enroll(placement, spots, ordinals)
        held.state = State.PREEMPTING if plan.evicted else State.ALLOCATED
        for spot in spots:
            if plan.evicted:
                self.holding.reserve(held, spot)
            else:
                self.holding.run(held, spot)
        for victim in plan.evicted:
            victim.state = State.BEING_PREEMPTED
            victim.pursuers[held] = None

    def enroll(self, placement: Placement, spots: list[Spot], ordinals: list[int]) -> Held:
        """A record for a group that is about to hold these spots; for :meth:`commit` and recovery only."""
        self._serial += 1
        held = Held(placement.group, spots, State.ALLOCATED, self._serial, ordinals, stored=placement)
        self.groups[placement.group.name] = held
        return held

    def _advance(self, held: Held, plan: Plan) -> None:
        """A reservation whose victims are gone becomes a place."""
        if plan.evicted:
            return
        for spot in held.spots:
            self.holding.confirm(held, spot)
        held.state = State.ALLOCATED

    def _cancel(self, held: Held) -> None:
        """Give up a reservation; victims that nobody else pursues are safe again."""
        for spot in held.spots:
            self.holding.cancel(held, spot)
        del self.groups[held.group.name]
        self.journal.note(self.groups.__setitem__, held.group.name, held)
        for other in self.groups.values():
            if held in other.pursuers:
                del other.pursuers[held]
                self.journal.note(other.pursuers.__setitem__, held, None)
                if not other.pursuers:
                    other.state = State.ALLOCATED
                    self.journal.note(setattr, other, "state", State.BEING_PREEMPTED)

    def release(self, name: str) -> None:
        """All pods of the group have ended, or it gives up its reservation. Idempotent."""
        held = self.groups.get(name)
        if held is None:
            return
        self.version += 1
        if held.state is State.PREEMPTING:
            self._cancel(held)
            return
        del self.groups[name]
        for spot in held.spots:
            self.holding.stop(held, spot)

    def set_node_health(self, name: str, *, healthy: bool, bad_devices: Collection[int] = ()) -> None:
        """A node is well, or bad as a whole, or well but for some devices.

        Groups that run there stay; nothing new is placed on what is bad. A name that is in no chain is ignored: such
        nodes have no cells.
        """
        for node in self.nodes.get(name, ()):
            broken = 0
            for index in node.indexes if not healthy else bad_devices:
                if index in node.place:
                    broken |= 1 << node.place[index]
            if broken != node.broken:
                self.version += 1
                self.health.set(node, broken)

    @contextmanager
    def trial(self) -> Iterator[Cluster]:
        """A what-if: whatever is done to the cluster inside is undone at the end."""
        groups, version, serial = dict(self.groups), self.version, self._serial
        records = {held: (list(held.spots), held.state, held.displaced_by, dict(held.pursuers)) for held in groups.values()}
        with self.journal.trial():
            yield self
        self.groups = groups
        self.version, self._serial = version, serial
        for held, (spots, state, displaced_by, pursuers) in records.items():
            held.spots, held.state, held.displaced_by, held.pursuers = spots, state, displaced_by, pursuers

    # -- small things ----------------------------------------------------------------------------------------------

    def _settle(self, options: Sequence[Option]) -> None:
        for option in options:
            if option.quotas is None:
                option.chain.ranking.settle()
            else:
                option.quotas.ranking.settle()

    def _limits(self, suggested: Collection[str] | None) -> Limits | None:
        """Suggested nodes as limits; None when all nodes are suggested."""
        if suggested is None:
            return None
        names = suggested if isinstance(suggested, frozenset) else frozenset(suggested)
        known, limits = self._suggested
        if known is not names and known != names:
            if all(name in names for name in self.nodes):
                limits = None
            else:
                limits = {node: node.mask for name in sorted(names) for node in self.nodes.get(name, ())}
        self._suggested = (names, limits)
        return limits

    def owner(self, vc: str, chain: Chain, pinned_id: str = "") -> Quotas | None:
        """The quota a group of this virtual cluster uses in a chain."""
        return self.pinned.get((vc, pinned_id)) if pinned_id else self.quotas.get((vc, chain.name))

    def check(self) -> None:
        """Raise Bug when a count is not what the trees say or a promise could not be kept. For tests; costs a walk."""
        from pai_backend.scheduling.core.audit import audit

        audit(self)

    def placements(self) -> Mapping[str, Placement]:
        """Every group that runs, as it may be stored, in order of submission."""
        return {
            name: held.stored
            for name, held in self.groups.items()
            if held.state is not State.PREEMPTING and held.stored is not None
        }


def _still_good(held: Held, limits: Limits | None) -> bool:
    """Whether a reservation lies on healthy and allowed leaves."""
    return all(
        not spot.mask & spot.node.broken and (limits is None or spot.mask & ~limits.get(spot.node, 0) == 0)
        for spot in held.spots
    )


def _in_the_way(held: Held) -> list[Held]:
    found: dict[Held, None] = {}
    for spot in held.spots:
        found.update((other, None) for other, mask in spot.node.running.items() if mask & spot.mask)
    return sorted(found, key=lambda other: other.serial)


def _sizes(group: Group) -> Iterator[list[int]]:
    """Pods per member to try: all, then fewer, the last members first, down to the least."""
    counts = [member.pods for member in group.members]
    yield list(counts)
    for index in range(len(counts) - 1, -1, -1):
        least = group.members[index].min_pods
        while least is not None and counts[index] > least:
            counts[index] -= 1
            yield list(counts)


def _missing_pods(held: Held) -> list[int]:
    have = set(held.ordinals)
    return [ordinal for ordinal in range(held.group.pods) if ordinal not in have]


def _growth_parts(held: Held, ordinals: Sequence[int]) -> list[object]:
    raise Bug("not built")


def _growth_limits(held: Held, limits: Limits | None) -> Limits | None:
    raise Bug("not built")
