"""What a pass of the queue has for a job: places for some of its tasks, places that are kept, and why others wait."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from pai_backend.controller.placing import Decision, LastPlaces, Placing
from pai_backend.lifecycle.events import JobEvent, Placed, Waiting
from pai_backend.model.ids import JobUid, TaskUid
from pai_backend.model.job import Job, Task
from pai_backend.model.node import Placement
from pai_backend.scheduling.jobs.answers import Lack, Round, Waits
from pai_backend.scheduling.jobs.unit import Unit
from pai_backend.store.base import PortLease, Store, slot_of


@dataclass(frozen=True)
class Offer:
    """Places for units of a job, each with its ports; units that have cells kept from now on; and why others wait.

    ``reserved`` are all places that are kept for the job while others end there, ``waiting`` counts tasks.
    """

    job: Job
    decisions: tuple[Decision, ...] = ()
    kept: tuple[Unit, ...] = ()
    reserved: Mapping[TaskUid, Placement] = field(default_factory=dict)
    wait: Waits | None = None
    waiting: int = 0

    @property
    def placements(self) -> dict[TaskUid, Placement]:
        """Task -> place, of all decisions."""
        return {uid: place for decision in self.decisions for uid, place in decision.placements.items()}

    @property
    def lease(self) -> list[PortLease]:
        """The ports to lease for them."""
        return [lease for decision in self.decisions for lease in decision.lease]

    @property
    def release(self) -> list[str]:
        """Slots whose former ports are given back."""
        return [owner for decision in self.decisions for owner in decision.release]

    @property
    def news(self) -> list[JobEvent]:
        """What the offer means to the job."""
        news: list[JobEvent] = [Placed(self.placements)] if self.decisions else []
        if self.wait is not None:
            some = self.waiting < len(self.job.tasks) and self.wait.lack is not Lack.KEPT
            one_by_one = f"{self.waiting} of {len(self.job.tasks)} tasks wait: " if some else ""
            news.append(Waiting(f"{one_by_one}{self.wait.message}", self.reserved))
        return news

    def is_taken(self, job: Job | None) -> bool:
        """Whether the job has these places: a stop may have overtaken them."""
        if job is None:
            return False
        tasks = {task.uid: task for task in job.tasks}
        placed = all(uid in tasks and tasks[uid].placement is not None for uid in self.placements)
        return placed and all(uid in tasks and tasks[uid].reserved is not None for uid in self.reserved)


@dataclass(frozen=True)
class Offers:
    """Makes offers of what the placer decided and knows."""

    placing: Placing
    store: Store

    async def of_pass(self, found: Round, jobs: Mapping[JobUid, Job]) -> list[Offer]:
        """What one pass has for each job, in the order of the decisions.

        A unit whose ports cannot be had is set aside; one whose job is over by now is put back.
        """
        decided: dict[JobUid, list[Decision]] = {}
        kept: dict[JobUid, list[Unit]] = {}
        for unit in found.kept:
            kept.setdefault(unit.job.uid, []).append(unit)
        for unit in found.started:
            job = jobs.get(unit.job.uid)
            if job is None:
                self.placing.placer.put_back(unit)
                continue
            own = {uid: task for uid in unit.uids if (task := job.task(uid)) is not None}
            decision = await self.placing.with_ports(job, unit, await self._last_places(job, own.values()))
            if decision is not None:
                decided.setdefault(job.uid, []).append(decision)
        uids = [uid for uid in dict.fromkeys((*decided, *kept)) if uid in jobs]
        return [self.of_job(jobs[uid], decided.get(uid, ()), kept.get(uid, ())) for uid in uids]

    def of_job(self, job: Job, decided: Iterable[Decision] = (), kept: Iterable[Unit] = ()) -> Offer:
        """An offer of these decisions, which says why the rest of the job waits."""
        waiting = self.placing.placer.waiting(job.uid)
        count = sum(len(unit.uids) for unit in waiting)
        return Offer(
            job,
            tuple(decided),
            tuple(kept),
            self.placing.reserved(job),
            self._first_that_may_change(waiting),
            count,
        )

    def _first_that_may_change(self, units: Iterable[Unit]) -> Waits | None:
        """The reason to show: of a unit that has cells kept, else of one for which there is hope, else of the first."""
        first: Waits | None = None
        hopeful: Waits | None = None
        known: dict[object, Waits] = {}
        for unit in units:
            key = (unit.entry.needs, unit.name if self.placing.placer.has_claim(unit) else "")
            wait = known.get(key)
            if wait is None:
                wait = known[key] = self.placing.told(unit)
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
        past = [Task.model_validate(row) for row in await self.store.past_tasks(job.uid)]
        return {
            slot: None if task.exit is not None and task.exit.reason == "port-conflict" else task.placement
            for task in past
            if task.placement is not None and (slot := slot_of(task.uid)) in again
        }
