"""Decides for a queue where units of jobs go: cells first, within what CPU, memory, labels and ports allow.

Rules of this file: ``decide`` changes nothing, whatever it tries; ``carry_out`` makes the same decision true at once,
in memory alone. Several groups of one unit are placed together or not at all: as long as one of them waits for others
to end, the cells of all are kept, and none of them runs. Others are preempted for cells, never for CPU or memory.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import ExitStack

from pai_backend.model.ids import TaskUid
from pai_backend.model.node import Node
from pai_backend.scheduling.cells.tree import Held, State
from pai_backend.scheduling.core.cluster import Cluster
from pai_backend.scheduling.core.decision import Bound, Decision, Preempt, Wait
from pai_backend.scheduling.jobs.choice import Allows, choose
from pai_backend.scheduling.jobs.memory import Memory
from pai_backend.scheduling.jobs.unit import Unit
from pai_backend.scheduling.queue import Entry
from pai_backend.scheduling.queue.holdback import reserve_place
from pai_backend.scheduling.request import Group, Need, Placement, Reason, WaitCode

TRIES = 32
"""How often a group is decided again because a node lacks CPU or memory for all pods that would be put there."""
OF_NO_GROUP = ""
"""The group that a ``Wait`` names when tasks without cells are what has no place."""

Needs = Sequence[Need]
Nodes = Collection[str] | Mapping[str, Collection[int] | None]


def anywhere(node: Node, need: Need) -> bool:
    """An ``allows`` for when nothing but CPU, memory and terms counts."""
    return True


class JobsDecider:
    """A :class:`~pai_backend.scheduling.queue.Decider` for units of jobs. ``allows`` knows about ports."""

    def __init__(self, cluster: Cluster, memory: Memory, allows: Allows = anywhere) -> None:
        self.allows = allows
        self._cluster = cluster
        self._memory = memory
        self._room = memory.room

    # -- a unit ----------------------------------------------------------------------------------------------------

    def decide(self, entry: Entry) -> Decision:
        """A place for all groups of the entry and its tasks without cells, or why there is none."""
        unit = self._memory.units[entry.group.name]
        if not entry.groups:
            return self._with_loose(entry, unit, Bound(Placement(entry.group, "", ())), [])
        if not entry.others:
            decision = self._one(entry.group, unit)
            return self._with_loose(entry, unit, decision, [decision])
        answer: Decision | None = None
        for reserving in (False, True):
            with ExitStack() as trial:
                trial.enter_context(self._cluster.trial())
                found = self._in_turn(entry, unit, trial, reserving=reserving)
                answer = _joint(found) if isinstance(found, list) else found
                if isinstance(answer, Bound):
                    answer = self._with_loose(entry, unit, answer, [])
            if answer is not None:
                break
        assert answer is not None
        return answer

    def carry_out(self, entry: Entry, decision: Decision) -> None:
        """Hold the place, or have it kept; of a ``Wait``, give up what was kept."""
        unit = self._memory.units[entry.group.name]
        if isinstance(decision, Wait):
            self._memory.release(unit.uids)
            for group in entry.groups:
                self._cluster.release(group.name)
            return
        for name in decision.cancelled:
            lost = self._memory.units.get(name)
            self._memory.release(lost.uids if lost is not None else ())
        if entry.others:
            with ExitStack() as kept:
                found = self._in_turn(entry, unit, kept, reserving=isinstance(decision, Preempt))
            assert isinstance(found, list)
        else:
            found = [decision] if entry.groups else []
            for each in found:
                self._cluster.commit(each)
        for each in found:
            needs = unit.needs_of(each.placement.group)
            for pod in each.placement.pods:
                self._memory.hold(needs[pod.ordinal], pod.node)
        if isinstance(decision, Bound) and unit.loose:
            nodes = choose(self._room, unit.loose, self.allows)
            assert not isinstance(nodes, Need)
            for need in unit.loose:
                self._memory.hold(need, nodes[need.uid])

    def _in_turn(
        self, entry: Entry, unit: Unit, until: ExitStack, *, reserving: bool
    ) -> list[Bound | Preempt] | Wait | None:
        """Places for all groups, one after the other, each taken in the cluster at once; CPU and memory ``until`` then.

        Each is run, or kept if ``reserving``. None: one of them has to wait for others to end, so all are to be kept.
        """
        found: list[Bound | Preempt] = []
        for group in entry.groups:
            decision = self._one(group, unit)
            if isinstance(decision, Wait):
                return decision
            if isinstance(decision, Preempt) and not reserving:
                return None
            found.append(decision)
            if isinstance(decision, Bound) and reserving:
                self._reserve(decision)
            else:
                self._cluster.commit(decision)
            until.enter_context(self._memory.as_if(_spots(decision, unit.needs_of(group))))
        return found

    def _reserve(self, decision: Bound) -> None:
        """Keep the cells, though they are free: another group of the unit has to wait."""
        group, plan = decision.placement.group, decision.plan
        assert plan is not None
        held = self._cluster.groups.get(group.name)
        if held is None or held.stored is None or held.stored.pods != decision.placement.pods:
            self._cluster.release(group.name)
            reserve_place(self._cluster, group, plan)

    def _with_loose(self, entry: Entry, unit: Unit, decision: Decision, placed: Sequence[Decision]) -> Decision:
        """The decision, if tasks without cells have room beside its pods. While others end, they are not looked at."""
        if not isinstance(decision, Bound) or not unit.loose:
            return decision
        if not entry.groups and entry.needs in self._memory.nowhere:
            return Wait(OF_NO_GROUP, Reason(WaitCode.NOT_SUGGESTED, entry.vc, 0, 0), version=self._cluster.version)
        with ExitStack() as beside:
            for each in placed:
                if isinstance(each, Bound):
                    beside.enter_context(self._memory.as_if(_spots(each, unit.needs_of(each.placement.group))))
            # The sets are kept up to date; sorting all nodes for a task that fits nowhere costs milliseconds.
            nowhere = any(not self._room.having(need) for need in {need.kind: need for need in unit.loose}.values())
            found = unit.loose[0] if nowhere else choose(self._room, unit.loose, self.allows)
        if isinstance(found, Need):
            if not entry.groups:
                self._memory.nowhere.add(entry.needs)
            kept = any(group.name in self._cluster.groups for group in entry.groups)
            return Wait(OF_NO_GROUP, Reason(WaitCode.NOT_SUGGESTED, entry.vc, 0, 0), kept, self._cluster.version)
        return decision

    # -- a group ---------------------------------------------------------------------------------------------------

    def _one(self, group: Group, unit: Unit) -> Decision:
        needs = unit.needs_of(group)
        held = self._cluster.groups.get(group.name)
        if held is None or held.state is not State.PREEMPTING:
            return self._anew(group, needs)
        if held.group == group:
            stands = self._as_kept(held, needs)
            if stands is not None:
                return stands
        with self._memory.without(need.uid for need in needs):
            return self._anew(group, needs)

    def _as_kept(self, held: Held, needs: Needs) -> Decision | None:
        """How a reservation stands; None when it is no longer good.

        Preemptors have CPU and memory kept, too; groups that were overtaken long enough may find them gone.
        """
        names = frozenset(spot.node.name for spot in held.spots)
        if not names <= self._room.suited(needs[0]):
            return None
        answer = self._cluster.try_place(held.group, names)
        if isinstance(answer, Wait) or held.stored is None or answer.placement.pods != held.stored.pods:
            return None
        if self._memory.node_of(needs[0].uid) is None and any(self._overfull(answer, needs)):
            return self._short(held.group, answer)
        return answer

    def _anew(self, group: Group, needs: Needs) -> Decision:
        now = self._nodes(needs, self._room.having)
        answer = self._within(group, needs, now)
        if isinstance(answer, Bound):
            return answer
        could = self._nodes(needs, self._room.large_enough)
        if could == now:
            return answer
        later = self._within(group, needs, could)
        if not isinstance(later, Bound):
            return later
        return answer if isinstance(answer, Wait) else self._short(group, later)

    def _short(self, group: Group, where: Bound | Preempt) -> Wait:
        """There are cells, and their nodes lack something else now."""
        nodes = tuple(dict.fromkeys(pod.node for pod in where.placement.pods))
        most = max(member.leaves for member in group.members)
        reason = Reason(WaitCode.NOT_SUGGESTED, group.vc, group.leaves, most, nodes=nodes)
        return Wait(group.name, reason, group.name in self._cluster.groups, self._cluster.version)

    def _within(self, group: Group, needs: Needs, nodes: frozenset[str]) -> Decision:
        """A decision whose pods fit on their nodes together.

        Where cells would put more pods on a node than it has CPU or memory for, the node may then be used only for as
        many as fit, on the very cells that they were given, and the group is decided again.
        """
        allowed: Nodes = nodes
        answer = self._cluster.try_place(group, allowed)
        for _ in range(TRIES):
            if isinstance(answer, Wait):
                return answer
            over = dict(self._overfull(answer, needs))
            if not over:
                return answer
            have = allowed if isinstance(allowed, Mapping) else dict.fromkeys(allowed)
            allowed = {**have, **over}
            answer = self._cluster.try_place(group, allowed)
        return self._cluster.try_place(group, frozenset())

    def _overfull(self, answer: Bound | Preempt, needs: Needs) -> Iterator[tuple[str, tuple[int, ...]]]:
        """Nodes with too little room for the pods there, and the cells of those that fit."""
        leaving = list(self._leaving(answer.victims)) if isinstance(answer, Preempt) else []
        by_node: dict[str, list[tuple[Need, tuple[int, ...]]]] = {}
        for pod in answer.placement.pods:
            by_node.setdefault(pod.node, []).append((needs[pod.ordinal], pod.devices))
        for name, pods in by_node.items():
            fitting = self._room.that_fit(name, [need for need, _ in pods], leaving)
            if fitting < len(pods):
                yield name, tuple(index for _, devices in pods[:fitting] for index in devices)

    def _leaving(self, victims: Sequence[str]) -> Iterator[TaskUid]:
        for name in victims:
            yield from self._memory.party(name).uids

    # -- nodes -----------------------------------------------------------------------------------------------------

    def suggest(self, entry: Entry) -> Collection[str]:
        """Nodes on which now at least one pod of the entry's group could be."""
        return self._nodes(self._memory.units[entry.group.name].needs_of(entry.group), self._room.having)

    def could_use(self, entry: Entry) -> Collection[str]:
        """Nodes on which one could be if nothing ran there."""
        return self._nodes(self._memory.units[entry.group.name].needs_of(entry.group), self._room.large_enough)

    def may_profit(self, entry: Entry, nodes: Collection[str]) -> bool:
        """Whether one of its tasks could be on one of these nodes now, as far as cells do not count.

        Of several groups one may have waited for cells, which a quota gives back on whatever node.
        """
        if entry.others:
            return True
        needs = {need.kind: need for need in self._memory.units[entry.group.name].needs}
        return any(not self._room.having(need).isdisjoint(nodes) for need in needs.values())

    def could_stand(self, group: Group, needs: Needs) -> bool:
        """Whether cells are free for a group on nodes that would be large enough, so that only room on them lacks."""
        return isinstance(self._within(group, needs, self._nodes(needs, self._room.large_enough)), Bound)

    def _nodes(self, needs: Needs, by: Callable[[Need], frozenset[str]]) -> frozenset[str]:
        """Nodes on which at least one of the pods could be, by CPU, memory, labels, taints and fixed ports."""
        kinds = {need.kind: need for need in needs}
        found = [self._allowed(need, by(need)) for need in kinds.values()]
        return found[0] if len(found) == 1 else frozenset[str]().union(*found)

    def _allowed(self, need: Need, names: frozenset[str]) -> frozenset[str]:
        if not need.fixed_ports:
            return names
        return frozenset(name for name in names if self.allows(self._room.nodes[name], need))


def _spots(decision: Bound | Preempt, needs: Needs) -> list[tuple[Need, str]]:
    return [(needs[pod.ordinal], pod.node) for pod in decision.placement.pods]


def _joint(found: Sequence[Bound | Preempt]) -> Bound | Preempt:
    """What several decisions mean together, told by the place of the first."""
    displaced = tuple(dict.fromkeys(name for each in found for name in each.displaced))
    cancelled = tuple(dict.fromkeys(name for each in found for name in each.cancelled))
    victims = tuple(dict.fromkeys(name for each in found if isinstance(each, Preempt) for name in each.victims))
    if victims:
        return Preempt(found[0].placement, victims, displaced, cancelled)
    return Bound(found[0].placement, displaced, cancelled)
