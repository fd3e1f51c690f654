"""The ledger: which cells, CPU, memory and ports are held by whom, and the decisions that change it.

Pure: no clock, no I/O, no randomness. Deciding reads. Only :meth:`Ledger.apply` and :meth:`Ledger.undo` write what was
decided; the methods under "events" write what comes from outside.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from types import MappingProxyType
from typing import NoReturn

from pai_backend.model.errors import Fault, InvalidParameters
from pai_backend.model.ids import PortLease, TaskUid
from pai_backend.scheduling.cells.tree import Held, State
from pai_backend.scheduling.config.model import ClusterConfig
from pai_backend.scheduling.core import elastic
from pai_backend.scheduling.core.decision import (
    Applicable,
    Bound,
    Decision,
    Dequeue,
    Enqueue,
    EntryState,
    Holds,
    Keep,
    Lease,
    Preempt,
    Release,
    Stage,
    Wait,
)
from pai_backend.scheduling.core.diagnose import diagnose
from pai_backend.scheduling.core.elastic import has_to_spread, spread
from pai_backend.scheduling.core.place import Option, Planner, displace, in_the_way
from pai_backend.scheduling.core.places import Places, Written
from pai_backend.scheduling.core.restore import (
    RECONFIGURED,
    Effects,
    Restored,
    reconfigure,
    reserve,
    restore,
    upgrade,
)
from pai_backend.scheduling.core.scope import parts_of
from pai_backend.scheduling.core.search import Limits, Plan
from pai_backend.scheduling.core.trees import Suggested, check_group
from pai_backend.scheduling.request import Group, GroupPlace, Need, on_cells

_SAME: Mapping[str, str] = MappingProxyType({})


class Outdated(Exception):
    """The ledger changed since the decision was made, or was applied: ask again."""


@dataclass(frozen=True, slots=True, eq=False)
class Receipt:
    """A decision was applied: what :meth:`Ledger.undo` takes."""

    before: tuple[int, int, int]
    after: int
    entries: list[tuple[Callable[..., object], tuple[object, ...]]] | None = None
    """How to take it back; None when it was final."""


_FINAL = Receipt((0, 0, 0), -1)
"""Of all final decisions: no write has this number."""


class Ledger(Places):
    """All cells of a configuration, all groups that hold some, and the CPU and memory that tasks hold.

    Deciding (:meth:`decide`, :meth:`decide_growth`) changes nothing. Give a fresh ledger the stored placements with
    :meth:`restore`.
    """

    def __init__(self, config: ClusterConfig, *, by_size: bool = True) -> None:
        super().__init__(config, by_size=by_size)
        self._writes = 0
        """How often anything was written; no number is given twice, not even after an undo."""
        self.last = 0
        """The number of the last write that stands; changed here alone."""

    # -- deciding --------------------------------------------------------------------------------------------------

    def decide(self, group: Group, suggested: Suggested = None) -> Decision:
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
            return self._answer(
                group,
                Plan(
                    dict(zip(held.ordinals, held.spots, strict=True)),
                    sorted(dict.fromkeys(in_the_way(held)), key=lambda other: other.serial),
                ),
            )
        with self.journal.trial():
            self._cancel(held)
            self.settle(options)
            return self._decide(group, options, limits, drops_reservation=True)

    def _decide(
        self, group: Group, options: Sequence[Option], limits: Limits | None, *, drops_reservation: bool = False
    ) -> Decision:
        plan = self._idle(group, options, limits)
        if plan is None:
            if has_to_spread(group, options):
                plan = spread(self.holding, group, options, limits, evicting=True)
            else:
                plan = Planner(self.holding, group, parts_of(group, group.least), limits).evicting(options)
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

    def decide_growth(self, name: str, suggested: Collection[str] | None = None) -> Bound | Wait:
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
        placement = _placement(group, plan)
        displaced = tuple(held.group.name for held in plan.displaced)
        cancelled = tuple(held.group.name for held in plan.cancelled)
        if plan.evicted:
            victims = tuple(held.group.name for held in plan.evicted)
            return Preempt(placement, displaced, cancelled, plan, self.version, victims=victims)
        return Bound(placement, displaced, cancelled, plan, self.version)

    def keeping(self, group: Group, plan: Plan) -> Keep:
        """The decision to keep the place of a plan, without a search."""
        return Keep(_placement(group, plan), plan, self.version)

    # -- writing ---------------------------------------------------------------------------------------------------

    def apply(self, decision: Applicable, *, final: bool = False) -> Receipt:
        """Carry out a decision: groups hold or reserve their places, tasks hold CPU and memory, owners lease ports.

        Of a :class:`Wait`, only giving up a reservation that is no longer good. Raises :class:`Outdated`, and changes
        nothing, when the cells changed since the decision was made. Nothing is searched. What is ``final`` can only be
        undone by a :meth:`trial` around it: to note how costs some 7 % of a decision.
        """
        if isinstance(decision, Bound | Preempt | Wait | Keep) and decision.version != self.version:
            raise Outdated(f"the cells changed since {_name(decision)} was decided")
        if final:
            self._wrote(self._write(decision))
            return _FINAL
        before = self.version, self.last, self.serial
        outer, written = self.journal.begin(), Written.NOTHING
        try:
            written = self._write(decision)
        finally:
            entries = self.journal.end(outer)
        self._wrote(written)
        return Receipt(before, self.last, entries)

    def undo(self, receipt: Receipt) -> None:
        """Put everything back as it was before a decision was applied, in its order, too.

        Raises :class:`Outdated`, and changes nothing, when anything was written since, or the decision was final.
        """
        if self.last != receipt.after or receipt.entries is None:
            raise Outdated("something was written since the decision was applied, or it was final")
        self.journal.undo(receipt.entries)
        self.version, self.last, self.serial = receipt.before

    @contextmanager
    def trial(self) -> Iterator[Ledger]:
        """A what-if: whatever is applied to the ledger inside is undone at the end. Not for events."""
        before = self.version, self.last, self.serial
        try:
            with self.journal.trial():
                yield self
        finally:
            self.version, self.last, self.serial = before

    def release(self, name: str) -> None:
        """Apply, as final, that all pods of the group have ended, or that it gives up its reservation. Idempotent."""
        self._wrote(self._release(name))

    def _wrote(self, what: Written = Written.CELLS) -> None:
        """Something was written: a new number, also for the version when it was cells."""
        if what is not Written.NOTHING:
            self._writes += 1
            self.last = self._writes
            if what is Written.CELLS:
                self.version = self._writes

    def _write(self, decision: Applicable) -> Written:
        if isinstance(decision, Release):
            return self._release(decision.group)
        if isinstance(decision, Lease):
            dropped = self.ports.drop(decision.ends)
            self.ports.add(decision.begins)
            return Written.ROOM if dropped or decision.begins else Written.NOTHING
        if isinstance(decision, Enqueue | Dequeue):
            return self._move(decision)
        if isinstance(decision, Keep):
            self._keep(decision)
            self._hold_room(decision.holds)
            self._advance_entry(decision)
            return Written.CELLS
        for uid in decision.frees:
            self.room.release(uid)
        if isinstance(decision, Wait):
            found = self._release(decision.group) if decision.drops_reservation else Written.NOTHING
            return Written.ROOM if decision.frees and found is Written.NOTHING else found
        for step in decision.steps:
            self._write(step)
        if decision.plan is not None:
            self._place(decision.placement, decision.plan)
        self._hold_room(decision.holds)
        self._advance_entry(decision)
        return Written.CELLS if decision.steps or decision.plan is not None else Written.ROOM

    def _move(self, decision: Enqueue | Dequeue) -> Written:
        if isinstance(decision, Enqueue):
            self.entries.set(decision.entry.group.name, EntryState(decision.entry, Stage.WAITING))
        elif self.entries.get(decision.name) is None:
            return Written.NOTHING
        else:
            self.entries.set(decision.name, None)
        return Written.ROOM

    def _advance_entry(self, decision: Bound | Preempt | Keep) -> None:
        """The entry that waited for this place has it, or has it kept."""
        if decision.entry is None:
            return
        stage = Stage.RUNNING if isinstance(decision, Bound) else Stage.KEPT
        victims = frozenset(decision.victims) if isinstance(decision, Preempt) else frozenset[str]()
        state = EntryState(decision.entry, stage, victims, held_back=isinstance(decision, Keep))
        self.entries.set(decision.entry.group.name, state)

    def _hold_room(self, needs: Holds) -> None:
        for need, node in needs:
            self.room.hold(need, node)

    # -- events ----------------------------------------------------------------------------------------------------

    def set_node_health(self, name: str, *, healthy: bool, bad_devices: Collection[int] = ()) -> None:
        """A node is well, or bad as a whole, or well but for some devices.

        Groups that run there stay; nothing new is placed on what is bad. A name that is in no chain is ignored: such
        nodes have no cells.
        """
        if self.set_broken(name, healthy=healthy, bad_devices=bad_devices):
            self._wrote()

    def upgrade(self, but: Callable[[str], bool] = lambda _: False) -> tuple[str, ...]:
        """Give lazily preempted groups their claim on the quota back where there is room; answers which.

        Those of virtual clusters in ``but`` are left out. The reference never does this.
        """
        names = upgrade(self, but)
        if names:
            self._wrote()
        return names

    def displace(self, name: str) -> None:
        """A group lost its claim on the quota before a restart: it runs on without. Idempotent."""
        held = self.groups.get(name)
        if held is not None and not held.displaced_by:
            displace(self.holding, held, RECONFIGURED)
            self._wrote()

    def hold(self, needs: Iterable[tuple[Need, str]]) -> None:
        """Tasks have CPU and memory on these nodes, as is stored."""
        self._hold_room(tuple(needs))
        self._wrote(Written.ROOM)

    def give_back(self, uids: Iterable[TaskUid]) -> set[str]:
        """These tasks hold no CPU and memory any more; the nodes where that was. Idempotent."""
        nodes = {node for uid in uids if (node := self.room.release(uid)) is not None}
        if nodes:
            self._wrote(Written.ROOM)
        return nodes

    def set_entry(self, state: EntryState) -> None:
        """An entry runs, or has cells kept, as is stored; or it counts under another virtual cluster."""
        self.entries.set(state.entry.group.name, state)
        self._wrote(Written.ROOM)

    def set_leases(self, leases: Iterable[PortLease]) -> None:
        """These ports are leased, as is stored, and no others."""
        self.ports.reset(leases)
        self._wrote(Written.ROOM)

    def end_leases(self, owners: Iterable[str]) -> bool:
        """These owners lease no port any longer; whether they did. Idempotent."""
        dropped = self.ports.drop(owners)
        if dropped:
            self._wrote(Written.ROOM)
        return dropped

    def restore(self, placements: Collection[GroupPlace]) -> Restored:
        """Put running groups where they are, in the order given, which should be that of submission.

        Raises ValueError when two groups claim the same leaf.
        """
        self._wrote()
        return restore(self, placements)

    def reserve(self, placement: GroupPlace) -> bool:
        """Keep these cells again for a preemptor that had them, beside what is restored. False when that cannot be."""
        self._wrote()
        return reserve(self, placement)

    def reconfigure(self, config: ClusterConfig, vcs: Mapping[str, str] = _SAME) -> Effects:
        """Another configuration, at once, with everything running on. Reservations are dropped: decide them again.

        ``vcs`` tells the virtual cluster of groups that are another one's in the new configuration.
        """
        self._wrote()
        return reconfigure(self, config, vcs)


def _placement(group: Group, plan: Plan) -> GroupPlace:
    pods = {
        ordinal: on_cells(spot.node.name, spot.node.devices(spot.mask), spot.node.chain.name, spot.owned)
        for ordinal, spot in sorted(plan.spots.items())
    }
    return GroupPlace(group, next(iter(plan.spots.values())).node.chain.name, pods)


def _name(decision: Decision | Keep) -> str:
    return decision.group if isinstance(decision, Wait) else decision.placement.group.name


def _room_in(options: Sequence[Option]) -> elastic.Holds:
    return lambda sizes: any(option.holds(sizes) for option in options)


def _still_good(held: Held, limits: Limits | None) -> bool:
    """Whether a reservation lies on healthy and allowed leaves."""
    return all(
        not spot.mask & spot.node.broken and (limits is None or spot.mask & ~limits.get(spot.node, 0) == 0)
        for spot in held.spots
    )


def _refuse(message: str, hint: str) -> NoReturn:
    raise InvalidParameters(message, errors=[Fault(path="$.name", message=message, hint=hint)], hint=hint)
