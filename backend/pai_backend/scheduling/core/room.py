"""What the ledger has besides cells: CPU, memory and ports of nodes, which nodes suit a task, and the queue's entries.

Sets of nodes are remembered by what is asked of them, and judged again only where a node has changed: thousands of
tasks that wait ask for the same few things of the same thousand nodes, after each change of one of them.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from types import MappingProxyType
from typing import Generic, TypeVar

from pai_backend.model.ids import JobUid, PortLease, TaskUid, job_of, slot_of
from pai_backend.model.node import Node
from pai_backend.scheduling.cells.journal import Journal
from pai_backend.scheduling.core.decision import EntryState
from pai_backend.scheduling.request import Need
from pai_backend.scheduling.terms import Terms

MOST_NAMES = 500_000
"""Names of nodes in all remembered sets together, some 30 MB; what was asked longest ago is forgotten first."""

Asked = TypeVar("Asked", bound=Hashable)


@dataclass(slots=True)
class _Known:
    names: frozenset[str]
    seen: int


class NodeSets(Generic[Asked]):
    """For each question the nodes that it is true of. Call :meth:`changed` after a change of a node."""

    def __init__(self, true_of: Callable[[Asked, str], bool], among: Callable[[Asked], Collection[str]]) -> None:
        """``among`` are the nodes that come into question at all; ``true_of`` is asked about these only."""
        self._true_of = true_of
        self._among = among
        self._known: dict[Asked, _Known] = {}
        self._changes: dict[str, int] = {}  # node -> number of its last change, the latest last
        self._count = 0
        self._names = 0

    def changed(self, name: str) -> None:
        """The node is new, or different."""
        self._changes.pop(name, None)
        self._count += 1
        self._changes[name] = self._count

    def gone(self, name: str) -> None:
        """The node no longer exists."""
        self._changes.pop(name, None)
        self._known.clear()
        self._names = 0

    def get(self, asked: Asked) -> frozenset[str]:
        """The nodes that it is true of. Costs one question for each node that changed since it was asked last."""
        nodes, known = self._among(asked), self._known.pop(asked, None)
        if known is None:
            known = _Known(frozenset(name for name in nodes if self._true_of(asked, name)), self._count)
        else:
            self._names -= len(known.names)
            self._catch_up(asked, known, nodes)
        self._known[asked] = known
        self._names += len(known.names)
        while self._names > MOST_NAMES and len(self._known) > 1:
            self._names -= len(self._known.pop(next(iter(self._known))).names)
        return known.names

    def _catch_up(self, asked: Asked, known: _Known, nodes: Collection[str]) -> None:
        come, left = [], []
        for name, number in reversed(self._changes.items()):
            if number <= known.seen:
                break
            was, is_now = name in known.names, name in nodes and self._true_of(asked, name)
            if is_now and not was:
                come.append(name)
            elif was and not is_now:
                left.append(name)
        if come or left:
            known.names = known.names.difference(left).union(come)
        known.seen = self._count


Free = tuple[int, int, int]
"""CPUs, MiB and GPUs that are left of a node. Which GPUs is a matter of cells, and so is their number unless others,
whom no cell knows, hold some: where they do not there are ``ENOUGH``."""
ENOUGH = sys.maxsize
_Size = tuple[int, int, int, Terms, str]
"""CPUs, MiB, GPUs, terms and type of GPUs of a task."""


class Room:
    """Nodes, and what each task holds of them. A node may be overdrawn while tasks on it are being replaced."""

    def __init__(self, journal: Journal | None = None) -> None:
        self.journal = journal or Journal()
        self._nodes: dict[str, Node] = {}
        self.nodes: Mapping[str, Node] = MappingProxyType(self._nodes)
        """Changed by :meth:`set_node` and :meth:`remove_node` alone."""
        self.nowhere: set[Hashable] = set()
        """Needs of units without cells that no nodes have now; forgotten whenever something is given back."""
        self._held: dict[TaskUid, tuple[str, Need]] = {}
        self._of_job: dict[JobUid, set[TaskUid]] = {}
        self._used: dict[str, tuple[int, int, int]] = {}
        self._used_of: dict[tuple[str, str], int] = {}  # GPUs by node and the type that was asked for
        self._shared: set[str] = set()  # nodes of which others hold GPUs
        self._suited: NodeSets[Terms] = NodeSets(self._suits, lambda _: self._nodes)
        self._large: NodeSets[_Size] = NodeSets(self._is_large_enough, lambda size: self._suited.get(size[3]))
        self._free: NodeSets[_Size] = NodeSets(self._has_room, lambda size: self._suited.get(size[3]))

    def set_node(self, node: Node) -> None:
        """A node as it is now; new or changed."""
        self._nodes[node.name] = node
        if node.others.gpus:
            self._shared.add(node.name)
        else:
            self._shared.discard(node.name)
        for known in (self._suited, self._large, self._free):
            known.changed(node.name)

    def remove_node(self, name: str) -> None:
        """The node is gone. What was held there stays held until it is released. Idempotent."""
        self._shared.discard(name)
        if self._nodes.pop(name, None) is not None:
            for known in (self._suited, self._large, self._free):
                known.gone(name)

    @contextmanager
    def as_if(self, nodes: Iterable[Node]) -> Iterator[None]:
        """A what-if: these known nodes are as given, until it ends."""
        before = [(self._nodes[node.name], node) for node in nodes]
        try:
            for _, node in before:
                self.set_node(node)
            yield
        finally:
            for node, _ in before:
                self.set_node(node)

    @contextmanager
    def without(self, uids: Iterable[TaskUid]) -> Iterator[None]:
        """A what-if: these tasks hold nothing, until it ends."""
        before = {uid: held for uid in uids if (held := self._held.get(uid)) is not None}
        try:
            for uid in before:
                self._set(uid, None)
            yield
        finally:
            for uid, held in before.items():
                self._set(uid, held)

    def hold(self, need: Need, node: str) -> None:
        """The task takes what it needs there, in place of what it had. Idempotent."""
        self._set(need.uid, (node, need))

    def release(self, uid: TaskUid) -> str | None:
        """Give back what the task held; the node where that was. Idempotent."""
        held = self._held.get(uid)
        if held is None:
            return None
        self._set(uid, None)
        self.nowhere.clear()
        return held[0]

    def note_nowhere(self, needs: Hashable) -> None:
        """No nodes have now what a unit without cells needs; forgotten when what is held now is taken back."""
        if needs not in self.nowhere:
            self.nowhere.add(needs)
            self.journal.note(self.nowhere.discard, needs)

    def held(self, uid: TaskUid) -> tuple[str, Need] | None:
        """Where the task holds something, and what."""
        return self._held.get(uid)

    def used(self, name: str, gpu_type: str | None = None) -> Free:
        """CPUs, MiB and GPUs that tasks hold of a node together; of GPUs those of a type, if one is given."""
        cpus, memory_mb, gpus = self._used.get(name, (0, 0, 0))
        return cpus, memory_mb, gpus if gpu_type is None else self._used_of.get((name, gpu_type), 0)

    def node_of(self, uid: TaskUid) -> str | None:
        """Where the task holds something."""
        held = self._held.get(uid)
        return None if held is None else held[0]

    def held_by(self, job: JobUid) -> set[TaskUid]:
        """The tasks of a job that hold something."""
        return set(self._of_job.get(job, ()))

    def _set(self, uid: TaskUid, held: tuple[str, Need] | None) -> None:
        """The only change of what tasks hold; its own inverse, given what was held before."""
        before = self._held.pop(uid, None)
        self.journal.note(self._set, uid, before)
        job = job_of(uid)
        if before is not None:
            self._count(*before, -1)
            self._of_job[job].discard(uid)
            if not self._of_job[job]:
                del self._of_job[job]
        if held is not None:
            self._held[uid] = held
            self._of_job.setdefault(job, set()).add(uid)
            self._count(*held, 1)

    def _count(self, node: str, need: Need, sign: int) -> None:
        cpus, memory_mb, gpus = self._used.get(node, (0, 0, 0))
        self._used[node] = (cpus + sign * need.cpus, memory_mb + sign * need.memory_mb, gpus + sign * need.gpus)
        if need.gpus:
            of_type = node, need.gpu_type
            self._used_of[of_type] = self._used_of.get(of_type, 0) + sign * need.gpus
        if node in self._nodes:
            self._free.changed(node)

    def free(self, name: str, leaving: Iterable[TaskUid] = (), gpu_type: str = "") -> Free:
        """What is left of a node, once the tasks in ``leaving`` have left it too; of GPUs those of a type, where others
        hold some of a node that has several types.
        """
        node = self._nodes[name]
        is_apart = gpu_type in node.others.by_type
        cpus, memory_mb, gpus = self.used(name, gpu_type if is_apart else None)
        for uid in leaving:
            held = self._held.get(uid)
            if held is not None and held[0] == name:
                cpus -= held[1].cpus
                memory_mb -= held[1].memory_mb
                gpus -= held[1].gpus if not is_apart or held[1].gpu_type == gpu_type else 0
        most = most_of(node, gpu_type)
        return most[0] - cpus, most[1] - memory_mb, most[2] - gpus

    def is_free_for(self, need: Need, name: str) -> bool:
        """Whether the node has the CPU and memory now, may the task use it or not."""
        return fits(need, self.free(name, gpu_type=need.gpu_type))

    def suited(self, need: Need) -> frozenset[str]:
        """Nodes that are ready and that the task may use, whatever room they have."""
        return self._suited.get(need.terms)

    def having(self, need: Need) -> frozenset[str]:
        """Suited nodes with room for the task now."""
        return self._free.get(self.size(need))

    def large_enough(self, need: Need) -> frozenset[str]:
        """Suited nodes that would have room for the task if nothing else ran on them."""
        return self._large.get(self.size(need))

    def size(self, need: Need) -> _Size:
        """What tells tasks apart that different nodes have room for: GPUs only while others hold some."""
        gpus, gpu_type = (need.gpus, need.gpu_type) if self._shared else (0, "")
        return need.cpus, need.memory_mb, gpus, need.terms, gpu_type

    def _suits(self, terms: Terms, name: str) -> bool:
        node = self._nodes[name]
        return node.ready and terms.objection(node) is None

    def _is_large_enough(self, size: _Size, name: str) -> bool:
        most = most_of(self._nodes[name], size[4])
        return all(wanted <= there for wanted, there in zip(size[:3], most, strict=True))

    def _has_room(self, size: _Size, name: str) -> bool:
        return _fit(size[:3], self.free(name, gpu_type=size[4]))

    def that_fit(self, name: str, needs: Sequence[Need], leaving: Iterable[TaskUid] = ()) -> int:
        """How many of these tasks of a group, from the first on, may use the node and fit there together."""
        free = self.free(name, leaving, needs[0].gpu_type if needs else "")
        for count, need in enumerate(needs):
            if not fits(need, free) or name not in self.suited(need):
                return count
            free = less(free, need)
        return len(needs)


def most_of(node: Node, gpu_type: str = "") -> Free:
    """What tasks may have of a node together, beside what others hold; of GPUs as :meth:`Room.free`."""
    others = node.others
    gpus = ENOUGH
    if others.gpus:
        is_apart = gpu_type in others.by_type
        there = sum(gpu.type == gpu_type for gpu in node.gpus) if is_apart else len(node.gpus)
        gpus = there - others.gpus_of(gpu_type)
    return node.cpus - others.cpus, node.memory_mb - others.memory_mb, gpus


def less(free: Free, need: Need) -> Free:
    """What is left when the task has what it needs."""
    return free[0] - need.cpus, free[1] - need.memory_mb, free[2] - need.gpus


def fits(need: Need, free: Free) -> bool:
    """Whether there is room for a task in what is free; what a task does not ask for may be overdrawn."""
    return _fit((need.cpus, need.memory_mb, need.gpus), free)


def _fit(asked: Free, free: Free) -> bool:
    return all(wanted <= left or not wanted for wanted, left in zip(asked, free, strict=True))


class Ports:
    """Which ports of machines are leased, and to whom."""

    def __init__(self, journal: Journal | None = None) -> None:
        self._journal = journal or Journal()
        self._by_machine: dict[str, dict[int, str]] = {}
        self._by_owner: dict[str, set[tuple[str, int]]] = {}

    def reset(self, leases: Iterable[PortLease]) -> None:
        """These are all leases that exist."""
        self.drop(list(self._by_owner))
        self.add(leases)

    def add(self, leases: Iterable[PortLease]) -> None:
        """Remember leases; where a port was leased already, the newer lease counts."""
        for lease in leases:
            self._set(lease.machine, lease.port, lease.owner)

    def drop(self, owners: Iterable[str]) -> bool:
        """Forget all leases of these owners; whether there were any."""
        gone = [place for owner in dict.fromkeys(owners) for place in sorted(self._by_owner.get(owner, ()))]
        for machine, port in gone:
            self._set(machine, port, None)
        return bool(gone)

    def _set(self, machine: str, port: int, owner: str | None) -> None:
        """The only change of a lease; its own inverse, given the owner before."""
        owners = self._by_machine.setdefault(machine, {})
        before = owners.pop(port, None)
        self._journal.note(self._set, machine, port, before)
        if before is not None:
            self._by_owner[before].discard((machine, port))
            if not self._by_owner[before]:
                del self._by_owner[before]
        if owner is not None:
            owners[port] = owner
            self._by_owner.setdefault(owner, set()).add((machine, port))

    def taken(self, machine: str) -> Mapping[int, str]:
        """Port -> owner on that machine."""
        return self._by_machine.get(machine, {})

    def lacking(self, node: Node, need: Need) -> tuple[int, str] | None:
        """The first fixed port of the task, with its label, that another owner leases on the node's machine."""
        leases, owner = self.taken(node.machine), slot_of(need.uid)
        return next(((port, label) for port, label in need.fixed_ports if leases.get(port, owner) != owner), None)

    def allow(self, node: Node, need: Need) -> bool:
        """Whether no fixed port of the task is leased to another owner on the node's machine."""
        return self.lacking(node, need) is None


Follower = Callable[[EntryState | None, EntryState | None], None]
"""Called after each change with the state of one entry before and after; None is an entry that does not exist."""


class Entries:
    """All entries by name. A queue hears of each change as the ``follower``, and notes how to undo its own part."""

    def __init__(self, journal: Journal) -> None:
        self._journal = journal
        self._states: dict[str, EntryState] = {}
        self.follower: Follower | None = None

    def get(self, name: str) -> EntryState | None:
        """The entry of that name."""
        return self._states.get(name)

    def __iter__(self) -> Iterator[EntryState]:
        return iter(self._states.values())

    def set(self, name: str, after: EntryState | None) -> None:
        """The only change; None takes the entry out."""
        before = self._states.get(name)
        if after is None:
            self._journal.drop(self._states, name)
        else:
            self._journal.put(self._states, name, after)
        if self.follower is not None:
            self.follower(before, after)
