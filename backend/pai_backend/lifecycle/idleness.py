"""When a job with an ``idleTimeout`` is warned and stopped: ``looked(clock, sight, rules) -> (clock, turn)``, pure.

Rules of this file:

1. Use moves ``since`` forward and never back, so it never brings the stop nearer.
2. Only time that was watched counts as idle. Between two looks that lie too far apart, before the one who looks began
   to, or at a look that could not read the GPUs, uses were not watched: ``since`` and the warning move on by that time,
   and neither a restart nor a failed look kills anything.
3. Nothing is stopped that was not warned :func:`notice` of watched time before.
4. GPUs that cannot be read may work: they hold the clock as long as that lasts (ADR 0016). What else cannot be read is
   no use. Both are told.

All times are of the one clock of who looks. Times of other machines (when a gateway passed bytes, when a kernel was
active, when a task began) are never compared with it: they are marks, and that one has changed since the last look is
use now.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Final

from pai_backend.model.duration import duration_text
from pai_backend.model.idle import IdleClock, UseSource
from pai_backend.model.job import Job, Phase
from pai_backend.model.text import Text, in_sentences

MOST_NOTICE: Final = timedelta(minutes=10)
_NOTICE_SHARE: Final = 4
_LOOKS: Final = 20
_LEAST_PAUSE, _MOST_PAUSE = timedelta(seconds=0.5), timedelta(seconds=30)
_LEAST_GAP: Final = timedelta(seconds=10)
_PAUSES_IN_GAP: Final = 4
_FEW_TASKS: Final = 16
_SWEEPS: Final = 4
_GPU_PAUSE: Final = timedelta(seconds=5)
_BELIEVED_SHARE: Final = 2
_READ: Final = {UseSource.KERNELS: Text("kernels"), UseSource.GPU: Text("gpu")}
"""What may be unreadable, in words."""


class Turn(StrEnum):
    """What a look has led to."""

    NONE = "none"
    WARN = "warn"
    OVER = "over"
    """It was warned, and is used again."""
    HELD = "held"
    """For the whole timeout nothing was seen to use it, and its GPUs could not be read."""
    STOP = "stop"


@dataclass(frozen=True)
class Sight:
    """What one look at a job has shown.

    ``watching_since``: when the one who looks began to. ``running_since``: when the last of its running tasks began;
    None while none runs. ``written``: the mark of the last use by each source that writes its uses down. ``working``:
    what uses it at this moment. ``kernels``: by Jupyter server that could be asked, its mark of the last activity;
    empty for none yet. ``unread``: what could not be read, and why.
    """

    at: datetime
    watching_since: datetime
    running_since: datetime | None
    written: Mapping[UseSource, datetime] = field(default_factory=dict)
    working: frozenset[UseSource] = frozenset()
    kernels: Mapping[str, str] = field(default_factory=dict)
    unread: Mapping[UseSource, str] = field(default_factory=dict)


def notice(timeout: timedelta) -> timedelta:
    """How long before the stop the warning comes: a quarter of the time, at most 10 minutes."""
    return min(MOST_NOTICE, timeout / _NOTICE_SHARE)


def pause(timeout: timedelta) -> timedelta:
    """The time between two looks: 20 looks in all, but one in 30 seconds at least and two in a second at most."""
    return max(_LEAST_PAUSE, min(_MOST_PAUSE, timeout / _LOOKS))


def gpus_at_a_look(tasks: int, timeout: timedelta) -> int:
    """Of how many tasks the GPUs are read at one look: so many that a quarter of the timeout is enough for all."""
    return max(_FEW_TASKS, math.ceil(tasks * (pause(timeout) / (timeout / _SWEEPS))))


def looks_between(timeout: timedelta) -> int:
    """After how many looks the GPUs of a task are read again: the next one, unless the looks are very close."""
    return math.ceil(_GPU_PAUSE / pause(timeout))


def looks_believed(timeout: timedelta) -> int:
    """For how many looks GPUs that were read at rest are believed to rest: half of the timeout."""
    return math.floor(timeout / _BELIEVED_SHARE / pause(timeout))


def stop_at(clock: IdleClock, timeout: timedelta) -> datetime:
    """When the job is stopped if nothing uses it, and it is watched and its GPUs can be read all the time."""
    warned_at = clock.warned_at if clock.warned_at is not None else clock.looked_at
    return max(clock.since + timeout, warned_at + notice(timeout))


def running_since(job: Job) -> datetime | None:
    """When the last of the job's running tasks began; None while none runs, and its clock stands still."""
    return max((task.started_at for task in job.tasks if task.phase is Phase.RUNNING and task.started_at), default=None)


def looked(clock: IdleClock | None, sight: Sight, timeout: timedelta) -> tuple[IdleClock, Turn]:
    """The clock after a look, and what is to be done now. A job's first look starts its clock."""
    if clock is None or sight.running_since is None:
        fresh = _marked(IdleClock(since=sight.at, looked_at=sight.at), sight)
        return fresh, Turn.OVER if clock is not None and clock.warned_at is not None else Turn.NONE
    used_by, now = _use(clock, sight), _marked(clock, sight)
    if used_by is not None:
        used = {"since": sight.at, "used_at": sight.at, "used_by": used_by, "warned_at": None}
        used["held_since"] = sight.at if now.held_since is not None else None
        return now.model_copy(update=used), Turn.OVER if clock.warned_at is not None else Turn.NONE
    now = _stood(clock, now, _unwatched(clock, sight, timeout))
    if now.held_since is not None:
        told_at = now.held_since + timeout
        return now, Turn.HELD if clock.looked_at < told_at <= sight.at else Turn.NONE
    if now.warned_at is not None:
        return now, Turn.STOP if sight.at >= stop_at(now, timeout) else Turn.NONE
    if sight.at < now.since + timeout - notice(timeout):
        return now, Turn.NONE
    return now.model_copy(update={"warned_at": sight.at}), Turn.WARN


def _stood(clock: IdleClock, now: IdleClock, unwatched: timedelta) -> IdleClock:
    """The clock at this look, moved by the time since the one before in which it stood."""
    stood = now.looked_at - clock.looked_at if now.held_since is not None else unwatched
    if not stood:
        return now
    moved = {"since": clock.since + stood, "warned_at": clock.warned_at and clock.warned_at + stood}
    if (
        clock.held_since is not None and now.held_since is not None
    ):  # what was not read on purpose is not reported as unread
        moved["held_since"] = clock.held_since + unwatched
    return now.model_copy(update=moved)


def _marked(clock: IdleClock, sight: Sight) -> IdleClock:
    """The clock with what is compared at the next look."""
    held_since = (clock.held_since or sight.at) if UseSource.GPU in sight.unread else None
    return clock.model_copy(
        update={
            "looked_at": sight.at,
            "started": sight.running_since or clock.started,
            "written": {**clock.written, **sight.written},
            "kernels": {**clock.kernels, **sight.kernels},
            "unread": sight.unread,
            "held_since": held_since,
        }
    )


def _use(clock: IdleClock, sight: Sight) -> UseSource | None:
    """What has used the job since the last look, or uses it now."""
    if sight.working:
        return min(sight.working)
    if changed := [source for source, mark in sight.written.items() if mark != clock.written.get(source)]:
        return min(changed)
    if any(mark and mark != clock.kernels.get(server) for server, mark in sight.kernels.items()):
        return UseSource.KERNELS
    started, before = sight.running_since, clock.started
    return UseSource.START if started is not None and (before is None or started > before) else None


def _unwatched(clock: IdleClock, sight: Sight, timeout: timedelta) -> timedelta:
    """The time since the last look in which uses were not watched; negative when the wall clock was put back."""
    passed = sight.at - clock.looked_at
    longest = max(_LEAST_GAP, _PAUSES_IN_GAP * pause(timeout))
    watched = clock.looked_at >= sight.watching_since and timedelta() <= passed <= longest
    return timedelta() if watched else passed


def idle_sentence(clock: IdleClock, timeout: timedelta) -> str:
    """The sentence on the clock now: what holds it, or the warning; empty for neither."""
    if clock.held_since is not None:
        return held_sentence(clock, timeout)
    return warning_sentence(clock, timeout) if clock.warned_at is not None else ""


def warning_sentence(clock: IdleClock, timeout: timedelta) -> str:
    """What the owner is told: since when, until when, and what prevents it."""
    said = Text(
        "Nothing has used this job since {since} UTC. It is stopped at {stop} UTC unless it is used before: type in a "
        "terminal, run a cell, open one of its services or let its GPUs work.",
        since=f"{clock.since:%Y-%m-%d %H:%M:%S}",
        stop=f"{stop_at(clock, timeout):%Y-%m-%d %H:%M:%S}",
    )
    unread = [
        Text("{what} could not be looked at: {why}.", what=_READ[what], why=why) for what, why in clock.unread.items()
    ]
    return in_sentences([said, *unread])


def held_sentence(clock: IdleClock, timeout: timedelta) -> str:
    """What the owner of a job is told whose GPUs hold the clock."""
    since = clock.held_since if clock.held_since is not None else clock.looked_at
    return Text(
        "Its GPUs could not be looked at since {since} UTC: {why}. They may work, so it is not stopped for being idle, "
        "whatever its idleTimeout of {timeout} says; stop it yourself when you no longer need it.",
        since=f"{since:%Y-%m-%d %H:%M:%S}",
        why=clock.unread.get(UseSource.GPU, ""),
        timeout=_duration(timeout),
    )


def stop_sentence(timeout: timedelta) -> str:
    """Why the job was stopped."""
    return Text("idle: nothing has used it for {timeout}, its idleTimeout", timeout=_duration(timeout))


def _duration(timeout: timedelta) -> str:
    return duration_text(int(timeout.total_seconds()))
