"""When a job has run for as long as it may: by its ``maxDuration``, or by the longest run of its virtual cluster. Pure.

An attempt's time begins with the first of its tasks, and goes on while others wait. The next attempt has its time
again; so has a task that is run again alone when no other has begun before it. A longest run that is set while an
attempt runs leaves that some time more (``LongestRun.end``).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from pai_backend.model.booking import Booking
from pai_backend.model.duration import duration_text
from pai_backend.model.job import Desired, Job
from pai_backend.model.text import Text
from pai_backend.model.vc_rules import LEAST_LEFT, LongestRun

MOST_NOTICE: Final = timedelta(minutes=15)
_NOTICE_SHARE: Final = 10


@dataclass(frozen=True)
class End:
    """When a job is stopped for having run for as long as it may, and what says how long that is."""

    at: datetime
    after: timedelta
    is_own: bool
    """Its document says so; else its virtual cluster."""
    is_put_off: bool = False
    """The rule is younger than the attempt, which therefore is left some time more."""
    booking: Booking | None = None
    """The reservation that begins then."""

    @property
    def sentence(self) -> str:
        """Why the job was stopped."""
        if self.booking is not None:
            return Text(
                "the reservation {name} began, and it held GPUs that are reserved from then on", name=self.booking.name
            )
        whose = Text("its maxDuration") if self.is_own else Text("the longest run in its virtual cluster")
        time = duration_text(int(self.after.total_seconds()))
        if self.is_put_off:
            return Text("it has run for longer than {time}, {limit}", time=time, limit=whose)
        return Text("it has run for {time}, {limit}", time=time, limit=whose)


def end_of(job: Job, longest_run: LongestRun | None, bookings: Sequence[Booking] = ()) -> End | None:
    """When the job's attempt has run for as long as it may; None: it has not begun, or may run until it is done.

    ``longest_run`` is that of its virtual cluster. A reservation in ``bookings`` ends those that were named when it was
    made, and those that started only because they had to be over by then.
    """
    began = min((task.started_at for task in job.tasks if task.started_at is not None), default=None)
    is_ending = job.state.final or job.verdict is not None or job.desired is Desired.STOP
    if began is None or is_ending or job.restarting:
        return None
    ends = []
    if job.spec.max_duration_s is not None:
        own = timedelta(seconds=job.spec.max_duration_s)
        ends.append(End(began + own, own, is_own=True))
    if longest_run is not None:
        at = longest_run.end(began)
        ends.append(End(at, longest_run.after, is_own=False, is_put_off=at > began + longest_run.after))
    ends += [
        End(each.begins, each.begins - began, is_own=False, booking=each) for each in bookings if _makes_way(job, each)
    ]
    return min(ends, key=lambda end: end.at, default=None)


def _makes_way(job: Job, booking: Booking) -> bool:
    """Whether the job has to end when the reservation begins."""
    places = [task.placement for task in job.tasks if task.holds_place and task.placement is not None]
    began_before = any(
        task.started_at is not None and booking.made_at is not None and task.started_at < booking.made_at
        for task in job.tasks
    )
    return (job.uid in booking.stops and began_before) or any(place.stops_by == booking.begins for place in places)


def notice(end: End) -> timedelta:
    """How long before the end the warning comes: a tenth of the time, at most 15 minutes; at once if it was put off."""
    if end.booking is not None:
        return MOST_NOTICE
    usual = min(MOST_NOTICE, end.after / _NOTICE_SHARE)
    return max(usual, LEAST_LEFT) if end.is_put_off else usual


def warning(end: End) -> str:
    """What the owner is told before the end."""
    what = Text("its maxDuration is over") if end.is_own else Text("that is the longest run in its virtual cluster")
    if end.booking is not None:
        what = Text("GPUs that it holds are reserved from then on for {name}", name=end.booking.name)
    return Text(
        "This job is stopped at {time} UTC: {reason}. Save what it has done so far.",
        time=f"{end.at:%Y-%m-%d %H:%M:%S}",
        reason=what,
    )
