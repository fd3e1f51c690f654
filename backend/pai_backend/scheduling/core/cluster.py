"""The cluster: decides where groups go and keeps what was decided. Pure: no clock, no I/O, no randomness."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from types import MappingProxyType
from typing import NoReturn

from pai_backend.model.errors import Fault, InvalidParameters
from pai_backend.scheduling.cells.tree import Held, State
from pai_backend.scheduling.config.model import ClusterConfig
from pai_backend.scheduling.core import elastic
from pai_backend.scheduling.core.audit import audit
from pai_backend.scheduling.core.decision import Bound, Decision, Preempt, Wait
from pai_backend.scheduling.core.diagnose import diagnose
from pai_backend.scheduling.core.options import check_group
from pai_backend.scheduling.core.place import Option, Planner, displace
from pai_backend.scheduling.core.reconfigure import Effects, refill
from pai_backend.scheduling.core.restore import Restored, reserve, restore, upgrade
from pai_backend.scheduling.core.scope import parts_of
from pai_backend.scheduling.core.search import Limits, Plan
from pai_backend.scheduling.core.spread import has_to_spread, spread
from pai_backend.scheduling.core.trees import Suggested, Trees
from pai_backend.scheduling.request import Group, Placement, PodPlace

_SAME: Mapping[str, str] = MappingProxyType({})


class Outdated(Exception):
    """The cluster changed since the decision was made: ask again."""


class Cluster(Trees):
    """All cells of a configuration and all groups that hold some.

    Deciding (:meth:`try_place`, :meth:`try_grow`) changes nothing; :meth:`commit` does. Give a fresh cluster the stored
    placements with :meth:`restore`.
    """

    # -- deciding --------------------------------------------------------------------------------------------------

    def try_place(self, group: Group, suggested: Suggested = None) -> Decision:
        """Where the group goes, whom it waits for to end, or why it waits. Changes nothing.

        ``suggested`` are the nodes that CPU, memory, ports and selectors allow, if need be with the devices of each
        that may be used; None allows all. A group that has a
        reservation keeps it as long as it is good. Raises InvalidParameters or NoVirtualCluster for a request that can
        never be right, and InvalidParameters for a group that already has a place.
        """
        options = check_group(self, group)
        limits = None if group.ignore_suggested else self.limits(suggested)
        self.settle(options)
        held = self.groups.get(group.name)
        if held is None:
            return self._decide(group, options, limits)
        if held.state is not State.PREEMPTING:
            _refuse(f"group {group.name} already has a place", "Release it first.")
        if held.group == group and _still_good(held, limits):
            return self._answer(group, Plan(dict(zip(held.ordinals, held.spots, strict=True)), _in_the_way(held)))
        with self.journal.trial():
            self._cancel(held)
            self.settle(options)
            return self._decide(group, options, limits, drops_reservation=True)

    def _decide(
        self, group: Group, options: Sequence[Option], limits: Limits | None, *, drops_reservation: bool = False
    ) -> Decision:
        plan = self._idle(group, options, limits)
        if plan is None:
            least = [member.pods if member.min_pods is None else member.min_pods for member in group.members]
            if has_to_spread(group, options):
                plan = spread(self.holding, group, options, limits, evicting=True)
            else:
                plan = Planner(self.holding, group, parts_of(group, least), limits).evicting(options)
        if plan is None:
            return Wait(group.name, diagnose(self, group, options, limits), drops_reservation, self.version)
        return self._answer(group, plan)

    def _idle(self, group: Group, options: Sequence[Option], limits: Limits | None) -> Plan | None:
        """A place without evicting anyone, for as many pods as fit when the group is elastic."""
        for counts in elastic.sizes_to_try(group, _room_in(options)):
            planner = Planner(self.holding, group, parts_of(group, counts), limits)
            for option in options:
                plan = planner.look(option, None)
                if plan is not None:
                    return plan
        if has_to_spread(group, options):
            return spread(self.holding, group, options, limits, evicting=False)
        return None

    def try_grow(self, name: str, suggested: Collection[str] | None = None) -> Bound | Wait:
        """More pods for an elastic group that runs with fewer than it asked for; never evicts. Changes nothing.

        The answer's placement has all pods, those that run where they are. Raises InvalidParameters when the group does
        not run, was displaced, or is complete.
        """
        held = self.groups.get(name)
        missing = [] if held is None else elastic.missing_pods(held)
        if held is None or held.state is not State.ALLOCATED or held.displaced_by or not missing or not held.spots:
            _refuse(f"group {name} cannot grow", "Only a running group that started with fewer pods can.")
        options = [option for option in check_group(self, held.group) if option.chain.name == held.chain]
        allowed = None if held.group.ignore_suggested else self.limits(suggested)
        self.settle(options)
        for pods in elastic.growths_to_try(held, missing, _room_in(options)):
            parts, limits = elastic.growth(held, pods, allowed)
            for option in options:
                plan = Planner(self.holding, held.group, parts, limits, whole=False).look(option, None)
                if plan is not None:
                    plan.spots = dict(zip(held.ordinals, held.spots, strict=True)) | plan.spots
                    answer = self._answer(held.group, Plan(plan.spots))
                    assert isinstance(answer, Bound)
                    return answer
        return Wait(name, diagnose(self, held.group, options, allowed), version=self.version)

    def _answer(self, group: Group, plan: Plan) -> Bound | Preempt:
        plan.version = self.version
        pods = tuple(
            PodPlace(ordinal, spot.node.name, spot.node.devices(spot.mask), spot.owned)
            for ordinal, spot in sorted(plan.spots.items())
        )
        placement = Placement(group, next(iter(plan.spots.values())).node.chain.name, pods)
        displaced = tuple(held.group.name for held in plan.displaced)
        cancelled = tuple(held.group.name for held in plan.cancelled)
        if plan.evicted:
            return Preempt(placement, tuple(held.group.name for held in plan.evicted), displaced, cancelled, plan)
        return Bound(placement, displaced, cancelled, plan)

    # -- changing --------------------------------------------------------------------------------------------------

    def commit(self, decision: Decision) -> None:
        """Carry out a decision: the group holds its place, or reserves it while its victims end.

        Of a :class:`Wait`, only giving up a reservation that is no longer good. Raises :class:`Outdated`, and changes
        nothing, when the cluster changed since the decision was made.
        """
        version = (
            decision.version if isinstance(decision, Wait) else None if not decision.plan else decision.plan.version
        )
        name = decision.group if isinstance(decision, Wait) else decision.placement.group.name
        if version != self.version:
            raise Outdated(f"the cluster changed since {name} was decided")
        if isinstance(decision, Wait):
            if decision.drops_reservation:
                self.release(name)
            return
        assert decision.plan is not None
        self.version += 1
        self._carry_out(decision.placement, decision.plan)

    def _carry_out(self, placement: Placement, plan: Plan) -> None:
        held = self.groups.get(placement.group.name)
        if held is not None and held.state is State.PREEMPTING:
            if held.spots == [spot for _, spot in sorted(plan.spots.items())]:
                self._advance(held, plan)
                return
            self._cancel(held)
            held = None
        for other in plan.displaced:
            displace(self.holding, other, placement.group.name)
        with self.health.later():
            for other in plan.cancelled:
                self._cancel(other)
            if held is not None:
                self._extend(held, placement, plan)
            else:
                self._hold(placement, plan)

    def _hold(self, placement: Placement, plan: Plan) -> None:
        """Take the plan's leaves: for good, or as a reservation."""
        ordinals = sorted(plan.spots)
        held = self.enroll(placement, [plan.spots[ordinal] for ordinal in ordinals], ordinals)
        if not plan.evicted:
            for spot in held.spots:
                self.holding.run(held, spot)
            return
        held.state = State.PREEMPTING
        for spot in held.spots:
            self.holding.reserve(held, spot)
        for victim in plan.evicted:
            held.pursue(victim)

    def _extend(self, held: Held, placement: Placement, plan: Plan) -> None:
        """Give a running group the pods it did not have."""
        held.stored = placement
        have = set(held.ordinals)
        for ordinal, spot in sorted(plan.spots.items()):
            if ordinal not in have:
                held.ordinals.append(ordinal)
                held.spots.append(spot)
                self.holding.run(held, spot)

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
        for other in held.victims:
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

    def upgrade(self) -> tuple[str, ...]:
        """Give lazily preempted groups their claim on the quota back where there is room; answers which.

        To be called after releases. The reference never does this.
        """
        names = upgrade(self)
        self.version += bool(names)
        return names

    # -- rebuilding ------------------------------------------------------------------------------------------------

    def restore(self, placements: Collection[Placement]) -> Restored:
        """Put running groups where they are, in the order given, which should be that of submission.

        Raises ValueError when two groups claim the same leaf.
        """
        return restore(self, placements)

    def reserve(self, placement: Placement) -> bool:
        """After :meth:`restore`: keep these cells again for a preemptor that had them. False when that cannot be."""
        return reserve(self, placement)

    def preview(self, config: ClusterConfig, vcs: Mapping[str, str] = _SAME) -> Effects:
        """What :meth:`reconfigure` would do; changes nothing."""
        return refill(self, type(self)(config, by_size=self.by_size), vcs)

    def reconfigure(self, config: ClusterConfig, vcs: Mapping[str, str] = _SAME) -> Effects:
        """Another configuration, at once, with everything running on. Reservations are dropped: decide them again.

        ``vcs`` tells the virtual cluster of groups that are another one's in the new configuration.
        """
        fresh = type(self)(config, by_size=self.by_size)
        effects = refill(self, fresh, vcs)
        fresh.version += self.version + 1
        self.__dict__.update(fresh.__dict__)
        return effects

    @contextmanager
    def trial(self) -> Iterator[Cluster]:
        """A what-if: whatever is done to the cluster inside is undone at the end. Not for :meth:`reconfigure`."""
        groups, version, serial = dict(self.groups), self.version, self.serial
        records = [(held, held.record()) for held in groups.values()]
        try:
            with self.journal.trial():
                yield self
        finally:
            self.groups, self.version, self.serial = groups, version, serial
            for held, record in records:
                held.put_back(record)

    def check(self) -> None:
        """Raise Bug when a count is not what the trees say, or a promise could not be kept. For tests; costs a walk."""
        audit(self)


def _room_in(options: Sequence[Option]) -> elastic.Holds:
    return lambda sizes: any(option.holds(sizes) for option in options)


def _still_good(held: Held, limits: Limits | None) -> bool:
    """Whether a reservation lies on healthy and allowed leaves."""
    return all(
        not spot.mask & spot.node.broken and (limits is None or spot.mask & ~limits.get(spot.node, 0) == 0)
        for spot in held.spots
    )


def _in_the_way(held: Held) -> list[Held]:
    """Who still runs on reserved leaves."""
    found: dict[Held, None] = {}
    for spot in held.spots:
        found.update((other, None) for other, mask in spot.node.running.items() if mask & spot.mask)
    return sorted(found, key=lambda other: other.serial)


def _refuse(message: str, hint: str) -> NoReturn:
    raise InvalidParameters(message, errors=[Fault(path="$.name", message=message, hint=hint)], hint=hint)
