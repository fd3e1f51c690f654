"""The units that hold something, as stored jobs tell: what is put back after a restart."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from pai_backend.model.ids import TaskUid
from pai_backend.model.job import Job, Phase, Task
from pai_backend.scheduling.jobs.demand import Sizing, Wish, wish_of
from pai_backend.scheduling.jobs.stored import Stored, stored_groups
from pai_backend.scheduling.jobs.unit import Unit, unit
from pai_backend.scheduling.request import GroupPlace, Need


@dataclass(frozen=True)
class Recovered:
    """A unit with the places of its groups. ``reserved``: they are kept for it, and it does not run yet."""

    unit: Unit
    placements: tuple[GroupPlace, ...]
    reserved: bool


def needs_of(job: Job, sizing: Sizing) -> dict[TaskUid, Need]:
    """What each task of a job needs."""
    wish = wish_of(job, job.tasks, sizing)
    return {need.uid: need for need in (*wish.loose, *(need for each in wish.parties for need in each.needs))}


def recovered_units(job: Job, sizing: Sizing) -> Iterator[Recovered]:
    """What of a job runs, and what has a place kept: of a gang all of it together, else task by task."""
    stored = list(stored_groups(job, sizing))
    in_groups = {uid for each in stored for uid in each.party.uids}
    others = [task for task in job.tasks if task.uid not in in_groups]
    running = [task for task in others if task.holds_place]
    yield from _units(job, sizing, [each for each in stored if not each.reserved], running)
    kept = [each for each in stored if each.reserved]
    waiting = [task for task in others if task.phase is Phase.QUEUED]
    yield from _units(job, sizing, kept, waiting if kept and job.spec.scheduling.gang_allocation else [])


def _units(job: Job, sizing: Sizing, stored: Sequence[Stored], loose: Sequence[Task]) -> Iterator[Recovered]:
    needs = needs_of(job, sizing)
    together: list[tuple[Sequence[Stored], Sequence[Task]]] = [(stored, loose)] if stored or loose else []
    if not job.spec.scheduling.gang_allocation:
        together = [*(([each], ()) for each in stored), *(((), [task]) for task in loose)]
    for groups, tasks in together:
        parties = tuple(each.party for each in groups)
        first = job.task(parties[0].uids[0]) if parties else tasks[0]
        assert first is not None
        wish = Wish(job.id, parties, tuple(needs[task.uid] for task in tasks))
        reserved = any(each.reserved for each in groups)
        yield Recovered(unit(job, wish, sizing, first), tuple(each.placement for each in groups), reserved)
