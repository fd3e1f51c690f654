"""What a user's earlier jobs let one expect of the next one of their kind. Pure; its memory is bounded."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Sequence
from datetime import timedelta
from typing import Final

from pai_backend.model.attempts import KEPT, Ran, Times, kind_of, with_another
from pai_backend.model.job import Job

LEAST: Final = 3
"""Attempts of a kind without which nothing is expected: one or two may both have been trials."""
MOST_KINDS: Final = 10_000
"""Kinds that are remembered, those with the latest ends; about 10 MiB when all of them have all their attempts."""


class History:
    """What has been learnt so far; made from what is stored, and told of every end from then on."""

    def __init__(self, known: Iterable[Times] = ()) -> None:
        """``known``: kinds with the earliest ends first."""
        self._times: OrderedDict[tuple[str, str], tuple[int, ...]] = OrderedDict()
        for each in known:
            self._times[each.user, each.kind] = each.seconds[-KEPT:]

    def note(self, one: Ran) -> None:
        """Another attempt has come to its end."""
        key = one.user, one.kind
        self._times[key] = with_another(self._times.pop(key, ()), one.seconds)
        if len(self._times) > MOST_KINDS:
            self._times.popitem(last=False)

    def expected(self, job: Job) -> timedelta | None:
        """How long an attempt of the job may be expected to run; None when its user has run too few like it."""
        times = self._times.get((job.user, kind_of(job.spec)), ())
        return timedelta(seconds=usual(times)) if len(times) >= LEAST else None


def usual(times: Sequence[int]) -> int:
    """The time within which three of four attempts ended (nearest rank).

    Not the mean, which one hung attempt moves by hours, and not the median: who is told a time will be told the truth
    three times in four instead of twice. With three attempts it is the longest.
    """
    return sorted(times)[-(-3 * len(times) // 4) - 1]
