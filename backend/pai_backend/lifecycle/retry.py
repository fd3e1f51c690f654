"""Whether something that ended is run again, and when: a job's attempt, or in an incremental job one task.

Source: OpenPAI retryCount and taskRetryCount (its framework controller's retry policy): n retries of failures of the
class *unknown*, -1 without limit, -2 always, even after success and whatever the class. Transient failures are free and
have no limit, permanent ones are never retried. Preemption and lost nodes are transient (architecture §7).
"""

from __future__ import annotations

from datetime import timedelta
from typing import Final

from pai_backend.lifecycle.exits import explain
from pai_backend.model.job import Causer, ExitKind, Job, Retries, State, Task, Verdict

ALWAYS: Final = -2
UNLIMITED: Final = -1

AT_ONCE: Final = 3
"""So many charged retries follow without a pause: a flaky start should not cost the user time."""

FIRST_PAUSE, LONGEST_PAUSE = timedelta(seconds=1), timedelta(seconds=300)
"""Pauses after lost tasks and after many failures: doubling. A lost node needs time to come back."""

FIRST_CONFLICT_PAUSE, LONGEST_CONFLICT_PAUSE = timedelta(seconds=60), timedelta(seconds=900)
"""Pauses after conflicts over resources: doubling. Source: OpenPAI's back-off, 60 s to 900 s."""

LONG_RUN: Final = timedelta(minutes=10)
"""What ran for so long is not caught in a quick loop: its pauses begin anew. Source: Kubernetes' container back-off."""


def wants_retry(job: Job, verdict: Verdict) -> bool:
    """Whether the job is to run again after this verdict."""
    if verdict.outcome is State.STOPPED:
        return False
    kind = verdict.kind if verdict.outcome is State.FAILED else ExitKind.SUCCESS
    return _again(job.spec.retry_count, kind, job.retries)


def runs_again_alone(job: Job, task: Task) -> bool:
    """Whether this task, which is over, is run again without the rest of its job."""
    if job.spec.scheduling.gang_allocation or task.exit is None or task.exit.reason == "stopped":
        return False
    return _again(job.spec.role(task.role).task_retry_count, explain(task.exit).kind, task.retries)


def charge(retries: Retries, causer: Causer, kind: ExitKind) -> Retries:
    """The counters after one more run, counted under who caused it.

    Of what resources cause, only preemption is transient without being a conflict: it is counted by itself.
    """
    under = "preempted" if causer is Causer.RESOURCE and kind is ExitKind.TRANSIENT else causer.value
    return retries.model_copy(update={under: getattr(retries, under) + 1, "free": retries.free + kind.free})


def back_off(retries: Retries, kind: ExitKind, causer: Causer, ran_for: timedelta) -> timedelta:
    """How long to wait before the next run, by the class of what ended and the counters before it is charged."""
    again: int = 0 if ran_for >= LONG_RUN else getattr(retries, causer.value)
    if kind is ExitKind.TRANSIENT_CONFLICT:
        return _doubled(FIRST_CONFLICT_PAUSE, again, LONGEST_CONFLICT_PAUSE)
    if kind is ExitKind.TRANSIENT:
        # What was preempted waits for its place in the queue anyway.
        return timedelta(0) if causer is Causer.RESOURCE else _doubled(FIRST_PAUSE, again, LONGEST_PAUSE)
    return timedelta(0) if again < AT_ONCE else _doubled(FIRST_PAUSE, again - AT_ONCE, LONGEST_PAUSE)


def ran_for(tasks: tuple[Task, ...]) -> timedelta:
    """How long these tasks ran, from the first start to the last end; time they were kept does not count."""
    started = [task.started_at for task in tasks if task.started_at is not None]
    ended = [task.ended_at for task in tasks if task.ended_at is not None]
    return max(ended) - min(started) if started and ended else timedelta(0)


def _again(limit: int, kind: ExitKind, retries: Retries) -> bool:
    if limit == ALWAYS:
        return True
    if kind is ExitKind.SUCCESS or kind is ExitKind.PERMANENT:
        return False
    return kind.free or limit == UNLIMITED or retries.charged < limit


def _doubled(first: timedelta, times: int, longest: timedelta) -> timedelta:
    doubled: timedelta = first * 2 ** min(times, 16)
    return min(doubled, longest)
