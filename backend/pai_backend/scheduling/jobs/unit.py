"""What is placed together, and so waits as one: a gang, a task of an incremental job, or the core of such a job."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from pai_backend.model.ids import JobUid, TaskUid
from pai_backend.model.job import Job, Phase, Task
from pai_backend.model.node import Placement
from pai_backend.scheduling.jobs.demand import DEFAULT_GROUP, PRIORITIES, Party, Sizing, Wish, wish_of
from pai_backend.scheduling.queue import Entry
from pai_backend.scheduling.request import Group, GroupPlace, Member, Need

_CORE = "-core"


@dataclass(frozen=True)
class Unit:
    """Tasks of a job that start together or not at all, as they stand in the queue.

    ``parties`` are their groups of cells, ``loose`` the tasks that need none. The entry is named after the first group.
    ``turn`` is that of the job, with whether its tasks start as its core, when the unit lined up.
    """

    job: JobUid
    turn: tuple[datetime | None, bool]
    parties: tuple[Party, ...]
    loose: tuple[Need, ...]
    entry: Entry

    @property
    def name(self) -> str:
        """What the queue calls it."""
        return self.entry.group.name

    @property
    def needs(self) -> tuple[Need, ...]:
        """What its tasks need, those with cells first."""
        return (*(need for party in self.parties for need in party.needs), *self.loose)

    def pods(self) -> Iterator[tuple[Need, int]]:
        """What each of its tasks with cells needs, and how many leaves the task is given."""
        for party in self.parties:
            sizes = (member.leaves for member in party.group.members for _ in range(member.pods))
            yield from zip(party.needs, sizes, strict=True)

    @property
    def uids(self) -> tuple[TaskUid, ...]:
        """Its tasks."""
        return tuple(need.uid for need in self.needs)

    def in_cluster(self, vc: str) -> Unit:
        """The same, of this virtual cluster."""
        parties = tuple(replace(each, group=replace(each.group, vc=vc)) for each in self.parties)
        groups = tuple(each.group for each in parties) or (replace(self.entry.group, vc=vc),)
        entry = replace(self.entry, group=groups[0], others=groups[1:])
        return replace(self, parties=parties, entry=entry)

    def needs_of(self, group: Group) -> tuple[Need, ...]:
        """What the pods of one of its groups need, by their number.

        Of a group that is told differently (with fewer pods, say), each pod counts as the largest.
        """
        party = next(each for each in self.parties if each.name == group.name)
        if party.group.members == group.members:
            return party.needs
        return (largest(party.needs),) * group.pods


def largest(needs: Iterable[Need]) -> Need:
    """What the task that needs the most CPU, then memory, needs."""
    return max(needs, key=lambda need: (need.cpus, need.memory_mb))


def units_of(job: Job, tasks: Sequence[Task], sizing: Sizing) -> Iterator[Unit]:
    """How these tasks of a job wait: together, or each by itself."""
    if not tasks:
        return
    if job.core:
        yield unit(job, _as_core(wish_of(job, tasks, sizing)), sizing, tasks[0])
        return
    for together in [tasks] if job.spec.scheduling.gang_allocation else [[task] for task in tasks]:
        wish = wish_of(job, together, sizing)
        yield unit(job, wish, sizing, together[0])


def _as_core(wish: Wish) -> Wish:
    """The wish of tasks that start together and go on alone: each is a group by itself.

    The groups have names of their own: a task that is run again waits by its own, while others of the core still run.
    """
    parties = (replace(each, group=replace(each.group, name=f"{each.name}{_CORE}")) for each in wish.parties)
    return replace(wish, parties=tuple(parties))


def unit(job: Job, wish: Wish, sizing: Sizing, first: Task) -> Unit:
    """What is wished for as a unit of the job, of which this is the first task."""
    without_cells = Group(_name(job, first), sizing.vc(job.spec), (), PRIORITIES[job.spec.scheduling.priority_class])
    groups = tuple(party.group for party in wish.parties) or (without_cells,)
    entry = Entry(
        groups[0],
        user=job.user,
        order=round((job.turn_at or job.submitted_at).timestamp() * 1_000_000),
        needs=_needs(job, wish),
        others=groups[1:],
        loose=len(wish.loose),
        tie=f"{job.uid}/{[role.name for role in job.spec.task_roles].index(first.role):04d}/{first.index:06d}",
        account=job.spec.virtual_cluster,
        sweep=job.spec.sweep,
        of_job=job.uid,
        longest=_longest(job),
        sweep_tasks=job.spec.sweep_parallel and job.spec.sweep_parallel * job.spec.task_count,
    )
    return Unit(job.uid, turn_of(job), wish.parties, wish.loose, entry)


def _longest(job: Job) -> timedelta | None:
    """For how long an attempt may run by its document. A debug job may hold its place beyond that."""
    seconds = job.spec.max_duration_s
    return None if seconds is None or job.spec.debug else timedelta(seconds=seconds)


def turn_of(job: Job) -> tuple[datetime | None, bool]:
    """What of a job says when its tasks are served: its turn, and whether they start as its core."""
    return job.turn_at, bool(job.core)


def _name(job: Job, task: Task) -> str:
    if job.spec.scheduling.gang_allocation:
        return f"{job.id}/{DEFAULT_GROUP}"
    return f"{job.id}/{task.role}-{task.index}" + (_CORE if job.core else "")


def _needs(job: Job, wish: Wish) -> object:
    """Equal for units that the same nodes serve. A run after another may have its fixed ports for itself already."""
    fixed = any(need.fixed_ports for party in wish.parties for need in party.needs) or any(
        need.fixed_ports for need in wish.loose
    )
    again = any(task.attempt for task in job.tasks)
    return (wish.shape, job.uid if fixed and again else "")


class Units:
    """Units by name, by group and by job, whether they wait or run."""

    def __init__(self) -> None:
        self.jobs: dict[JobUid, Job] = {}
        """The jobs that have units, as they were told last."""
        self.by_name: dict[str, Unit] = {}
        """By the name of the entry, and by the names of all of its groups."""
        self._of_job: dict[JobUid, dict[str, Unit]] = {}

    def know(self, unit: Unit, job: Job) -> None:
        """Remember a unit of this job, in place of one with its name."""
        self.forget(unit.name)
        self.jobs[job.uid] = job
        for name in _names(unit):
            self.by_name[name] = unit
        self._of_job.setdefault(unit.job, {})[unit.name] = unit

    def forget(self, name: str) -> None:
        """Forget the unit of this name. Idempotent."""
        unit = self.by_name.get(name)
        if unit is None:
            return
        for each in _names(unit):
            self.by_name.pop(each, None)
        own = self._of_job[unit.job]
        own.pop(unit.name, None)
        if not own:
            del self._of_job[unit.job], self.jobs[unit.job]

    def job_of(self, name: str) -> Job:
        """The job of the unit of this name, or of one of its groups. Raises KeyError when it is not known."""
        return self.jobs[self.by_name[name].job]

    def of_job(self, uid: JobUid) -> list[Unit]:
        """The known units of a job, in order."""
        return list(self._of_job.get(uid, {}).values())

    def party(self, group: str) -> Party:
        """The group of cells of this name. Raises KeyError when it is not known."""
        return next(party for party in self.by_name[group].parties if party.name == group)


def _names(unit: Unit) -> list[str]:
    return [unit.name, *(party.name for party in unit.parties)]


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
        displaced = any(place.displaced for _, place in known)
        yield Stored(party, GroupPlace(party.group, known[0][1].chain, dict(known), displaced), reserved)


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
    return Party(Group(name, sizing.vc(job.spec), (Member(1, leaves, role=task.role),), priority), (need,))
