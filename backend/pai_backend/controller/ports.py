"""From places to placements: choose ports of tasks, probe that they are free, sum up what a pass decided for each job.

The placer, whose ledger has the leased ports, is this controller's memory of what is stored; the reconciler rebuilds
it from the store. A result is what a pass of the queue has for a job: places for some of its tasks, places that are
kept, and why others wait.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from pai_backend.access.ports import NoPort, PortRange, choose, fits
from pai_backend.engine.base import Engine
from pai_backend.lifecycle.events import JobEvent, Placed, Waiting
from pai_backend.model.ids import JobUid, PortLease, TaskUid, slot_of
from pai_backend.model.job import Job, Task
from pai_backend.model.node import Node, Placement
from pai_backend.model.text import Text
from pai_backend.scheduling.core.decision import Lease
from pai_backend.scheduling.jobs.answers import Lack, Round, Waits
from pai_backend.scheduling.jobs.placer import Placer
from pai_backend.scheduling.jobs.unit import Unit
from pai_backend.scheduling.request import Need, WaitCode

if TYPE_CHECKING:
    from pai_backend.store.sql import Store

PROBES = 8
"""How often other ports are chosen in place of busy ones before the job waits for the next round."""


LastPlaces = Mapping[str, Placement | None]
"""Slot -> where its last run was, whose ports are used again on the same machine; None when they must not be."""


@dataclass(frozen=True)
class PlacedUnit:
    """Placements of a unit's tasks, and the leases of ports that begin and end with them."""

    unit: Unit
    placements: dict[TaskUid, Placement]
    ports: Lease


class Placing:
    """Gives tasks that the placer found nodes for their ports."""

    def __init__(self, placer: Placer, engine: Engine, within: PortRange, rng: random.Random) -> None:
        self.placer = placer
        self.ran_short = False
        """A unit was deferred because its ports are in use. No event reports when they are free."""
        self._engine = engine
        self._within = within
        self._rng = rng

    async def with_ports(self, job: Job, unit: Unit, last: LastPlaces) -> PlacedUnit | None:
        """The unit's places with ports, leased in memory at once; None when they are in use: the unit is deferred."""
        tasks = [task for uid in unit.uids if (task := job.task(uid)) is not None]
        try:
            decision = await self._with_ports(job, unit, tasks, last)
        except NoPort as error:
            self.placer.defer(unit, str(error))
            self.ran_short = True
            return None
        self.placer.ledger.apply(decision.ports, final=True)
        return decision

    def reserved(self, job: Job) -> dict[TaskUid, Placement]:
        """The places that are kept for tasks of a job while others are stopped there; they have no ports yet."""
        places = self.placer.reserved(job.uid)
        there = [(task, places[task.uid]) for task in job.tasks if task.uid in places] if places else []
        return {task.uid: self._addressed(task, place, {}) for task, place in there}

    def wait_reason(self, unit: Unit) -> Waits:
        """Why a unit waits: for a port when nothing else keeps its tasks from a node."""
        waits = self.placer.wait_reason(unit)
        by_nodes = waits.reason is not None and waits.reason.code is WaitCode.NOT_SUGGESTED
        if waits.lack is Lack.LINEAR or by_nodes:
            for need in unit.needs:
                for name in sorted(self.placer.room.having(need)) if need.fixed_ports else ():
                    taken = self._taken(self.placer.room.nodes[name], need)
                    if taken:
                        return Waits(Lack.PORTS, taken)
        return waits

    def undo(self, units: Iterable[Unit], decisions: Iterable[PlacedUnit]) -> None:
        """Give back what these units were given; it could not be written."""
        for decision in decisions:
            self.placer.ledger.end_leases(lease.owner for lease in decision.ports.begins)
        for unit in units:
            self.placer.put_back(unit)

    def freed(self, owners: Iterable[str]) -> None:
        """The ports of these owners are not leased any more."""
        if self.placer.ledger.end_leases(owners):
            self.placer.ask_for_nodes_again()

    def _taken(self, node: Node, need: Need) -> str:
        """Which of the ports that the task fixes another one has on the node's machine; empty for none."""
        lacking = self.placer.ledger.ports.lacking(node, need)
        if lacking is None:
            return ""
        port, label = lacking
        return Text("port {port} ({label}) of {machine} is in use", port=port, label=label, machine=node.machine)

    async def _with_ports(self, job: Job, unit: Unit, tasks: Sequence[Task], last: LastPlaces) -> PlacedUnit:
        busy: dict[str, set[int]] = {}
        for _ in range(PROBES):
            decision = self._choose(job, unit, tasks, last, busy)
            clashes = await self._probe(decision)
            if not clashes:
                return decision
            for machine, ports in clashes.items():
                busy.setdefault(machine, set()).update(ports)
        machines = ", ".join(sorted(busy))
        raise NoPort(Text("ports chosen on {machines} keep being taken by other programs", machines=machines))

    async def _probe(self, decision: PlacedUnit) -> dict[str, set[int]]:
        wanted: dict[str, list[int]] = {}
        for lease in decision.ports.begins:
            wanted.setdefault(lease.machine, []).append(lease.port)
        found = {machine: await self._engine.busy_ports(machine, ports) for machine, ports in wanted.items()}
        return {machine: ports for machine, ports in found.items() if ports}

    def _choose(
        self, job: Job, unit: Unit, tasks: Sequence[Task], last: LastPlaces, busy: dict[str, set[int]]
    ) -> PlacedUnit:
        places = self.placer.places(unit)
        placements: dict[TaskUid, Placement] = {}
        leases: list[PortLease] = []
        released: list[str] = []
        new: dict[str, set[int]] = {}
        for task in tasks:
            owner = slot_of(task.uid)
            place = places[task.uid]
            wanted = job.spec.role(task.role).ports
            old = last.get(owner)
            if old is not None and old.machine == place.machine and fits(old.ports, wanted):
                ports = old.ports
            else:
                if owner in last:
                    released.append(owner)
                mine = new.setdefault(place.machine, set())
                taken = {p for p, who in self.placer.ledger.ports.taken(place.machine).items() if who != owner}
                ports = choose(
                    wanted,
                    within=self._within,
                    taken=taken | mine | busy.get(place.machine, set()),
                    machine=place.machine,
                    rng=self._rng,
                )
                mine.update(port for group in ports.values() for port in group)
                leases.extend(PortLease(place.machine, port, owner) for group in ports.values() for port in group)
            placements[task.uid] = self._addressed(task, place, ports)
        return PlacedUnit(unit, placements, Lease(tuple(leases), tuple(released)))

    def _addressed(self, task: Task, place: Placement, ports: dict[str, tuple[int, ...]]) -> Placement:
        """The place with the address and the ports that the task is reached by."""
        address = self._engine.task_address(self.placer.room.nodes[place.node], task.role, task.index)
        return place.model_copy(update={"address": address, "ports": ports})


@dataclass(frozen=True)
class PassResult:
    """Places for units of a job, each with its ports; units that have cells kept from now on; and why others wait.

    ``reserved`` are all places that are kept for the job while others end there; of its ``tasks`` so many are
    ``waiting``, its turn put off by ``put_off_s``.
    """

    job: JobUid
    tasks: int
    decisions: tuple[PlacedUnit, ...] = ()
    kept: tuple[Unit, ...] = ()
    reserved: Mapping[TaskUid, Placement] = field(default_factory=dict)
    wait: Waits | None = None
    waiting: int = 0
    put_off_s: int | None = None

    @property
    def placements(self) -> dict[TaskUid, Placement]:
        """Task -> place, of all decisions."""
        return {uid: place for decision in self.decisions for uid, place in decision.placements.items()}

    @property
    def lease(self) -> list[PortLease]:
        """The ports to lease for them."""
        return [lease for decision in self.decisions for lease in decision.ports.begins]

    @property
    def release(self) -> list[str]:
        """Slots whose former ports are given back."""
        return [owner for decision in self.decisions for owner in decision.ports.ends]

    @property
    def news(self) -> list[JobEvent]:
        """What the result means to the job."""
        news: list[JobEvent] = [Placed(self.placements)] if self.decisions else []
        if self.wait is not None:
            some = self.waiting < self.tasks and self.wait.lack is not Lack.KEPT
            why = self.wait.message
            if some:
                why = Text("{waiting} of {all} tasks wait: {why}", waiting=self.waiting, all=self.tasks, why=why)
            news.append(Waiting(why, self.reserved, self.put_off_s))
        return news

    def is_taken(self, job: Job | None) -> bool:
        """Whether the job has these places: a stop may have overtaken them."""
        if job is None:
            return False
        tasks = {task.uid: task for task in job.tasks}
        placed = all(uid in tasks and tasks[uid].placement is not None for uid in self.placements)
        return placed and all(uid in tasks and tasks[uid].reserved is not None for uid in self.reserved)


@dataclass(frozen=True)
class PassResults:
    """Sums up for each job what the placer decided and knows."""

    placing: Placing
    store: Store

    async def of_pass(self, found: Round, jobs: Mapping[JobUid, Job]) -> list[PassResult]:
        """What one pass has for each job, in the order of the decisions.

        A unit whose ports are in use is deferred; one whose job has ended meanwhile is put back.
        """
        decided: dict[JobUid, list[PlacedUnit]] = {}
        kept: dict[JobUid, list[Unit]] = {}
        for unit in found.kept:
            kept.setdefault(unit.job, []).append(unit)
        for unit in found.started:
            job = jobs.get(unit.job)
            if job is None:
                self.placing.placer.put_back(unit)
                continue
            own = {uid: task for uid in unit.uids if (task := job.task(uid)) is not None}
            decision = await self.placing.with_ports(job, unit, await self._last_places(job, own.values()))
            if decision is not None:
                decided.setdefault(job.uid, []).append(decision)
        uids = [uid for uid in dict.fromkeys((*decided, *kept)) if uid in jobs]
        return [self.of_job(jobs[uid], decided.get(uid, ()), kept.get(uid, ())) for uid in uids]

    def of_job(self, job: Job, decided: Iterable[PlacedUnit] = (), kept: Iterable[Unit] = ()) -> PassResult:
        """The result with these decisions, which says why the rest of the job waits."""
        waiting = self.placing.placer.waiting(job.uid)
        count = sum(len(unit.uids) for unit in waiting)
        return PassResult(
            job.uid,
            len(job.tasks),
            tuple(decided),
            tuple(kept),
            self.placing.reserved(job),
            self._first_that_may_change(waiting),
            count,
            self.placing.placer.turns.put_off_s(job.uid),
        )

    def _first_that_may_change(self, units: Iterable[Unit]) -> Waits | None:
        """The reason to show: of a unit that has cells kept, else of one for which there is hope, else of the first."""
        first: Waits | None = None
        hopeful: Waits | None = None
        known: dict[object, Waits] = {}
        for unit in units:
            key = (unit.entry.needs, unit.name if unit.name in self.placing.placer.queue.claims else "")
            wait = known.get(key)
            if wait is None:
                wait = known[key] = self.placing.wait_reason(unit)
            if wait.lack is Lack.KEPT:
                return wait
            first = first or wait
            if wait.lack is not Lack.NEVER:
                hopeful = hopeful or wait
        return hopeful or first

    async def _last_places(self, job: Job, tasks: Iterable[Task]) -> LastPlaces:
        """Where the last runs of these slots were. Ports that a program took from us are not used again."""
        again = {slot_of(task.uid) for task in tasks if task.attempt > 0}
        if not again:
            return {}
        past = [Task.model_validate(row) for row in await self.store.jobs.past_tasks(job.uid)]
        return {
            slot: None if task.exit is not None and task.exit.reason == "port-conflict" else task.placement
            for task in past
            if task.placement is not None and (slot := slot_of(task.uid)) in again
        }
