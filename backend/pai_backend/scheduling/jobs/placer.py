"""Where the tasks of jobs go, and in which order they are served.

Rules of this file: units wait in the queue, and only a pass of it (:meth:`Placer.advance`) places any. What a pass
decides is held at once, in this memory alone; the caller writes it and reports :meth:`Placer.written`, or gives it back
with :meth:`Placer.put_back`. Nothing is ended here: who has to end for whom is :meth:`Placer.preemptions`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime

from pai_backend.model.ids import JobUid, TaskUid, job_of
from pai_backend.model.job import Job, Task
from pai_backend.model.labels import NodeRule
from pai_backend.model.node import Node, Placement
from pai_backend.scheduling.config.derive import derive
from pai_backend.scheduling.config.model import ClusterConfig
from pai_backend.scheduling.core.decision import Preempt
from pai_backend.scheduling.core.ledger import Ledger
from pai_backend.scheduling.core.restore import Effects
from pai_backend.scheduling.jobs.answers import Preemption, QuotaClaim, Round, Waits, places_of, preemptions_of
from pai_backend.scheduling.jobs.deciding import JobsDecider
from pai_backend.scheduling.jobs.demand import Sizing, shared_sizing, sizing_of
from pai_backend.scheduling.jobs.history import RunTime
from pai_backend.scheduling.jobs.reasons import WaitReasons
from pai_backend.scheduling.jobs.unit import Recovered, Unit, Units, needs_of, recovered_units, turn_of, units_of
from pai_backend.scheduling.queue import Policy, Queue
from pai_backend.scheduling.terms import NodeRules


class Placer:
    """The queue of jobs in front of the cluster, and what its tasks hold.

    Without a configuration one is derived from the nodes. ``run_time`` tells how long jobs run, where that is known.
    """

    def __init__(
        self,
        config: ClusterConfig | None = None,
        *,
        cells_for_all: bool = False,
        rules: NodeRules | None = None,
        policy: Policy | None = None,
        run_time: RunTime = lambda _: None,
    ) -> None:
        self.config = config
        self.run_time = run_time
        self._cells_for_all = cells_for_all
        self._rules = rules or NodeRules()
        self.ledger = Ledger(config or derive(()))
        self.sizing = self._sizing()
        self.units = Units()
        self.room = self.ledger.room
        self.decider = JobsDecider(self.ledger, self.units)
        self.queue = Queue(self.ledger, policy, ends=self.ends, decider=self.decider)
        self._reasons = WaitReasons(self.queue, self.decider, self.room)
        self._recovered: list[Recovered] = []
        self._changed: set[str] = set()
        """Nodes that are to be looked at."""
        self._look_at_all = True
        self._pending: set[str] = set()
        """Units that were decided and are not written yet."""
        self._since: dict[TaskUid, datetime] = {}
        """When running tasks started."""
        self._placed_at: dict[str, datetime] = {}
        self._changed_claims: dict[str, None] = {}
        self._changed_reasons: dict[JobUid, None] = {}
        self._lost: dict[JobUid, None] = {}

    def _sizing(self) -> Sizing:
        if self.config is None:
            return shared_sizing(self._rules)
        return sizing_of(self.config, cells_for_all=self._cells_for_all, rules=self._rules)

    def rule(self, place: Placement) -> NodeRule:
        """What the administrator says of nodes for a task that has this place."""
        return self._rules.of_placed(place, self.config)

    # -- nodes and configuration -----------------------------------------------------------------------------------

    def set_node(self, node: Node) -> None:
        """A node as it is now; new or changed."""
        if self.room.nodes.get(node.name) != node:
            self.room.set_node(node)
            self._changed.add(node.name)

    def remove_node(self, name: str) -> None:
        """The node is gone. What was held there stays held until it is released."""
        self.room.remove_node(name)
        self._changed.add(name)

    def catch_up(self) -> None:
        """Take changes of nodes over into the cells, as all that decides does first; for what must be told before."""
        if self._changed or self._look_at_all:
            changed, self._changed = self._changed, set()
            self.room.nowhere.clear()
            self._reasons.nodes_changed()
            if self.config is None:
                derived = derive(self.room.nodes.values())
                if derived != self.ledger.config:
                    self._reconfigure(derived, {})
            for name in self.ledger.nodes if self._look_at_all else changed.intersection(self.ledger.nodes):
                self._set_health(name)
            self._look_at_all = False
            self.queue.nodes_changed(changed)
        if self._recovered:
            self._finish_recovery()
        self._changed_claims.update(dict.fromkeys(self.queue.upgrade()))

    def _set_health(self, name: str) -> None:
        node = self.room.nodes.get(name)
        if node is None or not node.ready:
            self.queue.set_node_health(name, healthy=False)
            return
        have, missing = {gpu.index for gpu in node.gpus}, []
        for cells in self.ledger.nodes[name]:
            sku = self.sizing.skus.get(cells.chain.leaf_type)
            if sku is None or sku.gpu:
                missing += [index for index in cells.indexes if index not in have]
        self.queue.set_node_health(name, healthy=True, bad_devices=missing)

    def reconfigure(self, config: ClusterConfig | None, jobs: Iterable[Job]) -> Effects:
        """Another configuration, at once; None: derived from the nodes. Nothing that runs is ended by it.

        ``jobs`` are those that hold something: a derived configuration has one virtual cluster for all of them, and
        a written one those that they name. Units that wait are sorted in again.
        """
        self.config = config
        self.sizing = self._sizing()
        vcs: dict[str, str] = {}
        for job in jobs:
            for unit in self.units.of_job(job.uid):
                if unit.name in self.queue.running:
                    self._move_to(unit, self.sizing.vc(job.spec))
                    vcs.update(dict.fromkeys((party.name for party in unit.parties), self.sizing.vc(job.spec)))
        effects = self._reconfigure(config or derive(self.room.nodes.values()), vcs)
        self._line_up_anew()
        return effects

    def _reconfigure(self, config: ClusterConfig, vcs: Mapping[str, str]) -> Effects:
        nowhere = self._without_any_place()
        effects = self.ledger.reconfigure(config, vcs)
        self.queue.catch_up()
        for name in nowhere ^ self._without_any_place():
            self._changed_reasons[self.units.by_name[name].job] = None
        for name in effects.cancelled:
            unit = self.units.by_name[name]
            if self.ledger.give_back(unit.uids):
                self._lost[unit.job] = None
            self._changed_reasons[unit.job] = None
        self._changed_claims.update(dict.fromkeys((*effects.displaced, *effects.regained)))
        self._look_at_all = True
        return effects

    def _without_any_place(self) -> set[str]:
        """Who waits for what the configuration does not have."""
        return {name for name, ticket in self.queue.waiting.items() if ticket.line is None}

    def _move_to(self, unit: Unit, vc: str) -> None:
        """A running unit belongs to this virtual cluster from now on."""
        parties = tuple(replace(each, group=replace(each.group, vc=vc)) for each in unit.parties)
        groups = tuple(each.group for each in parties) or (replace(unit.entry.group, vc=vc),)
        entry = replace(unit.entry, group=groups[0], others=groups[1:])
        self.units.know(replace(unit, parties=parties, entry=entry), self.units.jobs[unit.job])
        self.queue.adopt(entry)

    def _line_up_anew(self) -> None:
        """Who waits asks for other cells now."""
        jobs: dict[JobUid, tuple[Job, list[Task]]] = {}
        for name in [*self.queue.waiting]:
            unit = self.units.by_name[name]
            job = self.units.jobs[unit.job]
            tasks = [task for uid in unit.uids if (task := job.task(uid)) is not None]
            jobs.setdefault(job.uid, (job, []))[1].extend(tasks)
            self._leave(unit)
        for job, waiting in jobs.values():
            for unit in units_of(job, waiting, self.sizing):
                self.units.know(unit, job)
                self.queue.line_up(unit.entry)
            self._changed_reasons[job.uid] = None

    # -- what is stored --------------------------------------------------------------------------------------------

    def recover(self, jobs: Iterable[Job]) -> None:
        """Remember what stored jobs hold, in order of submission. Of an empty placer."""
        for job in sorted(jobs, key=lambda each: (each.submitted_at, each.uid)):
            needs = needs_of(job, self.sizing)
            for task in job.tasks:
                place = task.placement if task.holds_place else task.reserved
                if place is not None:
                    self.ledger.hold([(needs[task.uid], place.node)])
            self._remember_starts(job.tasks)
            for each in recovered_units(job, self.sizing):
                self.units.know(each.unit, job)
                self._recovered.append(each)
        running = [each for each in self._recovered if not each.reserved]
        result = self.ledger.restore([place for each in running for place in each.placements])
        for each in running:
            self.queue.adopt(each.unit.entry)
        self._changed_claims.update(dict.fromkeys(result.displaced))

    def _finish_recovery(self) -> None:
        """Keep cells for those who had them kept, before those who had lost their claim may have it again."""
        recovered, self._recovered = self._recovered, []
        for place in (place for each in recovered if not each.reserved for place in each.placements):
            if place.displaced:
                self.ledger.displace(place.group.name)
        for each in recovered:
            if not each.reserved or self.units.by_name.get(each.unit.name) is not each.unit:
                continue
            if all(self.ledger.reserve(place) for place in each.placements):
                self.queue.adopt_preemptor(each.unit.entry)
            else:
                self._lost[each.unit.job] = None
                self.ledger.give_back(each.unit.uids)
                self.units.forget(each.unit.name)
                for place in each.placements:
                    self.ledger.release(place.group.name)
        self.queue.catch_up()

    def wait(self, job: Job, tasks: Sequence[Task]) -> None:
        """These tasks of the job wait for a place, and no others; their turn is the job's. Idempotent.

        Cells are kept again first for whom they were kept before a restart.
        """
        if self._recovered or self._changed or self._look_at_all:
            self.catch_up()
        if self._is_known(job, tasks):
            return
        wanted = {unit.name: unit for unit in units_of(job, tasks, self.sizing)}
        for unit in self.units.of_job(job.uid):
            new = wanted.get(unit.name)
            held = unit.name in self._pending or unit.name in self.queue.running
            if held or (new is not None and self._is_same(unit, new)):
                wanted.pop(unit.name, None)
            else:
                self._leave(unit)
        for unit in wanted.values():
            self.units.know(unit, job)
            self.queue.line_up(unit.entry)
            if not job.why:
                self._changed_reasons[job.uid] = None

    def _is_known(self, job: Job, tasks: Sequence[Task]) -> bool:
        """Whether just these tasks wait already, in this turn: of many tasks, few change at a time."""
        waiting: set[TaskUid] = set()
        decided: set[TaskUid] = set()
        for unit in self.units.of_job(job.uid):
            if unit.name in self._pending:
                decided.update(unit.uids)
            elif unit.name not in self.queue.running:
                if unit.turn != turn_of(job):
                    return False
                waiting.update(unit.uids)
        return waiting == {task.uid for task in tasks} - decided

    def _is_same(self, unit: Unit, new: Unit) -> bool:
        """Whether a unit waits for what it waited for. One that has cells kept has its turn already."""
        same = unit.uids == new.uids and unit.entry.needs == new.entry.needs and unit.entry.groups == new.entry.groups
        return same and (unit.entry.key == new.entry.key or unit.name not in self.queue.waiting)

    def keep_only(self, uid: JobUid, tasks: Iterable[Task]) -> bool:
        """Give back what the job's tasks, as they are stored, no longer hold; whether that was anything.

        Cells of a group come back when the last of its tasks has ended; CPU and memory of each task at once.
        """
        tasks = list(tasks)
        self._remember_starts(tasks)
        alive = {task.uid for task in tasks if task.holds_place or task.reserved is not None}
        for unit in self.units.of_job(uid):
            if unit.name in self._pending:
                alive.update(unit.uids)
        return self.give_back(uid, self.room.held_by(uid) - alive)

    def give_back(self, job: JobUid, uids: Collection[TaskUid]) -> bool:
        """What these tasks of the job hold is free again; whether that was anything. Idempotent."""
        nodes = self.ledger.give_back(uids)
        if not nodes:
            return False
        held = self.room.held_by(job)
        for unit in self.units.of_job(job):
            if unit.name in self.queue.waiting or held.intersection(unit.uids):
                for party in unit.parties if unit.name in self.queue.running else ():
                    if not held.intersection(party.uids):
                        self.queue.part_ended(party.name)
            elif unit.name not in self.queue.claims or not self.queue.claims[unit.name].held_back:
                self._leave(unit)
        self.queue.nodes_changed(nodes)
        self._changed_reasons.update((self.units.by_name[name].job, None) for name in self.queue.claims)
        self._changed_claims.update(dict.fromkeys(self.queue.upgrade()))
        return True

    def forget(self, uid: JobUid) -> None:
        """The job is over. Idempotent."""
        for unit in self.units.of_job(uid):
            self._leave(unit)

    def _leave(self, unit: Unit) -> None:
        """The unit neither waits nor runs any more."""
        self.queue.release(unit.name)
        self.queue.nodes_changed(self.ledger.give_back(unit.uids))
        self.units.forget(unit.name)
        self._pending.discard(unit.name)
        self._reasons.asked([unit.name])
        self._placed_at.pop(unit.name, None)
        for uid in unit.uids:
            self._since.pop(uid, None)

    def _remember_starts(self, tasks: Iterable[Task]) -> None:
        for task in tasks:
            if task.holds_place and task.started_at is not None:
                self._since[task.uid] = task.started_at

    def ends(self, name: str) -> datetime | None:
        """When a running group is expected to have ended, as far as its job's run time is known."""
        unit = self.units.by_name.get(name)
        lasts = None if unit is None else self.run_time(self.units.job_of(name))
        if unit is None or lasts is None:
            return None
        starts = [self._since[uid] for uid in unit.uids if uid in self._since]
        start = max(starts) if starts else self._placed_at.get(unit.name)
        return None if start is None else start + lasts

    # -- deciding --------------------------------------------------------------------------------------------------

    def advance(self, now: datetime) -> Round:
        """One pass of the queue: everything that can start does, up to a bound on what is asked."""
        self.catch_up()
        self._reasons.begin()
        answer = self.queue.advance(now)
        self._changed_claims.update(dict.fromkeys(answer.upgraded))
        started, kept = [], []
        for each in answer.decided:
            unit = self.units.by_name[each.placement.group.name]
            self._changed_claims.update(dict.fromkeys(each.displaced))
            self._pending.add(unit.name)
            if isinstance(each, Preempt):
                kept.append(unit)
            else:
                started.append(unit)
                self._placed_at[unit.name] = now
        refused = answer.refused
        for name, wait in refused.items():
            self._reasons.refused(self.units.by_name[name], wait)
        self._reasons.asked((*refused, *(unit.name for unit in (*started, *kept))))
        for name in (*refused, *answer.returned, *answer.held_back, *answer.moved_up):
            self._changed_reasons[self.units.by_name[name].job] = None
        return Round(tuple(started), tuple(kept), answer.more, answer.look_again)

    def written(self, unit: Unit) -> None:
        """What was decided about the unit is stored."""
        self._pending.discard(unit.name)

    def put_back(self, unit: Unit) -> None:
        """What was decided about the unit could not be written: it waits again, where it stood."""
        self._pending.discard(unit.name)
        self.queue.nodes_changed(self.ledger.give_back(unit.uids))
        if unit.name in self.queue.running:
            self.queue.put_back(unit.name)
        elif unit.name in self.queue.claims:
            self.queue.lose(self.queue.claims[unit.name])

    def defer(self, unit: Unit, why: str) -> None:
        """The unit's place lacks something that is not known here: it waits until nodes or cells change."""
        self._pending.discard(unit.name)
        self.queue.nodes_changed(self.ledger.give_back(unit.uids))
        self.queue.defer(unit.name)
        self._reasons.defer(unit, why)
        self._changed_reasons[unit.job] = None

    def places(self, unit: Unit) -> dict[TaskUid, Placement]:
        """Where the unit's tasks are or will be, without ports; see :func:`places_of`."""
        return places_of(unit, self.ledger, self.sizing)

    def ask_for_nodes_again(self) -> None:
        """Something that nodes have besides cells, and that is not known here, may be free again."""
        self.room.nowhere.clear()
        self.queue.nodes_changed()

    def has_claim(self, unit: Unit) -> bool:
        """Whether cells are kept for the unit."""
        return unit.name in self.queue.claims

    # -- what others must be told ----------------------------------------------------------------------------------

    def waiting(self, uid: JobUid) -> list[Unit]:
        """The units of a job that have no place, or one that is not free yet, in order."""
        found = [unit for unit in self.units.of_job(uid) if unit.name not in self.queue.running]
        return sorted(found, key=lambda unit: unit.entry.key)

    def reserved(self, uid: JobUid) -> dict[TaskUid, Placement]:
        """The places that are kept for tasks of a job while others end there."""
        found: dict[TaskUid, Placement] = {}
        for unit in self.waiting(uid):
            claim = self.queue.claims.get(unit.name)
            if claim is not None and not claim.held_back:
                found.update(self.places(unit))
        return found

    def wait_reason(self, unit: Unit) -> Waits:
        """Why a unit that waits has no place yet."""
        return self._reasons.waits(unit, self.sizing)

    def take_changed_reasons(self) -> list[JobUid]:
        """Jobs whose reason to wait may be another one since the last call, or has never been told."""
        jobs, self._changed_reasons = list(self._changed_reasons), {}
        return jobs

    def take_lost(self) -> list[JobUid]:
        """Jobs whose reservation was given up since the last call; they are decided again."""
        jobs, self._lost = list(self._lost), {}
        return jobs

    def preemptions(self) -> list[Preemption]:
        """Every running group that must end now for one that keeps its cells; the same until it has ended."""
        return list(preemptions_of(self.queue, self.units))

    def take_changed_claims(self) -> list[QuotaClaim]:
        """Groups that lost their claim on the quota since the last call, or got it back."""
        changed, self._changed_claims = self._changed_claims, {}
        found = []
        for name in changed:
            held = self.ledger.groups.get(name)
            if held is not None:
                uids = self.units.party(name).uids
                found.append(QuotaClaim(job_of(uids[0]), uids, bool(held.displaced_by)))
        return found
