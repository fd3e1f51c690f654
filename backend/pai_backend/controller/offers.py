"""What a round of placement has for one job: places for its gang, or for some tasks of an incremental job.

A round goes through the waiting jobs by priority, then from the oldest on. Within it room only shrinks, so what could
not be served once need not be tried again for another job that asks for the same.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from pai_backend.controller.placing import Decision, LastPlaces, Placing, Reservation
from pai_backend.lifecycle.events import JobEvent, Placed, Waiting
from pai_backend.model.ids import TaskUid
from pai_backend.model.job import Job, Task
from pai_backend.model.node import Placement
from pai_backend.scheduling.jobs.answers import Lack, Waits
from pai_backend.scheduling.jobs.demand import wish_of
from pai_backend.store.base import PortLease, Store, slot_of


@dataclass(frozen=True)
class Offer:
    """Places for tasks of a job, each with its ports; places that are kept for some; and why the others wait."""

    job: Job
    decisions: tuple[Decision, ...] = ()
    reservations: tuple[Reservation, ...] = ()
    wait: Waits | None = None
    waiting: int = 0

    @property
    def held(self) -> tuple[Decision | Reservation, ...]:
        """All that was held for it."""
        return (*self.decisions, *self.reservations)

    @property
    def placements(self) -> dict[TaskUid, Placement]:
        """Task -> place, of all decisions."""
        return {uid: place for decision in self.decisions for uid, place in decision.placements.items()}

    @property
    def reserved(self) -> dict[TaskUid, Placement]:
        """Task -> place that is kept for it."""
        return {uid: place for each in self.reservations for uid, place in each.placements.items()}

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
        if self.reservations:
            news.append(Waiting(self.reservations[0].message, self.reserved))
        elif self.wait is not None:
            some = self.waiting < len(self.job.tasks)
            one_by_one = f"{self.waiting} of {len(self.job.tasks)} tasks wait: " if some else ""
            news.append(Waiting(f"{one_by_one}{self.wait.message}", {}))
        return news

    def is_taken(self, job: Job | None) -> bool:
        """Whether the job has these places: a stop may have overtaken them."""
        if job is None:
            return False
        tasks = {task.uid: task for task in job.tasks}
        placed = all(uid in tasks and tasks[uid].placement is not None for uid in self.placements)
        return placed and all(uid in tasks and tasks[uid].reserved is not None for uid in self.reserved)


@dataclass
class Round:
    """One round of placement."""

    placing: Placing
    store: Store
    _hopeless: dict[object, Waits] = field(default_factory=dict)

    async def offer(self, job: Job, tasks: Sequence[Task]) -> Offer:
        """Hold what can be had for these waiting tasks: of a gang all or nothing, else each by itself."""
        last = await self._last_places(job, tasks)
        decisions: list[Decision] = []
        reservations: list[Reservation] = []
        waits: list[Waits] = []
        gang = job.spec.scheduling.gang_allocation
        for together in [tasks] if gang else [[task] for task in tasks]:
            match await self._try(job, together, last):
                case Decision() as decision:
                    decisions.append(decision)
                case Reservation() as reservation:
                    reservations.append(reservation)
                case Waits() as wait:
                    waits.append(wait)
        waiting = len(tasks) if gang else len(waits)
        return Offer(job, tuple(decisions), tuple(reservations), _first_that_may_change(waits), waiting)

    async def _try(self, job: Job, tasks: Sequence[Task], last: LastPlaces) -> Decision | Reservation | Waits:
        shape = wish_of(job, tasks, self.placing.placer.sizing).shape
        kept = any(task.reserved is not None for task in tasks)
        known = None if kept else self._hopeless.get(shape)
        found = known or await self.placing.decide(job, tasks, last)
        if isinstance(found, Waits) and found.lack is not Lack.PORTS:
            self._hopeless[shape] = found
        return found

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


def _first_that_may_change(waits: Sequence[Waits]) -> Waits | None:
    """The reason to show: of several, that of a task for which there is hope, else the first."""
    passing = (wait for wait in waits if wait.lack is not Lack.NEVER)
    return next(passing, waits[0] if waits else None)
