"""What a round of placement has for one job: places for its gang, or for some tasks of an incremental job.

A round goes through the waiting jobs from the oldest on. Within it room only shrinks, so what could not be served once
need not be tried again for another job that asks for the same.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from pai_backend.controller.placing import Decision, LastPlaces, Placing, asks_of
from pai_backend.lifecycle.events import JobEvent, Placed, Waiting
from pai_backend.model.ids import TaskUid
from pai_backend.model.job import Job, Task
from pai_backend.model.node import Placement
from pai_backend.scheduling.base import Ask, Wait, WaitCode
from pai_backend.store.base import PortLease, Store, slot_of


@dataclass(frozen=True)
class Offer:
    """Places for tasks of a job, each with its ports, and why the others wait."""

    job: Job
    decisions: tuple[Decision, ...] = ()
    wait: Wait | None = None
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
            some = self.waiting < len(self.job.tasks)
            one_by_one = f"{self.waiting} of {len(self.job.tasks)} tasks wait: " if some else ""
            news.append(Waiting(f"{one_by_one}{self.wait.message}"))
        return news

    def is_taken(self, job: Job | None) -> bool:
        """Whether the job has these places: a stop may have overtaken them."""
        return job is not None and all(
            (task := job.task(uid)) is not None and task.placement is not None for uid in self.placements
        )


@dataclass
class Round:
    """One round of placement."""

    placing: Placing
    store: Store
    _hopeless: dict[object, Wait] = field(default_factory=dict)

    async def offer(self, job: Job, tasks: Sequence[Task]) -> Offer:
        """Hold what can be had for these waiting tasks: of a gang all or nothing, else each by itself."""
        last = await self._last_places(job, tasks)
        whole = await self._try(job, tasks, last)
        if isinstance(whole, Decision):
            return Offer(job, (whole,))
        if job.spec.scheduling.gang_allocation or len(tasks) == 1:
            return Offer(job, (), whole, len(tasks))
        decisions: list[Decision] = []
        waits: list[Wait] = []
        for task in tasks:
            found = await self._try(job, [task], last)
            if isinstance(found, Decision):
                decisions.append(found)
            else:
                waits.append(found)
        return Offer(job, tuple(decisions), _first_that_may_change(waits), len(waits))

    async def _try(self, job: Job, tasks: Sequence[Task], last: LastPlaces) -> Decision | Wait:
        shape = _shape(asks_of(job, tasks))
        found = self._hopeless.get(shape) or await self.placing.decide(job, tasks, last)
        if isinstance(found, Wait) and found.code is not WaitCode.PORTS:
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


def _shape(asks: Sequence[Ask]) -> object:
    return tuple((ask.cpus, ask.memory_mb, ask.gpus, ask.gpu_type) for ask in asks)


def _first_that_may_change(waits: Sequence[Wait]) -> Wait | None:
    """The reason to show: of several, that of a task for which there is hope, else the first."""
    passing = (wait for wait in waits if wait.code in (WaitCode.BUSY, WaitCode.PORTS, WaitCode.NOT_READY))
    return next(passing, waits[0] if waits else None)
