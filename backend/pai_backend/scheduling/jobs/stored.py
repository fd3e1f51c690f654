"""A job's groups as its stored tasks tell: what is to be put back after a restart."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from pai_backend.model.job import Job, Task
from pai_backend.model.node import Placement
from pai_backend.scheduling.jobs.demand import PRIORITIES, Party, Sizing, wish_of
from pai_backend.scheduling.request import Group, GroupPlace, Member, Need, PodPlace


@dataclass(frozen=True)
class Stored:
    """A group that holds cells. ``reserved``: they are kept for it, and it does not run yet."""

    party: Party
    placement: GroupPlace
    reserved: bool


def stored_groups(job: Job, sizing: Sizing) -> Iterator[Stored]:
    """The groups of a job that hold cells or have some kept.

    Cells of a task that has ended are held as long as another one of its group runs. A task whose group can no longer
    be told, because the configuration was changed, counts as a group by itself.
    """
    for party in _parties(job, sizing):
        tasks = [task for uid in party.uids if (task := job.task(uid)) is not None]
        if any(task.holds_place for task in tasks):
            yield from _stored(party, [task.placement for task in tasks], reserved=False)
        elif any(task.reserved is not None for task in tasks):
            yield from _stored(party, [task.reserved for task in tasks], reserved=True)


def _stored(party: Party, places: Iterable[Placement | None], *, reserved: bool) -> Iterator[Stored]:
    known = [(number, place) for number, place in enumerate(places) if place is not None and place.cells]
    if known:
        pods = tuple(PodPlace(number, place.node, place.cells, place.owned) for number, place in known)
        displaced = any(place.displaced for _, place in known)
        yield Stored(party, GroupPlace(party.group, known[0][1].chain, pods, displaced), reserved)


def _parties(job: Job, sizing: Sizing) -> Iterator[Party]:
    wish = wish_of(job, job.tasks, sizing)
    yield from wish.parties
    loose = {need.uid: need for need in wish.loose}
    for task in job.tasks:
        place = task.placement or task.reserved
        if task.uid in loose and place is not None and place.cells:
            yield _alone(job, task, loose[task.uid], len(place.cells), sizing)


def _alone(job: Job, task: Task, need: Need, leaves: int, sizing: Sizing) -> Party:
    priority = PRIORITIES[job.spec.scheduling.priority_class]
    name = f"{job.id}/{task.role}-{task.index}"
    return Party(Group(name, sizing.vc(job.spec), (Member(1, leaves),), priority), (need,))
