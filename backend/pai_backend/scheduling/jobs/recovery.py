"""The units that hold something, as stored jobs tell: what is put back after a restart."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from pai_backend.model.ids import TaskUid
from pai_backend.model.job import Job, Phase, Task
from pai_backend.model.node import Placement
from pai_backend.scheduling.jobs.demand import PRIORITIES, Party, Sizing, Wish, wish_of
from pai_backend.scheduling.jobs.unit import Unit, unit
from pai_backend.scheduling.request import Group, GroupPlace, Member, Need, PodPlace


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


# -- the groups of a job, as its stored tasks tell ---------------------------------------------------------------------


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
