"""What tasks hold of nodes besides cells, and which units are known: the placer's memory apart from the cluster."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator
from contextlib import contextmanager

from pai_backend.model.ids import JobUid, TaskUid, job_of
from pai_backend.scheduling.core.room import Room
from pai_backend.scheduling.jobs.demand import Party
from pai_backend.scheduling.jobs.unit import Unit
from pai_backend.scheduling.request import Need


class Memory:
    """Units by name, by group and by job, whether they wait or run; and the CPU and memory that their tasks hold."""

    def __init__(self) -> None:
        self.room = Room()
        self.units: dict[str, Unit] = {}
        """By the name of the entry, and by the names of all of its groups."""
        self.nowhere: set[Hashable] = set()
        """Needs of units without cells that no nodes have now; forgotten whenever something is given back."""
        self._of_job: dict[JobUid, dict[str, Unit]] = {}
        self._nodes: dict[TaskUid, tuple[Need, str]] = {}
        self._tasks: dict[JobUid, dict[TaskUid, None]] = {}

    # -- units -----------------------------------------------------------------------------------------------------

    def know(self, unit: Unit) -> None:
        """Remember a unit, in place of one with its name."""
        self.forget(unit.name)
        for name in _names(unit):
            self.units[name] = unit
        self._of_job.setdefault(unit.job.uid, {})[unit.name] = unit

    def forget(self, name: str) -> None:
        """Forget the unit of this name. Idempotent."""
        unit = self.units.get(name)
        if unit is None:
            return
        for each in _names(unit):
            self.units.pop(each, None)
        own = self._of_job[unit.job.uid]
        own.pop(unit.name, None)
        if not own:
            del self._of_job[unit.job.uid]

    def of_job(self, uid: JobUid) -> list[Unit]:
        """The known units of a job, in order."""
        return list(self._of_job.get(uid, {}).values())

    def party(self, group: str) -> Party:
        """The group of cells of this name. Raises KeyError when it is not known."""
        return next(party for party in self.units[group].parties if party.name == group)

    # -- CPU and memory --------------------------------------------------------------------------------------------

    def hold(self, need: Need, node: str) -> None:
        """The task takes what it needs there. Idempotent by uid."""
        self.room.hold(need, node)
        self._nodes[need.uid] = (need, node)
        self._tasks.setdefault(job_of(need.uid), {})[need.uid] = None

    def release(self, uids: Iterable[TaskUid]) -> set[str]:
        """Give back what these tasks hold; the nodes where that was. Idempotent."""
        nodes = set()
        for uid in uids:
            held = self._nodes.pop(uid, None)
            if held is None:
                continue
            self.room.release(uid)
            self.nowhere.clear()
            nodes.add(held[1])
            own = self._tasks[job_of(uid)]
            del own[uid]
            if not own:
                del self._tasks[job_of(uid)]
        return nodes

    def held_by(self, job: JobUid) -> set[TaskUid]:
        """The tasks of a job that hold something."""
        return set(self._tasks.get(job, ()))

    def node_of(self, uid: TaskUid) -> str | None:
        """Where the task holds something."""
        held = self._nodes.get(uid)
        return None if held is None else held[1]

    @contextmanager
    def without(self, uids: Iterable[TaskUid]) -> Iterator[None]:
        """A what-if: these tasks hold nothing, until it ends."""
        before = [self._nodes[uid] for uid in uids if uid in self._nodes]
        for need, _ in before:
            self.room.release(need.uid)
        try:
            yield
        finally:
            for need, node in before:
                self.room.hold(need, node)

    @contextmanager
    def as_if(self, held: Iterable[tuple[Need, str]]) -> Iterator[None]:
        """A what-if: these tasks, of which none holds anything yet, hold what they need there, until it ends."""
        new = [(need, node) for need, node in held if need.uid not in self._nodes]
        for need, node in new:
            self.room.hold(need, node)
        try:
            yield
        finally:
            for need, _ in new:
                self.room.release(need.uid)


def _names(unit: Unit) -> list[str]:
    return [unit.name, *(party.name for party in unit.parties)]
