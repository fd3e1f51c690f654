"""What is placed together, and so waits as one: a gang, a task of an incremental job, or the core of such a job."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from pai_backend.model.ids import JobUid, TaskUid
from pai_backend.model.job import Job, Task
from pai_backend.scheduling.jobs.demand import DEFAULT_GROUP, PRIORITIES, Party, Sizing, Wish, wish_of
from pai_backend.scheduling.queue import Entry
from pai_backend.scheduling.request import Group, Need

_CORE = "-core"


@dataclass(frozen=True)
class Unit:
    """Tasks of a job that start together or not at all, as they stand in the queue.

    ``parties`` are their groups of cells, ``loose`` the tasks that need none. The entry is named after the first group.
    """

    job: Job
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

    @property
    def uids(self) -> tuple[TaskUid, ...]:
        """Its tasks."""
        return tuple(need.uid for need in self.needs)

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
        order=_microseconds(job.turn_at or job.submitted_at),
        needs=_needs(job, wish),
        others=groups[1:],
        loose=len(wish.loose),
        tie=f"{job.uid}/{_role_number(job, first):04d}/{first.index:06d}",
        account=job.spec.virtual_cluster,
    )
    return Unit(job, wish.parties, wish.loose, entry)


def _name(job: Job, task: Task) -> str:
    if job.spec.scheduling.gang_allocation:
        return f"{job.id}/{DEFAULT_GROUP}"
    return f"{job.id}/{task.role}-{task.index}" + (_CORE if job.core else "")


def _role_number(job: Job, task: Task) -> int:
    return next(number for number, role in enumerate(job.spec.task_roles) if role.name == task.role)


def _needs(job: Job, wish: Wish) -> object:
    """Equal for units that the same nodes serve. A run after another may have its fixed ports for itself already."""
    fixed = any(need.fixed_ports for party in wish.parties for need in party.needs) or any(
        need.fixed_ports for need in wish.loose
    )
    again = any(task.attempt for task in job.tasks)
    return (wish.shape, job.uid if fixed and again else "")


def _microseconds(at: datetime) -> int:
    """Since 1970."""
    return round(at.timestamp() * 1_000_000)


class Units:
    """Units by name, by group and by job, whether they wait or run."""

    def __init__(self) -> None:
        self.by_name: dict[str, Unit] = {}
        """By the name of the entry, and by the names of all of its groups."""
        self._of_job: dict[JobUid, dict[str, Unit]] = {}

    def know(self, unit: Unit) -> None:
        """Remember a unit, in place of one with its name."""
        self.forget(unit.name)
        for name in _names(unit):
            self.by_name[name] = unit
        self._of_job.setdefault(unit.job.uid, {})[unit.name] = unit

    def forget(self, name: str) -> None:
        """Forget the unit of this name. Idempotent."""
        unit = self.by_name.get(name)
        if unit is None:
            return
        for each in _names(unit):
            self.by_name.pop(each, None)
        own = self._of_job[unit.job.uid]
        own.pop(unit.name, None)
        if not own:
            del self._of_job[unit.job.uid]

    def of_job(self, uid: JobUid) -> list[Unit]:
        """The known units of a job, in order."""
        return list(self._of_job.get(uid, {}).values())

    def party(self, group: str) -> Party:
        """The group of cells of this name. Raises KeyError when it is not known."""
        return next(party for party in self.by_name[group].parties if party.name == group)


def _names(unit: Unit) -> list[str]:
    return [unit.name, *(party.name for party in unit.parties)]
