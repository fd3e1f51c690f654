"""Whether a decided attempt is followed by another, and when.

Source: OpenPAI retryCount: n retries of the user's own failures, -1 without limit, -2 always, even
after success. What the platform lost is run again without being charged (architecture §7); what it
could not even start is not lost, and would fail again: that is bounded by retryCount like the rest.
"""

from __future__ import annotations

from datetime import timedelta

from pai_backend.model.job import Causer, Job, Retries, State, Verdict

ALWAYS = -2
UNLIMITED = -1
FREE = frozenset({"lost", "vanished"})
"""Exit reasons that cost no retry and have no limit: the task was taken from the user."""

MAX_BACKOFF = timedelta(seconds=300)


def wants_retry(job: Job, verdict: Verdict) -> bool:
    """Whether the job is to run again after this verdict."""
    if verdict.outcome is State.STOPPED:
        return False
    if job.spec.retry_count == ALWAYS:
        return True
    if verdict.outcome is State.SUCCEEDED:
        return False
    if verdict.reason in FREE or job.spec.retry_count == UNLIMITED:
        return True
    charged = job.retries.total - job.retries.free
    return charged < job.spec.retry_count


def charge(retries: Retries, verdict: Verdict) -> Retries:
    """The counters after one more retry, charged to who caused it."""
    name = verdict.causer.value if verdict.outcome is State.FAILED else Causer.USER.value
    free = retries.free + (verdict.reason in FREE)
    return retries.model_copy(update={name: getattr(retries, name) + 1, "free": free})


def back_off(retries: Retries, verdict: Verdict) -> timedelta:
    """How long to wait first: 1 s doubling to 300 s for repeated losses, nothing for the user's own failures.

    A user's retry waits for its place in the queue anyway; a lost node needs time to come back.
    """
    if verdict.causer is not Causer.PLATFORM:
        return timedelta(0)
    return min(timedelta(seconds=2 ** min(retries.platform, 16)), MAX_BACKOFF)
