"""Where the tasks of jobs go: cells first, within what CPU, memory and ports allow.

Rules of this file: what is answered is held at once, in this memory alone; the caller writes it, or gives it back with
:meth:`Placer.keep_only`. Several groups of one gang are placed together or not at all. Others are preempted for cells,
never for CPU or memory. Nothing is ended here: who has to end for whom is :meth:`Placer.preemptions`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

from pai_backend.model.errors import PaiError
from pai_backend.model.ids import JobUid, TaskUid, job_of
from pai_backend.model.job import Job, Task
from pai_backend.model.node import Node
from pai_backend.scheduling.cells.held import Held, State
from pai_backend.scheduling.config.derive import derive
from pai_backend.scheduling.config.model import ClusterConfig
from pai_backend.scheduling.core.cluster import Cluster
from pai_backend.scheduling.core.group import Bound, Decision, Placement, Preempt, Wait
from pai_backend.scheduling.core.place import displace
from pai_backend.scheduling.core.reconfigure import Effects
from pai_backend.scheduling.core.restore import RECONFIGURED
from pai_backend.scheduling.jobs import words
from pai_backend.scheduling.jobs.answers import Found, Kept, Lack, Place, Waits
from pai_backend.scheduling.jobs.demand import Ask, Party, Sizing, Wish, shared_sizing, sizing_of, wish_of
from pai_backend.scheduling.jobs.linear import Allows, Room
from pai_backend.scheduling.jobs.stored import Stored, stored_groups
from pai_backend.scheduling.jobs.terms import NodeRules

TRIES = 32
"""How often a group is decided again because a node lacks CPU or memory for all pods that would be put there."""

Nodes = Collection[str] | Mapping[str, Collection[int] | None]


@dataclass(frozen=True)
class Preemption:
    """Running tasks that must make way, and for whom."""

    job: JobUid
    uids: tuple[TaskUid, ...]
    by: str
    priority: int


@dataclass(frozen=True)
class Claim:
    """A group whose claim on its quota changed: without it, it runs on opportunistically."""

    job: JobUid
    uids: tuple[TaskUid, ...]
    displaced: bool


def anywhere(node: Node, ask: Ask) -> bool:
    """An ``allows`` for when nothing but CPU and memory counts."""
    return True


class Placer:
    """The memory of what is where, and who decides. Without a configuration one is derived from the nodes."""

    def __init__(
        self, config: ClusterConfig | None = None, *, cells_for_all: bool = False, rules: NodeRules | None = None
    ) -> None:
        self.config = config
        self.room = Room()
        self._cells_for_all = cells_for_all
        self._rules = rules or NodeRules()
        self.cluster = Cluster(config or derive(()))
        self.sizing = self._sizing()
        self._parties: dict[str, Party] = {}
        self._groups: dict[JobUid, dict[str, None]] = {}
        self._tasks: dict[JobUid, set[TaskUid]] = {}
        self._kept: dict[str, None] = {}
        self._recovered: list[Stored] = []
        self._nodes_changed = True
        self._restated: dict[str, None] = {}
        self._lost: dict[JobUid, None] = {}

    def _sizing(self) -> Sizing:
        if self.config is None:
            return shared_sizing(self._rules)
        return sizing_of(self.config, cells_for_all=self._cells_for_all, rules=self._rules)

    # -- nodes and configuration -----------------------------------------------------------------------------------

    def set_node(self, node: Node) -> None:
        """A node as it is now; new or changed."""
        self.room.set_node(node)
        self._nodes_changed = True

    def remove_node(self, name: str) -> None:
        """The node is gone. What was held there stays held until it is released."""
        self.room.remove_node(name)
        self._nodes_changed = True

    def catch_up(self) -> None:
        """Take changes of nodes over into the cells. To be called before deciding, once all nodes are known."""
        if self._nodes_changed:
            self._nodes_changed = False
            if self.config is None:
                derived = derive(self.room.nodes.values())
                if derived != self.cluster.config:
                    self._reconfigure(derived, {})
            for name in self.cluster.nodes:
                self._set_health(name)
        if self._recovered:
            self._finish_recovery()
        self._restated.update(dict.fromkeys(self.cluster.upgrade()))

    def _finish_recovery(self) -> None:
        """Keep cells for those who had them kept, before those who had lost their claim may have it again."""
        recovered, self._recovered = self._recovered, []
        for each in recovered:
            held = self.cluster.groups.get(each.placement.group.name)
            if not each.reserved and each.placement.displaced and held is not None and not held.displaced_by:
                displace(self.cluster.holding, held, RECONFIGURED)
        for each in recovered:
            name = each.placement.group.name
            if not each.reserved or name not in self._parties:
                continue
            if self.cluster.reserve(each.placement):
                self._kept[name] = None
            else:
                self._lose(name)

    def _set_health(self, name: str) -> None:
        node = self.room.nodes.get(name)
        if node is None or not node.ready:
            self.cluster.set_node_health(name, healthy=False)
            return
        have, missing = {gpu.index for gpu in node.gpus}, []
        for cells in self.cluster.nodes[name]:
            sku = self.sizing.skus.get(cells.chain.leaf_type)
            if sku is None or sku.gpu:
                missing += [index for index in cells.indexes if index not in have]
        self.cluster.set_node_health(name, healthy=True, bad_devices=missing)

    def reconfigure(self, config: ClusterConfig | None, jobs: Iterable[Job]) -> Effects:
        """Another configuration, at once; None: derived from the nodes. Nothing that runs is ended by it.

        ``jobs`` are those that hold something: a derived configuration has one virtual cluster for all of them, and
        a written one those that they name.
        """
        self.config = config
        self.sizing = self._sizing()
        vcs = {}
        for job in jobs:
            for name in self._groups.get(job.uid, ()):
                party, vcs[name] = self._parties[name], self.sizing.vc(job.spec)
                self._parties[name] = replace(party, group=replace(party.group, vc=vcs[name]))
        effects = self._reconfigure(config or derive(self.room.nodes.values()), vcs)
        self._nodes_changed = True
        return effects

    def _reconfigure(self, config: ClusterConfig, vcs: Mapping[str, str]) -> Effects:
        effects = self.cluster.reconfigure(config, vcs)
        for name in effects.cancelled:
            self._lose(name)
        self._restated.update(dict.fromkeys((*effects.displaced, *effects.regained)))
        return effects

    # -- memory ----------------------------------------------------------------------------------------------------

    def recover(self, jobs: Iterable[Job]) -> None:
        """Remember what stored jobs hold, in order of submission. To be called once, before anything is decided."""
        for job in sorted(jobs, key=lambda each: (each.submitted_at, each.uid)):
            wish = wish_of(job, job.tasks, self.sizing)
            asks = {ask.uid: ask for ask in (*wish.loose, *(ask for each in wish.parties for ask in each.asks))}
            for task in job.tasks:
                place = task.placement if task.holds_place else task.reserved
                if place is not None:
                    self._hold(job.uid, asks[task.uid], place.node)
            for stored in stored_groups(job, self.sizing):
                self._remember(job.uid, stored.party)
                self._recovered.append(stored)
        running = [each.placement for each in self._recovered if not each.reserved]
        result = self.cluster.restore(running)
        self._restated.update(dict.fromkeys(result.displaced))

    def _hold(self, job: JobUid, ask: Ask, node: str) -> None:
        self.room.hold(ask, node)
        self._tasks.setdefault(job, set()).add(ask.uid)

    def _remember(self, job: JobUid, party: Party) -> None:
        self._parties[party.name] = party
        self._groups.setdefault(job, {})[party.name] = None

    def keep_only(self, uid: JobUid, tasks: Iterable[Task]) -> bool:
        """Give back what the job's tasks, as they are stored, no longer hold; whether that was anything.

        Cells of a group come back when the last of its tasks has ended; CPU and memory of each task at once.
        """
        alive = {task.uid for task in tasks if task.holds_place or task.reserved is not None}
        return self.give_back(uid, self._tasks.get(uid, set()) - alive)

    def give_back(self, job: JobUid, uids: Collection[TaskUid]) -> bool:
        """What these tasks of the job hold is free again; whether that was anything. Idempotent."""
        held = self._tasks.get(job, set())
        if not held.intersection(uids):
            return False
        for uid in uids:
            self.room.release(uid)
        held.difference_update(uids)
        ended = [name for name in self._groups.get(job, ()) if not held.intersection(self._parties[name].uids)]
        for name in ended:
            self._drop(job, name)
        if not held:
            self._tasks.pop(job)
            self._groups.pop(job, None)
        if ended:
            self._restated.update(dict.fromkeys(self.cluster.upgrade()))
        return True

    def _drop(self, job: JobUid, name: str) -> None:
        self.cluster.release(name)
        self._kept.pop(name, None)
        party = self._parties.pop(name)
        self._groups.get(job, {}).pop(name, None)
        for uid in party.uids:
            self.room.release(uid)
            self._tasks.get(job, set()).discard(uid)

    def _lose(self, name: str) -> None:
        """A reservation is gone: its job is to be decided anew."""
        if name in self._parties:
            job = job_of(self._parties[name].uids[0])
            self._drop(job, name)
            self._lost[job] = None

    # -- deciding --------------------------------------------------------------------------------------------------

    def place(self, job: Job, tasks: Iterable[Task], allows: Allows = anywhere) -> Found | Kept | Waits:
        """A place for all of these tasks, held at once; or places kept while others end; or why not."""
        wish = wish_of(job, tasks, self.sizing)
        types = dict.fromkeys(chain.leaf_type for chain in self.cluster.chains.values())
        unknown = next((each.group for each in wish.parties if each.group.leaf_type not in types), None)
        if self.sizing.shared and unknown is not None and (unknown.leaf_type or not types):
            self._give_up(job.uid, wish)
            return Waits(Lack.NEVER, words.about_type(unknown.leaf_type, list(types)))
        try:
            return self._place(job.uid, wish, allows)
        except PaiError as error:
            self._give_up(job.uid, wish)
            return Waits(Lack.NEVER, f"{error.message}. {error.hint}".rstrip())

    def _place(self, uid: JobUid, wish: Wish, allows: Allows) -> Found | Kept | Waits:
        places: dict[TaskUid, Place] = {}
        for party in wish.parties:
            answer = self._settled(party) or self._decide(party, allows)
            if isinstance(answer, Waits):
                self._give_up(uid, wish)
                return answer
            if not isinstance(answer, Placement):
                self._commit(uid, party, answer)
                answer = answer.placement
            places.update(self._places(party, answer))
        kept = [each.name for each in wish.parties if each.name in self._kept]
        if kept:
            victims = tuple(dict.fromkeys(held.group.name for name in kept for held in self._victims(name)))
            return Kept(places, victims, words.about_preempting(victims))
        found = self.room.first_fit(wish.loose, allows)
        if isinstance(found, Ask):
            self._give_up(uid, wish)
            return Waits(Lack.LINEAR, words.about_room(found, len(wish.loose), list(self.room.nodes.values())))
        for ask in wish.loose:
            self._hold(uid, ask, found[ask.uid])
            places[ask.uid] = Place(found[ask.uid])
        return Found(places)

    def _settled(self, party: Party) -> Placement | None:
        """The place of a group that has it since an earlier round, because others of its gang had to wait."""
        held = self.cluster.groups.get(party.name)
        return held.stored if held is not None and held.state is not State.PREEMPTING else None

    def _decide(self, party: Party, allows: Allows) -> Bound | Preempt | Waits:
        if party.name in self._kept:
            stands = self._as_reserved(party)
            if stands is not None:
                return stands
            self._drop(job_of(party.uids[0]), party.name)
        now = self._suited(party, allows, by=self.room.having)
        answer = self._within(party, now)
        if isinstance(answer, Bound):
            return answer
        could = self._suited(party, allows, by=self.room.large_enough)
        answer = self._within(party, could)
        if isinstance(answer, Preempt):
            return answer
        if isinstance(answer, Wait):
            said = words.about_cells(party.group, answer.reason, party.asks[0], self.room.nodes)
            return Waits(Lack.CELLS, said, answer.reason)
        ask = max(party.asks, key=lambda each: (each.cpus, each.memory_mb))
        return Waits(Lack.LINEAR, words.about_room(ask, len(party.asks), list(self.room.nodes.values())))

    def _as_reserved(self, party: Party) -> Bound | Preempt | None:
        """How a reservation stands; None when it is no longer good."""
        held = self.cluster.groups.get(party.name)
        names = {spot.node.name for spot in held.spots} if held is not None else set()
        if held is None or not names <= self.room.suited(party.asks[0]):
            return None
        answer = self.cluster.try_place(party.group, frozenset(names))
        same = not isinstance(answer, Wait) and held.stored is not None and answer.placement.pods == held.stored.pods
        return answer if same and not isinstance(answer, Wait) else None

    def _suited(self, party: Party, allows: Allows, by: Callable[[Ask], frozenset[str]]) -> frozenset[str]:
        """Nodes on which at least one of the pods could be, by CPU, memory, labels, taints and fixed ports."""
        found: set[str] = set()
        kinds = {ask.kind: ask for ask in party.asks}
        for ask in kinds.values():
            found.update(name for name in by(ask) if allows(self.room.nodes[name], ask))
        return frozenset(found)

    def _within(self, party: Party, nodes: frozenset[str]) -> Decision:
        """A decision whose pods fit on their nodes together.

        Where cells would put more pods on a node than it has CPU or memory for, the node may then be used only for as
        many as fit, on the very cells that they were given, and the group is decided again.
        """
        allowed: Nodes = nodes
        answer = self.cluster.try_place(party.group, allowed)
        for _ in range(TRIES):
            if isinstance(answer, Wait):
                return answer
            over = dict(self._overfull(party, answer))
            if not over:
                return answer
            have = allowed if isinstance(allowed, Mapping) else dict.fromkeys(allowed)
            allowed = {**have, **over}
            answer = self.cluster.try_place(party.group, allowed)
        return self.cluster.try_place(party.group, frozenset())

    def _overfull(self, party: Party, answer: Bound | Preempt) -> Iterator[tuple[str, tuple[int, ...]]]:
        """Nodes with too little room for the pods there, and the cells of those that fit."""
        victims = answer.victims if isinstance(answer, Preempt) else ()
        leaving = [uid for name in victims if name in self._parties for uid in self._parties[name].uids]
        by_node: dict[str, list[tuple[Ask, tuple[int, ...]]]] = {}
        for pod in answer.placement.pods:
            by_node.setdefault(pod.node, []).append((party.asks[pod.ordinal], pod.devices))
        for name, pods in by_node.items():
            fitting = self.room.that_fit(name, [ask for ask, _ in pods], leaving)
            if fitting < len(pods):
                yield name, tuple(index for _, devices in pods[:fitting] for index in devices)

    def _commit(self, uid: JobUid, party: Party, answer: Bound | Preempt) -> None:
        self.cluster.commit(answer)
        for name in answer.cancelled:
            self._kept.pop(name, None)
            self._lose(name)
        self._restated.update(dict.fromkeys(answer.displaced))
        self._remember(uid, party)
        if isinstance(answer, Preempt):
            self._kept[party.name] = None
        else:
            self._kept.pop(party.name, None)
        for pod in answer.placement.pods:
            self._hold(uid, party.asks[pod.ordinal], pod.node)

    def _places(self, party: Party, placement: Placement) -> Iterator[tuple[TaskUid, Place]]:
        chain = self.cluster.chains[placement.chain]
        sku = self.sizing.skus.get(chain.leaf_type)
        each = 1 if sku is None else sku.gpu
        for pod in placement.pods:
            ask = party.asks[pod.ordinal]
            devices = [leaf * each + step for leaf in pod.devices for step in range(each)]
            gpus = tuple(devices[: ask.gpus])
            yield ask.uid, Place(pod.node, gpus, pod.devices, placement.chain, pod.owned)

    def _give_up(self, uid: JobUid, wish: Wish) -> None:
        for party in wish.parties:
            if party.name in self._parties:
                self._drop(uid, party.name)

    # -- what others must be told ----------------------------------------------------------------------------------

    def _victims(self, name: str) -> list[Held]:
        """Who still runs on cells that are kept for this group."""
        held = self.cluster.groups[name]
        found: dict[Held, None] = {}
        for spot in held.spots:
            found.update((other, None) for other, mask in spot.node.running.items() if mask & spot.mask)
        return sorted(found, key=lambda other: other.serial)

    def preemptions(self) -> list[Preemption]:
        """Every running group that must end now for one that keeps its cells; the same until it has ended."""
        found = []
        for name in self._kept:
            by, priority = name.rpartition("/")[0], self.cluster.groups[name].group.priority
            for held in self._victims(name):
                party = self._parties[held.group.name]
                found.append(Preemption(job_of(party.uids[0]), party.uids, by, priority))
        return found

    def claims(self) -> list[Claim]:
        """Groups that lost their claim on the quota since the last call, or got it back."""
        changed, self._restated = self._restated, {}
        found = []
        for name in changed:
            held, party = self.cluster.groups.get(name), self._parties.get(name)
            if held is not None and party is not None:
                found.append(Claim(job_of(party.uids[0]), party.uids, bool(held.displaced_by)))
        return found

    def lost(self) -> list[JobUid]:
        """Jobs whose reservation was given up since the last call, to be decided anew."""
        jobs, self._lost = list(self._lost), {}
        return jobs
