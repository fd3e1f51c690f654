"""When a job whose GPUs hardly work is warned and stopped, by the idle rule of its virtual cluster. Pure.

Rules of this file:

1. Only time that was measured counts: a sample speaks for the time since the one before. At a gap, and where a GPU of
   the job could not be read, nothing is known, so such time is neither use nor idleness, and no decision is made then
   (ADR 0016).
2. The first ``window`` of an attempt is its start-up and does not count.
3. Nothing is stopped that was not warned :func:`grace` of measured time before, and what it did since the warning
   decides. Whether a user is logged in does not: that is what ``idleTimeout`` asks.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from itertools import pairwise
from typing import Final

from pai_backend.model.duration import duration_text
from pai_backend.model.rule_clock import UnderuseClock
from pai_backend.model.text import Text, in_sentences
from pai_backend.model.vc_rules import VcRules

LEAST_GRACE: Final = timedelta(minutes=10)
_GRACE_SHARE: Final = 4
_GAP: Final = 2.5
"""Times the pause between two samples: more than that was not watched."""


class UnderuseTurn(StrEnum):
    """What a look has led to."""

    NONE = "none"
    WARN = "warn"
    OVER = "over"
    """It was warned, and its GPUs work again, or the rule is gone."""
    STOP = "stop"


@dataclass(frozen=True)
class GpuSample:
    """How much all GPUs of a job worked on average, in percent; None: at least one could not be read."""

    at: datetime
    percent: float | None


@dataclass(frozen=True)
class IdleRule:
    """GPUs that work less than ``below`` percent on average over ``window`` are underused."""

    below: float
    window: timedelta
    stops: bool

    @property
    def grace(self) -> timedelta:
        """Measured time between the warning and the stop: a quarter of the window, at least 10 minutes."""
        return max(LEAST_GRACE, self.window / _GRACE_SHARE)


def rule_of(rules: VcRules) -> IdleRule | None:
    """The idle rule among the rules of a virtual cluster; None: there is none."""
    if rules.idle_below_percent is None or rules.idle_for_s is None:
        return None
    return IdleRule(rules.idle_below_percent, timedelta(seconds=rules.idle_for_s), rules.idle_stops)


@dataclass(frozen=True)
class Mean:
    """The mean over measured time."""

    percent: float
    time: timedelta


def mean_of(samples: Sequence[GpuSample], since: datetime, pause: timedelta, most: timedelta | None = None) -> Mean:
    """The mean of the last ``most`` of measured time after ``since``; all of it when that is None."""
    worked, time = 0.0, timedelta()
    for before, sample in reversed([*pairwise(samples)]):
        length = sample.at - max(before.at, since)
        if length <= timedelta() or (most is not None and time >= most):
            break
        if sample.percent is None or sample.at - before.at > _GAP * pause:
            continue
        worked, time = worked + sample.percent * length.total_seconds(), time + length
    return Mean(worked / time.total_seconds() if time else 0.0, time)


def judged(
    clock: UnderuseClock, samples: Sequence[GpuSample], rule: IdleRule | None, began: datetime, pause: timedelta
) -> tuple[UnderuseClock, UnderuseTurn]:
    """The clock after a look at the samples of an attempt that began then, and what is to be done now.

    ``samples`` are in order of time, the last one is now; ``pause`` is the time between two.
    """
    if rule is None:
        return _over(clock, clock.counted_from)
    if not samples or samples[-1].percent is None:
        return clock, UnderuseTurn.NONE
    now, since = samples[-1].at, max(clock.counted_from, began + rule.window)
    mean = mean_of(samples, since, pause, rule.window)
    if clock.warned_at is None:
        if mean.time < rule.window or mean.percent >= rule.below:
            return clock, UnderuseTurn.NONE
        warned = clock.model_copy(update={"warned_at": now})
        return _told(warned, mean.percent, rule, now, rule.grace), UnderuseTurn.WARN
    if mean.percent >= rule.below:
        return _over(clock, now)
    lately = mean_of(samples, clock.warned_at, pause)
    if not rule.stops or lately.time < rule.grace:
        return _told(clock, mean.percent, rule, now, rule.grace - lately.time), UnderuseTurn.NONE
    return (clock, UnderuseTurn.STOP) if lately.percent < rule.below else _over(clock, now)


def _over(clock: UnderuseClock, since: datetime) -> tuple[UnderuseClock, UnderuseTurn]:
    if clock.warned_at is None:
        return clock, UnderuseTurn.NONE
    cleared = {"counted_from": since, "warned_at": None, "stop_at": None, "text": ""}
    return clock.model_copy(update=cleared), UnderuseTurn.OVER


def _told(clock: UnderuseClock, percent: float, rule: IdleRule, now: datetime, left: timedelta) -> UnderuseClock:
    """The clock with when the job is stopped, and the warning in words."""
    stop_at = now + left if rule.stops else None
    what = (
        Text("It is stopped at {time} UTC unless they work more until then.", time=f"{stop_at:%Y-%m-%d %H:%M}")
        if stop_at is not None
        else Text("Stop it if it does not need them.")
    )
    mean = Text(
        "The GPUs of this job work {percent} % of the time on average, {limit}.",
        percent=f"{percent:.1f}",
        limit=_limit(rule),
    )
    text = in_sentences([mean, what])
    return clock.model_copy(update={"stop_at": stop_at, "text": text})


def stop_sentence(rule: IdleRule) -> str:
    """Why the job was stopped."""
    return Text("idle: its GPUs worked {limit}", limit=_limit(rule))


def _limit(rule: IdleRule) -> Text:
    return Text(
        "less than the {percent} % over {window} that its virtual cluster asks for",
        percent=f"{rule.below:g}",
        window=duration_text(int(rule.window.total_seconds())),
    )
