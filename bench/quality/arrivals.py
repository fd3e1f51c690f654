"""Arrivals as published traces of training clusters describe them, from a seed.

Run times are heavy-tailed within and between kinds of jobs (lognormal); people submit the same few kinds again and
again (Weng et al., NSDI 2022: some two thirds recur); a fifth ends early, in minutes; sizes are 1, 2, 4 and 8 GPUs as
62, 12, 14 and 12 of a hundred; arrivals come in waves of days and weeks (Hu et al., SC 2021).
"""

from __future__ import annotations

import math
import random
from dataclasses import dataclass

HOUR, DAY = 3600.0, 86_400.0
SIZES, OF_SIZE = (1, 2, 4, 8), (62, 12, 14, 12)
USERS, KINDS = 40, 12
FAIL_EARLY = 0.2
BETWEEN, WITHIN = 1.9, 0.8
"""Sigmas of the logarithms of run times: of kinds' medians, and of the runs of one kind."""


@dataclass(frozen=True)
class Run:
    """One job: when it comes, in seconds, how long it runs, and on how many GPUs of one node."""

    at: float
    seconds: float
    gpus: int
    user: int
    kind: int


def arrivals(seed: int, jobs: int, gpus: int, load: float) -> list[Run]:
    """So many jobs that together keep ``load`` of so many GPUs busy, in order of their arrival."""
    rng = random.Random(seed)
    kinds: dict[tuple[int, int], tuple[float, int]] = {}
    drawn = [_job(rng, kinds) for _ in range(jobs)]
    span = sum(seconds * size for seconds, size, _, _ in drawn) / (gpus * load)
    times = sorted(_times(rng, jobs, span))
    return [Run(at, *job) for at, job in zip(times, drawn, strict=True)]


def _job(rng: random.Random, kinds: dict[tuple[int, int], tuple[float, int]]) -> tuple[float, int, int, int]:
    user, kind = int(rng.paretovariate(1.1)) % USERS, int(rng.paretovariate(1.0)) % KINDS
    if (user, kind) not in kinds:
        kinds[user, kind] = rng.lognormvariate(math.log(HOUR / 2), BETWEEN), rng.choices(SIZES, OF_SIZE)[0]
    median, size = kinds[user, kind]
    seconds = min(3 * DAY, median * rng.lognormvariate(0, WITHIN))
    if rng.random() < FAIL_EARLY:
        seconds = min(seconds, rng.expovariate(1 / 120))
    return max(10.0, seconds), size, user, kind


def _times(rng: random.Random, count: int, span: float) -> list[float]:
    """Moments in a span, more of them by day than by night, and fewer at weekends."""
    found: list[float] = []
    while len(found) < count:
        at = rng.uniform(0, span)
        by_day = 0.5 + 0.5 * math.sin(2 * math.pi * at / DAY)
        weekday = 0.4 if at % (7 * DAY) > 5 * DAY else 1.0
        if rng.random() < by_day * weekday:
            found.append(at)
    return found
