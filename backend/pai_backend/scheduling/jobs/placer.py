"""Where the tasks of jobs go, and in which order they are served.

Rules of this file: units wait in the queue, and only a pass of it (:meth:`Placer.advance`) places any. What a pass
decides is held at once, in this memory alone; the caller writes it and reports :meth:`Placer.written`, or gives it back
with :meth:`Placer.put_back`. Nothing is ended here: who has to end for whom is :meth:`Placer.preemptions`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import datetime
from functools import partial

from pai_backend.model.booking import Booking
from pai_backend.model.ids import JobUid, TaskUid
from pai_backend.model.job import Job, Task
from pai_backend.model.node import Node, Placement
from pai_backend.scheduling.config.derive import derive
from pai_backend.scheduling.config.model import ClusterConfig
from pai_backend.scheduling.core.decision import Preempt
from pai_backend.scheduling.core.ledger import Ledger
from pai_backend.scheduling.core.restore import Effects
from pai_backend.scheduling.jobs.answers import (
    Noted,
    Preemption,
    QuotaClaim,
    Round,
    Waits,
    claims_of,
    places_of,
    preemptions_of,
)
from pai_backend.scheduling.jobs.deciding import JobsDecider
from pai_backend.scheduling.jobs.demand import sizing_of
from pai_backend.scheduling.jobs.history import RunTime, Starts, Turns
from pai_backend.scheduling.jobs.reasons import WaitReasons
from pai_backend.scheduling.jobs.unit import Recovered, Unit, Units, needs_of, recovered_units, turn_of, units_of
from pai_backend.scheduling.queue import Policy, Queue
from pai_backend.scheduling.queue.booked import RunSpan
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
        self.likely: RunTime = run_time
        """How long a job will rather run than not, for the order of the queue."""
        self.turns = Turns()
        self.rules = rules or NodeRules()
        self._sizing_of = partial(sizing_of, cells_for_all=cells_for_all, rules=self.rules)
        self.ledger = Ledger(config or derive(()))
        self.sizing = self._sizing_of(config)
        self.units = Units()
        self.room = self.ledger.room
        self.decider = JobsDecider(self.ledger, self.units)
        self.decider.terms = self.sizing.terms
        self.queue = Queue(self.ledger, policy, ends=self.ends, decider=self.decider, spans=self._span)
        self._reasons = WaitReasons(self.queue, self.decider, self.room)
        self._recovered: list[Recovered] = []
        self._changed: set[str] = set()
        """Nodes that are to be looked at."""
        self._look_at_all = True
        self._pending: set[str] = set()
        """Units that were decided and are not written yet."""
        self._starts = Starts()
        self._changed_claims = Noted[str]()
        self.changed_reasons = Noted[JobUid]()
        """Jobs whose reason to wait may be another one, or has never been told."""
        self.lost = Noted[JobUid]()
        """Jobs whose reservation was given up; they are decided again."""

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
        self._changed_claims.note(*self.queue.upgrade())

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
        self.sizing = self._sizing_of(config)
        self.decider.terms = self.sizing.terms
        self.queue.bookings.all = tuple(self.sizing.booked(each.booking) for each in self.queue.bookings.all)
        vcs: dict[str, str] = {}
        for job in jobs:
            for unit in self.units.of_job(job.uid):
                if unit.name in self.queue.running:
                    self._move_to(unit, self.sizing.vc(job.spec))
                    vcs.update(dict.fromkeys((party.name for party in unit.parties), self.sizing.vc(job.spec)))
        effects = self._reconfigure(config or derive(self.room.nodes.values()), vcs)
        self._line_up_anew()
        return effects

    def set_policy(self, policy: Policy) -> None:
        """Another policy of the queue, at once. Nothing that runs is ended by it."""
        if policy == self.queue.policy:
            return
        self.catch_up()
        self.queue.set_policy(policy)
        self._all_wait_otherwise()

    def book(self, bookings: Sequence[Booking]) -> None:
        """These reservations hold from now on, and no others. Nothing that runs is ended by it."""
        booked = tuple(self.sizing.booked(each) for each in bookings)
        if booked == self.queue.bookings.all:
            return
        self.catch_up()
        self.queue.set_bookings(booked)
        self._all_wait_otherwise()

    def _all_wait_otherwise(self) -> None:
        self.changed_reasons.note(*(self.units.by_name[name].job for name in self.queue.waiting))

    def _reconfigure(self, config: ClusterConfig, vcs: Mapping[str, str]) -> Effects:
        nowhere = self._without_any_place()
        effects = self.ledger.reconfigure(config, vcs)
        self.queue.catch_up()
        for name in nowhere ^ self._without_any_place():
            self.changed_reasons.note(self.units.by_name[name].job)
        for name in effects.cancelled:
            unit = self.units.by_name[name]
            if self.ledger.give_back(unit.uids):
                self.lost.note(unit.job)
            self.changed_reasons.note(unit.job)
        self._changed_claims.note(*effects.displaced, *effects.regained)
        self._look_at_all = True
        return effects

    def _without_any_place(self) -> set[str]:
        """Who waits for what the configuration does not have."""
        return {name for name, ticket in self.queue.waiting.items() if ticket.line is None}

    def _move_to(self, unit: Unit, vc: str) -> None:
        """A running unit belongs to this virtual cluster from now on."""
        moved = unit.in_cluster(vc)
        self.units.know(moved, self.units.jobs[unit.job])
        self.queue.adopt(moved.entry)

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
            self.changed_reasons.note(job.uid)

    # -- what is stored --------------------------------------------------------------------------------------------

    def recover(self, jobs: Iterable[Job]) -> None:
        """Remember what stored jobs hold, in order of submission. Of an empty placer."""
        for job in sorted(jobs, key=lambda each: (each.submitted_at, each.uid)):
            needs = needs_of(job, self.sizing)
            for task in job.tasks:
                place = task.placement if task.holds_place else task.reserved
                if place is not None:
                    self.ledger.hold([(needs[task.uid], place.node)])
            self._starts.started(job.tasks)
            for each in recovered_units(job, self.sizing):
                self.units.know(each.unit, job)
                self._recovered.append(each)
        running = [each for each in self._recovered if not each.reserved]
        result = self.ledger.restore([place for each in running for place in each.placements])
        for each in running:
            self.queue.adopt(each.unit.entry)
            self._promise(each.unit)
        self._changed_claims.note(*result.displaced)

    def _promise(self, unit: Unit) -> None:
        """By when a unit that was stored as placed has to have ended."""
        tasks = [task for uid in unit.uids if (task := self.units.jobs[unit.job].task(uid)) is not None]
        known = [task.placement.stops_by for task in tasks if task.placement is not None]
        found = [moment for moment in known if moment is not None]
        if found:
            self.queue.promised[unit.name] = min(found)

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
                self.lost.note(each.unit.job)
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
        job = self.turns.of(job, self.queue.policy.order_of(job.spec.virtual_cluster), self.likely)
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
                self.changed_reasons.note(job.uid)

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
        self._starts.started(tasks)
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
        self.changed_reasons.note(*(self.units.by_name[name].job for name in self.queue.claims))
        self._changed_claims.note(*self.queue.upgrade())
        return True

    def forget(self, uid: JobUid) -> None:
        """The job is over. Idempotent."""
        self.turns.forget(uid)
        for unit in self.units.of_job(uid):
            self._leave(unit)

    def _leave(self, unit: Unit) -> None:
        """The unit neither waits nor runs any more."""
        self.queue.release(unit.name)
        self.queue.nodes_changed(self.ledger.give_back(unit.uids))
        self.units.forget(unit.name)
        self._pending.discard(unit.name)
        self._reasons.asked([unit.name])
        self._starts.forget(unit.name, unit.uids)

    def _span(self, name: str) -> RunSpan:
        """When a running unit began, and when it is stopped at the latest."""
        unit = self.units.by_name.get(name)
        if unit is None:
            return RunSpan()
        first, longest = self._starts.first(unit.uids), self.queue.bookings.longest(unit.entry)
        bound = None if first is None or longest is None else first + longest
        return RunSpan(self._starts.placed_at(unit.name) or first, bound)

    def ends(self, name: str) -> datetime | None:
        """When a running group is expected to have ended, as far as its job's run time is known."""
        unit = self.units.by_name.get(name)
        start = None if unit is None else self._starts.of(unit.name, unit.uids)
        lasts = None if start is None else self.run_time(self.units.job_of(name))
        return None if start is None or lasts is None else start + lasts

    # -- deciding --------------------------------------------------------------------------------------------------

    def advance(self, now: datetime) -> Round:
        """One pass of the queue: everything that can start does, up to a bound on what is asked."""
        self.catch_up()
        self._reasons.begin()
        if self.queue.turn_to(now):
            self._all_wait_otherwise()
        answer = self.queue.advance(now)
        self._changed_claims.note(*answer.upgraded)
        started, kept = [], []
        for each in answer.decided:
            unit = self.units.by_name[each.placement.group.name]
            self._changed_claims.note(*each.displaced)
            self._pending.add(unit.name)
            if isinstance(each, Preempt):
                kept.append(unit)
            else:
                started.append(unit)
                self._starts.placed(unit.name, now)
        refused = answer.refused
        for name, wait in refused.items():
            self._reasons.refused(self.units.by_name[name], wait)
        self._reasons.asked((*refused, *(unit.name for unit in (*started, *kept))))
        for name in (*refused, *answer.returned, *answer.held_back, *answer.moved_up):
            self.changed_reasons.note(self.units.by_name[name].job)
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
        self.changed_reasons.note(unit.job)

    def places(self, unit: Unit) -> dict[TaskUid, Placement]:
        """Where the unit's tasks are or will be, without ports; see :func:`places_of`."""
        found, stops_by = places_of(unit, self.ledger, self.sizing), self.queue.promised.get(unit.name)
        if stops_by is None:
            return found
        return {uid: place.model_copy(update={"stops_by": stops_by}) for uid, place in found.items()}

    def ask_for_nodes_again(self) -> None:
        """Something that nodes have besides cells, and that is not known here, may be free again."""
        self.room.nowhere.clear()
        self.queue.nodes_changed()

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

    def preemptions(self) -> list[Preemption]:
        """Every running group that must end now for one that keeps its cells; the same until it has ended."""
        return list(preemptions_of(self.queue, self.units))

    def take_changed_claims(self) -> list[QuotaClaim]:
        """Groups that lost their claim on the quota since the last call, or got it back."""
        return list(claims_of(self._changed_claims.take(), self.ledger, self.units))
