"""What another configuration does to jobs: those that run, and those that wait.

The effects that a dry run tells and those that the controller records come from the same function,
:func:`go_over`; a dry run calls it on a copy that is rebuilt from what is stored.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime

from pai_backend.model.booking import Booking
from pai_backend.model.change import ClusterChange, JobEffect
from pai_backend.model.ids import JobUid
from pai_backend.model.job import Job, Task
from pai_backend.model.node import Node
from pai_backend.scheduling.cells.tree import State
from pai_backend.scheduling.config.model import ClusterConfig, compare
from pai_backend.scheduling.jobs.demand import PRIORITIES, Sizing, wish_of
from pai_backend.scheduling.jobs.placer import Placer
from pai_backend.scheduling.jobs.quota import misfits
from pai_backend.scheduling.queue import Policy
from pai_backend.scheduling.terms import NodeRules


def rebuilt(
    config: ClusterConfig | None,
    nodes: Iterable[Node],
    jobs: Iterable[Job],
    *,
    cells_for_all: bool = False,
    rules: NodeRules | None = None,
    policy: Policy | None = None,
    bookings: Sequence[Booking] = (),
) -> Placer:
    """A placer that knows these nodes, and what these jobs hold. Costs what a restart of the controller costs."""
    placer = Placer(config, cells_for_all=cells_for_all, rules=rules, policy=policy)
    for node in nodes:
        placer.set_node(node)
    placer.recover(jobs)
    placer.catch_up()
    placer.book(bookings)
    return placer


AT_ONCE = datetime(2000, 1, 1, tzinfo=UTC)
"""The time in a short-lived copy, in which no group has waited before."""


@dataclass(frozen=True)
class Queued:
    """A job that waits, with those of its tasks that do."""

    job: Job
    tasks: tuple[Task, ...]


@dataclass(frozen=True)
class _Holding:
    """A group that has cells, or has some kept for it."""

    job: str
    vc: str
    leaves: int
    displaced: bool
    reserved: bool


def preview(
    copy: Callable[[], Placer], config: ClusterConfig, jobs: Iterable[Job], waiting: Sequence[Queued]
) -> ClusterChange:
    """What going over to ``config`` would do now. ``copy`` makes a new placer that knows what runs.

    Waiting jobs that start at once anyway are not among the effects.
    """
    now = copy()
    was, sizing = now.config, now.sizing
    anyway = _starting(now, waiting)
    then = copy()
    change = go_over(then, config, jobs)
    starting = {uid: tasks for uid, tasks in _starting(then, waiting).items() if tasks > anyway.get(uid, 0)}
    starts = (_waits(each, then.sizing) for each in waiting if each.job.uid in starting)
    impossible = (
        _waits(each, sizing, message=wrong, already=bool(_never(each.job, was, sizing)))
        for each in waiting
        if (wrong := _never(each.job, config, then.sizing))
    )
    return change.model_copy(update={"starts": tuple(starts), "impossible": tuple(impossible)})


def go_over(placer: Placer, config: ClusterConfig | None, jobs: Iterable[Job]) -> ClusterChange:
    """Let the placer decide by another configuration from now on; what this does to the jobs that hold something."""
    cells, before = placer.ledger.config, _holdings(placer)
    effects = placer.reconfigure(config, jobs)
    placer.catch_up()
    after = _holdings(placer)
    diff = compare(cells, placer.ledger.config)
    still = {name: held for name, held in before.items() if name in after and not held.reserved}
    return diff.model_copy(
        update={
            "lost": _by_job({name: held for name, held in still.items() if after[name].displaced > held.displaced}),
            "regained": _by_job({name: held for name, held in still.items() if after[name].displaced < held.displaced}),
            "dropped": _by_job({name: before[name] for name in effects.cancelled if name in before}),
            "missing": _by_job(
                {name: replace(before[name], leaves=leaves) for name, leaves in effects.missing if name in before}
            ),
        }
    )


def in_order(waiting: Iterable[Queued]) -> list[Queued]:
    """By priority, then by turn."""
    return sorted(waiting, key=lambda each: _turn(each.job))


def _turn(job: Job) -> tuple[object, ...]:
    return -PRIORITIES[job.spec.scheduling.priority_class], job.turn_at or job.submitted_at, job.uid


def _holdings(placer: Placer) -> dict[str, _Holding]:
    found = {}
    for name, held in placer.ledger.groups.items():
        leaves = sum(len(pod.cells) for pod in held.stored.pods.values()) if held.stored is not None else 0
        reserved = held.state is State.PREEMPTING
        found[name] = _Holding(name.rpartition("/")[0], held.group.vc, leaves, bool(held.displaced_by), reserved)
    return found


def _by_job(groups: dict[str, _Holding]) -> tuple[JobEffect, ...]:
    """Groups of one job as one effect, in order of the groups."""
    found: dict[str, JobEffect] = {}
    for name, held in groups.items():
        known = found.get(held.job)
        gpus, names = (0, ()) if known is None else (known.gpus, known.groups)
        found[held.job] = JobEffect(job=held.job, vc=held.vc, gpus=gpus + held.leaves, groups=(*names, name))
    return tuple(found.values())


def _waits(each: Queued, sizing: Sizing, *, message: str = "", already: bool = False) -> JobEffect:
    wish = wish_of(each.job, each.tasks, sizing)
    gpus = sum(party.group.leaves for party in wish.parties)
    return JobEffect(job=each.job.id, vc=each.job.spec.virtual_cluster, gpus=gpus, message=message, already=already)


def _never(job: Job, config: ClusterConfig | None, sizing: Sizing) -> str:
    """Why the job can never start with this configuration; empty when it can."""
    if config is None:
        return ""
    if job.spec.virtual_cluster not in config.virtual_clusters:
        return f"there is no virtual cluster {job.spec.virtual_cluster}"
    wrong = misfits(job.spec, config, sizing)
    return wrong[0].message if wrong else ""


def _starting(placer: Placer, waiting: Iterable[Queued]) -> dict[JobUid, int]:
    """Job -> how many of its tasks start when the queue has asked everybody."""
    for each in waiting:
        placer.wait(each.job, each.tasks)
    found: dict[JobUid, int] = {}
    more = True
    while more:
        answer = placer.advance(AT_ONCE)
        for unit in answer.started:
            found[unit.job] = found.get(unit.job, 0) + len(unit.uids)
        more = answer.more
    return found
