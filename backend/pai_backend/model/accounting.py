"""Who held GPUs and CPUs, of which kind and from when to when: the stays of tasks at their places. Pure.

A stay begins with the save that gives a task its place and ends with the one that takes it back, so stays add up to
what the scheduler has given away at each moment. Time is counted in whole microseconds: sums of parts are exact.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from enum import StrEnum

from pai_backend.model.ids import JobUid, TaskUid
from pai_backend.model.job import Job, Task
from pai_backend.model.price import HOUR_US as HOUR_US
from pai_backend.model.price import Prices

_US = timedelta(microseconds=1)


@dataclass(frozen=True, slots=True)
class Stay:
    """A run of a task that holds a place, and who answers for it."""

    task: TaskUid
    job: JobUid
    user: str
    virtual_cluster: str
    gpu_type: str
    gpus: int
    cpus: int
    opportunistic: bool
    """Whether it is beyond the quota of its virtual cluster."""


@dataclass(frozen=True, slots=True)
class Period:
    """A stay with its time; ``ended_at`` is None while it lasts."""

    stay: Stay
    began_at: datetime
    ended_at: datetime | None


class By(StrEnum):
    """By what hours are told apart."""

    USER = "user"
    GROUP = "group"
    VIRTUAL_CLUSTER = "vc"
    GPU_TYPE = "type"
    DAY = "day"
    JOB = "job"
    QUOTA = "quota"


@dataclass(frozen=True, slots=True)
class Total:
    """What came together: microseconds of one GPU, and of one CPU, and what these cost (``price``)."""

    gpu_us: int = 0
    cpu_us: int = 0
    stays: int = 0
    """Stays that touch the time; one that lasts over midnight counts on both days."""
    cost: int = 0

    def __add__(self, other: Total) -> Total:
        return Total(
            self.gpu_us + other.gpu_us,
            self.cpu_us + other.cpu_us,
            self.stays + other.stays,
            self.cost + other.cost,
        )


NO_GROUPS = ("",)
"""The groups of a user who is in none."""
NO_PRICES = Prices()


def stay_of(job: Job, task: Task) -> Stay | None:
    """The stay of a task as it is; None when it holds no place."""
    place = task.placement
    if place is None or not task.holds_place:
        return None
    return Stay(
        task.uid,
        job.uid,
        job.user,
        job.virtual_cluster,
        place.gpu_type if place.gpus else "",
        len(place.gpus),
        job.spec.role(task.role).resources.cpus,
        not place.owned and bool(place.gpus),
    )


def changes(seen: Job, job: Job) -> tuple[list[TaskUid], list[Stay]]:
    """Tasks whose stays have ended between two states of a job, and stays that have begun.

    Both for a task that holds its place for another virtual cluster, or on other terms, from now on.
    """
    if seen.tasks is job.tasks and seen.virtual_cluster == job.virtual_cluster:
        return [], []
    before = {task.uid: task for task in seen.tasks}
    same_payer = seen.virtual_cluster == job.virtual_cluster
    ended, begun = list[TaskUid](), list[Stay]()
    for task in job.tasks:
        old = before.pop(task.uid, None)
        if old is task and same_payer:
            continue
        was, now = stay_of(seen, old) if old is not None else None, stay_of(job, task)
        if was != now:
            ended += [] if was is None else [was.task]
            begun += [] if now is None else [now]
    ended += [task.uid for task in before.values() if task.holds_place]  # runs that another one has replaced
    return ended, begun


def totals(
    periods: Iterable[Period],
    by: Sequence[By],
    begin: datetime,
    end: datetime,
    *,
    prices: Prices = NO_PRICES,
    groups: Mapping[str, Sequence[str]] | None = None,
) -> Mapping[tuple[str, ...], Total]:
    """What was held from ``begin`` until ``end``, told apart; what lasts is counted until ``end``. Days are UTC's.

    ``groups``: those of each user that is in any. By group, the hours of a user in several groups count in each.
    """
    found = defaultdict[tuple[str, ...], list[int]](lambda: [0, 0, 0, 0])
    known = groups or {}
    for period in periods:
        since, until = max(period.began_at, begin), min(period.ended_at or end, end)
        if since >= until:
            continue
        stay = period.stay
        names = known.get(stay.user, NO_GROUPS) if By.GROUP in by else NO_GROUPS
        pieces = _days(since, until) if By.DAY in by else ((None, since, until),)
        for day, first, last in pieces:
            lasted = (last - first) // _US
            cost = prices.cost(stay.gpu_type, stay.gpus, stay.cpus, first, last)
            for group in names:
                sums = found[tuple([_part(stay, each, day, group) for each in by])]
                sums[0] += stay.gpus * lasted
                sums[1] += stay.cpus * lasted
                sums[2] += 1
                sums[3] += cost
    return {key: Total(*sums) for key, sums in found.items()}


def _days(since: datetime, until: datetime) -> Iterator[tuple[date, datetime, datetime]]:
    while since < until:
        day = since.astimezone(UTC).date()
        midnight = datetime(day.year, day.month, day.day, tzinfo=UTC) + timedelta(days=1)
        yield day, since, min(midnight, until)
        since = midnight


def _part(stay: Stay, by: By, day: date | None, group: str) -> str:
    match by:
        case By.USER:
            return stay.user
        case By.GROUP:
            return group
        case By.VIRTUAL_CLUSTER:
            return stay.virtual_cluster
        case By.GPU_TYPE:
            return stay.gpu_type
        case By.DAY:
            return day.isoformat() if day is not None else ""
        case By.JOB:
            return stay.job
        case By.QUOTA:
            return "opportunistic" if stay.opportunistic else "guaranteed"
