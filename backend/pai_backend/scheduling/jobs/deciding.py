"""Decides for a queue where units of jobs go: cells first, within what CPU, memory, labels and ports allow.

A decision holds the places of all groups of a unit, and the node of each of its tasks. Several groups are placed
together or not at all: while one of them waits for others to end, the cells of all are kept, and none of them runs.
Others are preempted for cells, and for CPU or memory that goes with the cells they hold; tasks without cells never are.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from heapq import heapify, heappop, heappush

from pai_backend.model.ids import TaskUid
from pai_backend.model.node import Node
from pai_backend.scheduling.cells.tree import Held, State
from pai_backend.scheduling.core.decision import Bound, Decision, Holds, Keep, Preempt, Step, Wait
from pai_backend.scheduling.core.ledger import Ledger
from pai_backend.scheduling.core.room import Free, Room, fits, less
from pai_backend.scheduling.core.trees import Parts
from pai_backend.scheduling.jobs.unit import Unit, Units, largest
from pai_backend.scheduling.queue import Entry
from pai_backend.scheduling.request import Group, GroupPlace, Need, Reason, WaitCode
from pai_backend.scheduling.terms import NodeRules, TermsOf

Allows = Callable[[Node, Need], bool]
"""Whether a node may be used for a task, apart from what a room knows of it."""


def choose(room: Room, needs: Sequence[Need], allows: Allows) -> Mapping[TaskUid, str] | Need:
    """A node for each of these tasks, holding nothing, or the first one that fits nowhere.

    Nodes with a PreferNoSchedule taint that the task does not tolerate come last. Of the others, nodes without GPUs
    come first, so that those with some stay free for tasks that need them. Of nodes without, the one whose CPUs and
    memory are taken the least: tasks that start together then do not wait for one another. Of nodes with GPUs the first
    by name, so that few of them lose CPUs that their GPUs are used with. Where one of several tasks does not fit that
    way, all go to the first by name, which leaves large ones more room.
    """
    found = _Choice(room, allows, spreads=True).of(needs)
    if isinstance(found, Need) and len(needs) > 1:
        return _Choice(room, allows, spreads=False).of(needs)
    return found


_Preference = tuple[bool, bool, float, str]
"""How late a node's turn comes: avoided, has GPUs, the share of it that is taken, name."""


class _Choice:
    """Nodes for several tasks, one after the other; see :func:`choose`."""

    def __init__(self, room: Room, allows: Allows, *, spreads: bool) -> None:
        self._room = room
        self._allows = allows
        self._spreads = spreads
        self._left: dict[str, Free] = {}
        self._orders: dict[Hashable, list[_Preference]] = {}  # heaps; what a task has taken since is not in them

    def of(self, needs: Sequence[Need]) -> dict[TaskUid, str] | Need:
        """A node for each, or the first task that has none."""
        found: dict[TaskUid, str] = {}
        for need in needs:
            name = self._best(need)
            if name is None:
                return need
            self._left[name] = less(self._free(name), need)
            found[need.uid] = name
        return found

    def _best(self, need: Need) -> str | None:
        order, passed = self._order(need), []
        try:
            while order:
                entry = heappop(order)
                name = entry[-1]
                now = self._preference(need, name) if name in self._left else entry
                if now > entry:
                    heappush(order, now)
                    continue
                passed.append(entry)
                if fits(need, self._free(name)) and self._allows(self._room.nodes[name], need):
                    return name
            return None
        finally:
            for entry in passed:
                heappush(order, entry)

    def _order(self, need: Need) -> list[_Preference]:
        """The nodes with room for such a task, as a heap."""
        size = self._room.size(need)
        order = self._orders.get(size)
        if order is None:
            order = self._orders[size] = [self._preference(need, name) for name in self._room.having(need)]
            heapify(order)
        return order

    def _preference(self, need: Need, name: str) -> _Preference:
        node = self._room.nodes[name]
        taken = _share_taken(node, self._free(name)) if self._spreads and not node.gpus else 0.0
        return need.terms.avoids(node), bool(node.gpus), taken, name

    def _free(self, name: str) -> Free:
        return self._left.get(name) or self._room.free(name)


def _share_taken(node: Node, free: Free) -> float:
    """The larger one of the shares of CPUs and of memory that are not free."""
    there = (node.cpus, free[0]), (node.memory_mb, free[1])
    return max(((whole - left) / whole for whole, left in there if whole), default=0.0)


TRIES = 32
"""How often a group is decided again because a node lacks CPU or memory for all pods that would be put there."""
OF_NO_GROUP = ""
"""The group that a ``Wait`` names when tasks without cells are what has no place."""

NO_TASK = TaskUid("")
Needs = Sequence[Need]
Devices = tuple[int, ...]
"""Indexes of the cells of a node."""


class JobsDecider:
    """A :class:`~pai_backend.scheduling.queue.Decider` for units of jobs."""

    def __init__(self, ledger: Ledger, units: Units) -> None:
        self.terms = TermsOf(NodeRules(), {})
        """What tasks on cells ask of nodes by the rules of their types."""
        self._ledger = ledger
        self._units = units
        self._room = ledger.room
        self._barred: Collection[str] = ()

    # -- a unit ----------------------------------------------------------------------------------------------------

    def decide(self, entry: Entry) -> Decision:
        """A place for all groups of the entry and its tasks without cells, or why there is none."""
        unit, version = self._units.by_name[entry.group.name], self._ledger.version
        if not entry.groups and entry.needs in self._room.nowhere:
            return Wait(OF_NO_GROUP, Reason(WaitCode.NOT_SUGGESTED, entry.vc, 0, 0), version=version)
        if len(entry.groups) == 1 and not unit.loose:
            answer: Decision | None = self._one(entry.groups[0], unit)
        else:
            with self._ledger.trial():
                answer = self._together(entry, unit, reserving=False)
            if answer is None:
                with self._ledger.trial():
                    answer = self._together(entry, unit, reserving=True)
        assert answer is not None
        if isinstance(answer, Wait):
            kept = any(group.name in self._ledger.groups for group in entry.groups)
            return replace(answer, version=version, frees=unit.uids) if kept else replace(answer, version=version)
        lost = [other for name in answer.cancelled if (other := self._units.by_name.get(name)) is not None]
        frees = tuple(uid for other in lost for uid in other.uids)
        holds = answer.holds if answer.steps or not entry.groups else _holds(answer, unit)
        return replace(answer, version=version, holds=holds, frees=frees)

    def _together(self, entry: Entry, unit: Unit, *, reserving: bool) -> Decision | None:
        """Places for all groups, one after the other, each taken at once; then nodes for tasks without cells.

        Inside a trial. Each group runs, or has its cells kept if ``reserving``. None: one of several has to wait for
        others to end, so that the cells of all are to be kept.
        """
        found: list[Bound | Preempt] = []
        steps: list[Step] = []
        for group in entry.groups:
            decision = self._one(group, unit)
            if isinstance(decision, Wait) or (isinstance(decision, Preempt) and not entry.others):
                return decision
            if isinstance(decision, Preempt) and not reserving:
                return None
            found.append(decision)
            holds = _holds(decision, unit)
            if reserving and isinstance(decision, Bound):
                assert decision.plan is not None
                # Its cells are kept, though they are free: another group of the unit has to wait.
                steps.append(Keep(decision.placement, decision.plan, decision.version, holds))
            else:
                steps.append(replace(decision, holds=holds))
            self._ledger.apply(steps[-1], final=True)
        if reserving:
            return _joint(entry, found, steps)
        nodes = self._nodes_of_loose(entry, unit)
        if isinstance(nodes, Wait):
            return nodes
        return _joint(entry, found, steps, tuple((need, nodes[need.uid]) for need in unit.loose))

    def _nodes_of_loose(self, entry: Entry, unit: Unit) -> Mapping[TaskUid, str] | Wait:
        """A node for each task without cells, beside the pods of all groups."""
        # The sets are kept up to date; sorting all nodes for a task that fits nowhere costs milliseconds.
        nowhere = any(not self._room.having(need) for need in {need.kind: need for need in unit.loose}.values())
        found = unit.loose[0] if nowhere else choose(self._room, unit.loose, self._ledger.ports.allow)
        if not isinstance(found, Need):
            return found
        if not entry.groups:
            self._room.note_nowhere(entry.needs)
        return Wait(OF_NO_GROUP, Reason(WaitCode.NOT_SUGGESTED, entry.vc, 0, 0))

    # -- a group ---------------------------------------------------------------------------------------------------

    def _one(self, group: Group, unit: Unit) -> Decision:
        needs = unit.needs_of(group)
        held = self._ledger.groups.get(group.name)
        if held is None or held.state is not State.PREEMPTING:
            return self._anew(group, needs)
        if held.group == group:
            stands = self._as_kept(held, needs)
            if stands is not None:
                return stands
        with self._room.without(need.uid for need in needs):
            return self._anew(group, needs)

    def _as_kept(self, held: Held, needs: Needs) -> Decision | None:
        """How a reservation stands; None when it is no longer good.

        Preemptors have CPU and memory kept, too; groups that were overtaken long enough may find them gone.
        """
        names = frozenset(spot.node.name for spot in held.spots)
        if not names <= self._room.suited(needs[0]):
            return None
        answer = self._ledger.decide(held.group, names)
        if isinstance(answer, Wait) or held.stored is None or answer.placement.cells != held.stored.cells:
            return None
        if self._room.node_of(needs[0].uid) is None and any(self._overfull(answer, needs)):
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
        return replace(answer, short=True) if isinstance(answer, Wait) else self._short(group, later)

    def _short(self, group: Group, where: Bound | Preempt) -> Wait:
        """There are cells, and their nodes lack something else now."""
        nodes = tuple(dict.fromkeys(pod.node for pod in where.placement.pods.values()))
        most = max(member.leaves for member in group.members)
        reason = Reason(WaitCode.NOT_SUGGESTED, group.vc, group.leaves, most, nodes=nodes)
        return Wait(group.name, reason, group.name in self._ledger.groups, short=True, version=self._ledger.version)

    def _within(self, group: Group, needs: Needs, nodes: frozenset[str]) -> Decision:
        """A decision whose pods fit on their nodes together, if need be after lower priorities there have ended."""
        answer, full = self._fitting(group, needs, nodes, {})
        instead = self._of_lower(group, needs, full) if isinstance(answer, Wait) else {}
        if instead:
            ending, _ = self._fitting(group, needs, nodes, full | instead)
            if isinstance(ending, Preempt):
                return ending
        return answer

    def _fitting(
        self, group: Group, needs: Needs, nodes: frozenset[str], full: Mapping[str, Devices]
    ) -> tuple[Decision, dict[str, Devices]]:
        """A decision whose pods fit on their nodes together, and the cells it might use of nodes that are full.

        Where cells would put more pods on a node than it has CPU or memory for, the node may then be used only for as
        many as fit, on the very cells that they were given, and the group is decided again.
        """
        full = dict(full)
        answer = self._ledger.decide(group, Parts(nodes, full) if full else nodes)
        for _ in range(TRIES):
            over = {} if isinstance(answer, Wait) else dict(self._overfull(answer, needs))
            if not over:
                return answer, full
            full |= over
            answer = self._ledger.decide(group, Parts(nodes, full))
        return self._ledger.decide(group, frozenset()), full

    def _of_lower(self, group: Group, needs: Needs, full: Mapping[str, Devices]) -> dict[str, Devices]:
        """The cells of full nodes on which pods that lack CPU or memory end a lower priority that holds enough of it.

        They are the cells of such groups and of the pods that fit, and one idle cell less than the largest pod needs:
        with enough idle cells nothing would be ended.
        """
        need, beside = largest(needs), max(member.leaves for member in group.members) - 1
        found: dict[str, Devices] = {}
        for name, used in full.items():
            for node in self._ledger.nodes[name]:
                for held, mask in node.running.items():
                    free = self._room.free(name, self._leaving([held.group.name]), need.gpu_type)
                    if held.priority < group.priority and fits(need, free):
                        found.setdefault(name, used + node.devices(node.idle())[:beside])
                        found[name] += node.devices(mask)
        return found

    def _overfull(self, answer: Bound | Preempt, needs: Needs) -> Iterator[tuple[str, Devices]]:
        """Nodes with too little room for the pods there, and the cells of those that fit."""
        leaving = list(self._leaving(answer.victims)) if isinstance(answer, Preempt) else []
        by_node: dict[str, list[tuple[Need, Devices]]] = {}
        for ordinal, pod in answer.placement.pods.items():
            by_node.setdefault(pod.node, []).append((needs[ordinal], pod.cells))
        for name, pods in by_node.items():
            fitting = self._room.that_fit(name, [need for need, _ in pods], leaving)
            if fitting < len(pods):
                yield name, tuple(index for _, cells in pods[:fitting] for index in cells)

    def _leaving(self, victims: Sequence[str]) -> Iterator[TaskUid]:
        for name in victims:
            yield from self._units.party(name).uids

    # -- nodes -----------------------------------------------------------------------------------------------------

    def suggest(self, entry: Entry) -> Collection[str]:
        """Nodes on which now at least one pod of the entry's group could be."""
        return self._nodes(self._units.by_name[entry.group.name].needs_of(entry.group), self._room.having)

    def could_use(self, entry: Entry) -> Collection[str]:
        """Nodes on which one could be if nothing ran there."""
        return self._nodes(self._units.by_name[entry.group.name].needs_of(entry.group), self._room.large_enough)

    def open_nodes(self, group: Group) -> Collection[str]:
        """Nodes that are well, and not closed by a cordon, a label or a taint for tasks on such cells."""
        return self._room.large_enough(Need(NO_TASK, 0, 0, terms=self.terms.on_cells({}, group.leaf_type)))

    @contextmanager
    def without(self, nodes: Collection[str]) -> Iterator[None]:
        """See :class:`~pai_backend.scheduling.queue.Decider`."""
        self._barred = nodes
        try:
            yield
        finally:
            self._barred = ()

    def may_profit(self, entry: Entry, nodes: Collection[str]) -> bool:
        """Whether one of its tasks could be on one of these nodes now, beside groups that need not make way for it.

        Of several groups one may have waited for cells, which a quota gives back on whatever node.
        """
        if entry.others:
            return True
        unit = self._units.by_name[entry.group.name]
        loose = {need.kind: need for need in unit.loose}.values()
        if any(not self._room.having(need).isdisjoint(nodes) for need in loose):
            return True
        kinds = {(need.kind, leaves): (need, leaves) for need, leaves in unit.pods()}
        return any(self._could_be(entry.group.priority, *kind, name) for kind in kinds.values() for name in nodes)

    def _could_be(self, priority: int, need: Need, leaves: int, name: str) -> bool:
        """Whether a node has as many leaves and as much else that is idle, or that lower priorities hold."""
        if name not in self._room.large_enough(need):
            return False
        lower: list[str] = []
        idle = 0
        for node in self._ledger.nodes.get(name, ()):
            mask = node.mask & ~node.broken
            for held, where in node.running.items():
                if held.priority < priority:
                    lower.append(held.group.name)
                else:
                    mask &= ~where
            idle = max(idle, mask.bit_count())
        return idle >= leaves and fits(need, self._room.free(name, self._leaving(lower), need.gpu_type))

    def _nodes(self, needs: Needs, by: Callable[[Need], frozenset[str]]) -> frozenset[str]:
        """Nodes on which at least one of the pods could be, by CPU, memory, labels, taints and fixed ports."""
        kinds = {need.kind: need for need in needs}
        found = [self._allowed(need, by(need)) for need in kinds.values()]
        every = found[0] if len(found) == 1 else frozenset[str]().union(*found)
        return every.difference(self._barred) if self._barred else every

    def _allowed(self, need: Need, names: frozenset[str]) -> frozenset[str]:
        if not need.fixed_ports:
            return names
        return frozenset(name for name in names if self._ledger.ports.allow(self._room.nodes[name], need))


def _holds(decision: Bound | Preempt, unit: Unit) -> Holds:
    """What the pods of a group take of their nodes."""
    if not decision.placement.pods:
        return ()
    needs = unit.needs_of(decision.placement.group)
    return tuple((needs[ordinal], pod.node) for ordinal, pod in decision.placement.pods.items())


def _joint(
    entry: Entry, found: Sequence[Bound | Preempt], steps: Sequence[Step], loose: Holds | None = None
) -> Bound | Preempt:
    """What several decisions mean together, told by the place of the first; without ``loose`` the cells are kept."""
    placement = found[0].placement if found else GroupPlace(entry.group, "", {})
    displaced = tuple(dict.fromkeys(name for each in found for name in each.displaced))
    cancelled = tuple(dict.fromkeys(name for each in found for name in each.cancelled))
    if loose is None:
        victims = tuple(dict.fromkeys(name for each in found if isinstance(each, Preempt) for name in each.victims))
        return Preempt(placement, displaced, cancelled, steps=tuple(steps), victims=victims)
    return Bound(placement, displaced, cancelled, steps=tuple(steps), holds=loose)
