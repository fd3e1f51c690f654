"""How long a job is expected to run: as its document says, or as its user's earlier jobs of its kind ran.

Pure; its memory is bounded. :meth:`History.run_time` is the :data:`RunTime` of a backend.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterable, Sequence
from datetime import timedelta
from typing import Final

from pai_backend.model.attempts import KEPT, Ran, Times, kind_of, ran, with_another
from pai_backend.model.ids import JobUid
from pai_backend.model.job import Job
from pai_backend.model.waiting import Basis

RunTime = Callable[[Job], timedelta | None]
"""How long an attempt of the job runs: declared in its document, or from its user's history. None when unknown."""


LEAST: Final = 3
"""Attempts of a kind without which nothing is expected: one or two may both have been trials."""
MOST_KINDS: Final = 10_000
"""Kinds that are remembered, those with the latest ends; about 10 MiB when all of them have all their attempts.

One that was forgotten begins again in this memory; what is stored of it counts again when a controller starts.
"""
MOST_JOBS: Final = 50_000
"""Jobs whose kinds are remembered: the same jobs are asked about again and again, and a kind takes 20 us to tell."""


class History:
    """Known run times: read from the store at first, then recorded at every end."""

    def __init__(self, known: Iterable[Times] = ()) -> None:
        """``known``: kinds with the earliest ends first."""
        self._times: OrderedDict[tuple[str, str], tuple[int, ...]] = OrderedDict()
        self._kinds: dict[JobUid, str] = {}
        for each in known:
            self._times[each.user, each.kind] = each.seconds[-KEPT:]

    def record(self, before: Job, after: Job) -> None:
        """A change of a job was stored: if it is the end of an attempt that tells something, it is noted."""
        ended = ran(before, after)
        if ended is not None:
            self.note(ended)

    def note(self, one: Ran) -> None:
        """Another attempt has come to its end."""
        key = one.user, one.kind
        self._times[key] = with_another(self._times.pop(key, ()), one.seconds)
        if len(self._times) > MOST_KINDS:
            self._times.popitem(last=False)

    def run_time(self, job: Job) -> timedelta | None:
        """How long an attempt of the job is expected to run; None when neither it nor enough runs like it say.

        What the author declares goes before what others of its kind did: who writes it knows what is new this time.
        """
        if job.spec.expected_run_s is not None:
            return timedelta(seconds=job.spec.expected_run_s)
        times = self._times.get((job.user, self._kind(job)), ())
        return timedelta(seconds=usual(times)) if len(times) >= LEAST else None

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
