"""How long a job is expected to run: as its document says, or as its user's earlier jobs of its kind ran.

What follows for its turn and its end is here, too. Pure; its memory is bounded. :meth:`History.run_time` is the
:data:`RunTime` of a backend.
"""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Callable, Iterable, Sequence
from datetime import datetime, timedelta
from statistics import median
from typing import Final

from pai_backend.model.attempts import KEPT, Ran, Times, kind_of, ran, with_another
from pai_backend.model.ids import JobUid, TaskUid
from pai_backend.model.job import Job, Task
from pai_backend.model.order import Order
from pai_backend.model.waiting import Basis

RunTime = Callable[[Job], timedelta | None]
"""How long an attempt of the job runs: declared in its document, or from its user's history. None when unknown."""


LEAST: Final = 3
"""Attempts of a kind without which nothing is expected: one or two may both have been trials."""
MOST_KINDS: Final = 10_000
"""Kinds that are remembered, those with the latest ends; about 10 MiB when all of them have all their attempts.

One that was forgotten begins again in this memory; what is stored of it counts again when a controller starts.
"""
MANY: Final = 8
"""Runs of a user, of whatever kinds, by which one of an unknown kind is judged."""
RECENT: Final = 60
"""Runs of a user, and of everybody, that are remembered without their kind."""
MOST_USERS: Final = 10_000
MOST_JOBS: Final = 50_000
"""Jobs whose kinds are remembered: the same jobs are asked about again and again, and a kind takes 20 us to tell."""


class History:
    """Known run times: read from the store at first, then recorded at every end."""

    def __init__(self, known: Iterable[Times] = ()) -> None:
        """``known``: kinds with the earliest ends first."""
        self._times: OrderedDict[tuple[str, str], tuple[int, ...]] = OrderedDict()
        self._kinds: dict[JobUid, str] = {}
        self._of_user: OrderedDict[str, deque[int]] = OrderedDict()
        self._latest: deque[int] = deque(maxlen=RECENT)
        for each in known:
            self._times[each.user, each.kind] = each.seconds[-KEPT:]
            self._recent(each.user, each.seconds)

    def record(self, before: Job, after: Job) -> None:
        """A change of a job was stored: if it is the end of an attempt that tells something, it is noted."""
        ended = ran(before, after)
        if ended is not None:
            self.note(ended)

    def note(self, one: Ran) -> None:
        """Another attempt has come to its end."""
        self._recent(one.user, (one.seconds,))
        key = one.user, one.kind
        self._times[key] = with_another(self._times.pop(key, ()), one.seconds)
        if len(self._times) > MOST_KINDS:
            self._times.popitem(last=False)

    def _recent(self, user: str, seconds: Iterable[int]) -> None:
        """These are the latest runs of the user."""
        own = self._of_user.pop(user, None) or deque(maxlen=RECENT)
        own.extend(seconds)
        self._latest.extend(seconds)
        self._of_user[user] = own
        if len(self._of_user) > MOST_USERS:
            self._of_user.popitem(last=False)

    def run_time(self, job: Job) -> timedelta | None:
        """How long an attempt of the job is expected to run; None when neither it nor enough runs like it say.

        What the author declares goes before what others of its kind did: who writes it knows what is new this time.
        """
        if job.spec.expected_run_s is not None:
            return timedelta(seconds=job.spec.expected_run_s)
        times = self._times.get((job.user, self._kind(job)), ())
        return timedelta(seconds=usual(times)) if len(times) >= LEAST else None

    def likely(self, job: Job) -> timedelta | None:
        """How long an attempt of the job will rather run than not, for the order of the queue.

        The median of its kind; else what is declared, else that of the user's latest runs, else of everybody's. History
        goes before what is declared, which would else be a way to the front.
        """
        return self.likely_of(job.user, self._kind(job), job.spec.expected_run_s)

    def likely_of(self, user: str, kind: str, declared: float | None = None) -> timedelta | None:
        """The same by user and kind, with the seconds that are declared."""
        times: Sequence[float] = self._times.get((user, kind), ())
        if len(times) < LEAST:
            if declared is not None:
                return timedelta(seconds=declared)
            times = self._of_user.get(user, ())
            times = times if len(times) >= MANY else self._latest
        return timedelta(seconds=median(times)) if len(times) >= LEAST else None

    def _kind(self, job: Job) -> str:
        kind = self._kinds.get(job.uid)
        if kind is None:
            if len(self._kinds) >= MOST_JOBS:
                self._kinds.clear()
            kind = self._kinds[job.uid] = kind_of(job.spec)
        return kind


def basis_of(job: Job) -> Basis:
    """Where it is known from how long a job runs, if it is known."""
    return Basis.HISTORY if job.spec.expected_run_s is None else Basis.DECLARED


def usual(times: Sequence[int]) -> int:
    """The time within which three of four attempts ended (nearest rank).

    Not the mean, which one hung attempt moves by hours, and not the median: who is told a time will be told the truth
    three times in four instead of twice. With three attempts it is the longest.
    """
    return sorted(times)[-(-3 * len(times) // 4) - 1]


class Turns:
    """By how much the turns of waiting jobs are put off, as long as that is not stored."""

    def __init__(self) -> None:
        self._put_off: dict[JobUid, int] = {}

    def of(self, job: Job, order: Order, likely: RunTime) -> Job:
        """The job with the turn that the order of its virtual cluster gives it, until one is stored with it."""
        if job.put_off_s is not None or order is Order.SUBMITTED:
            self.forget(job.uid)
            return job
        if job.uid not in self._put_off:
            self._put_off[job.uid] = round(order.put_off(likely(job)).total_seconds())
        turn = (job.turn_at or job.submitted_at) + timedelta(seconds=self._put_off[job.uid])
        return job.model_copy(update={"turn_at": turn})

    def put_off_s(self, uid: JobUid) -> int | None:
        """By how many seconds the turn of a job is put off; None: by none, or that is stored."""
        return self._put_off.get(uid)

    def forget(self, uid: JobUid) -> None:
        """The job is over, or its turn is stored. Idempotent."""
        self._put_off.pop(uid, None)


class Starts:
    """When tasks that run have started, and when those were placed that have not started yet."""

    def __init__(self) -> None:
        self._started: dict[TaskUid, datetime] = {}
        self._placed: dict[str, datetime] = {}

    def placed(self, unit: str, now: datetime) -> None:
        """The unit of this name was given its place."""
        self._placed[unit] = now

    def started(self, tasks: Iterable[Task]) -> None:
        """Tasks of a job as they are stored."""
        self._started.update((task.uid, task.started_at) for task in tasks if task.holds_place and task.started_at)

    def placed_at(self, unit: str) -> datetime | None:
        """When the unit was given its place; None: before this memory began."""
        return self._placed.get(unit)

    def first(self, uids: Iterable[TaskUid]) -> datetime | None:
        """When the first of these tasks has started."""
        return min((self._started[uid] for uid in uids if uid in self._started), default=None)

    def of(self, unit: str, uids: Iterable[TaskUid]) -> datetime | None:
        """When the last of a unit's tasks has started; None when none is known to have been placed."""
        return max((self._started[uid] for uid in uids if uid in self._started), default=self._placed.get(unit))

    def forget(self, unit: str, uids: Iterable[TaskUid]) -> None:
        """The unit no longer runs. Idempotent."""
        self._placed.pop(unit, None)
        for uid in uids:
            self._started.pop(uid, None)
