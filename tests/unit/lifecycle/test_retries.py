"""What is run again, for how many times, and after which pause."""

from datetime import timedelta

import pytest

from pai_backend.lifecycle.retry import back_off
from pai_backend.model.job import Causer, ExitKind, Job, Phase, Retries, State
from pai_backend.testing.builders import make_job, make_role, make_spec
from tests.support.lives import ended, forgotten, lost, running

SHORT = timedelta(seconds=5)
NEVER_AGAIN, AGAIN = State.FAILED, State.WAITING


def after_one_failure(retry_count: int, code: int | None, reason: str = "exited") -> Job:
    """A job whose only task has ended so."""
    return forgotten(ended(running(make_job(spec=make_spec(retry_count=retry_count))), 0, code, reason))


@pytest.mark.parametrize(
    ("retry_count", "code", "reason", "state", "charged"),
    [
        # Source: OpenPAI, retryCount and exit behaviours (research, §2.4 and §5)
        (0, 1, "exited", NEVER_AGAIN, 0),
        (1, 1, "exited", AGAIN, 1),
        (-1, 1, "exited", AGAIN, 1),
        (-2, 1, "exited", AGAIN, 1),
        (-2, 0, "exited", AGAIN, 1),
        (-1, 0, "exited", State.SUCCEEDED, 0),
        (5, 0, "exited", State.SUCCEEDED, 0),
        # permanent: not even without limit, but -2 means always
        (5, 127, "exited", NEVER_AGAIN, 0),
        (-1, 127, "exited", NEVER_AGAIN, 0),
        (-2, 127, "exited", AGAIN, 1),
        (5, None, "out-of-memory", NEVER_AGAIN, 0),
        # transient: free and without limit
        (0, None, "lost", AGAIN, 0),
        (0, None, "vanished", AGAIN, 0),
        (0, None, "preempted", AGAIN, 0),
        (0, None, "evicted", AGAIN, 0),
        (0, None, "port-conflict", AGAIN, 0),
        # what the platform cannot even start is bounded like the rest
        (0, None, "start-failed", NEVER_AGAIN, 0),
        (1, None, "start-failed", AGAIN, 1),
        (5, None, "start-forbidden", NEVER_AGAIN, 0),
        (0, None, "input-failed", NEVER_AGAIN, 0),
        (1, None, "disk-full", AGAIN, 1),
    ],
)
def test_a_job_is_run_again_by_the_class_of_its_end(
    retry_count: int, code: int | None, reason: str, state: State, charged: int
) -> None:
    job = after_one_failure(retry_count, code, reason)
    assert job.state is state
    assert job.retries.charged == charged
    assert job.attempt == (1 if state is AGAIN else 0)


def test_retries_are_counted_under_who_caused_them() -> None:
    """Source: OpenPAI retryDetails{user, platform, resource}."""
    job = make_job(spec=make_spec(retry_count=1))
    for reason in ("lost", "preempted", "evicted", "exited"):
        job = forgotten(ended(running(job), 0, 1 if reason == "exited" else None, reason))
        job = job.model_copy(update={"backoff_until": None})
    assert (job.retries.user, job.retries.by_platform, job.retries.resource) == (1, 2, 1)
    assert (job.retries.platform, job.retries.preempted) == (1, 1)
    assert (job.retries.total, job.retries.free, job.retries.charged) == (4, 3, 1)


@pytest.mark.parametrize(
    ("kind", "causer", "pauses_s"),
    [
        (ExitKind.UNKNOWN, Causer.USER, [0, 0, 0, 1, 2, 4, 8, 16, 32, 64, 128, 256, 300, 300]),
        (ExitKind.TRANSIENT, Causer.PLATFORM, [1, 2, 4, 8, 16, 32, 64, 128, 256, 300, 300]),
        (ExitKind.TRANSIENT, Causer.RESOURCE, [0, 0, 0, 0]),
        (ExitKind.TRANSIENT_CONFLICT, Causer.RESOURCE, [60, 120, 240, 480, 900, 900]),
        (ExitKind.SUCCESS, Causer.USER, [0, 0, 0, 1, 2]),
    ],
)
def test_pauses_grow_with_what_went_before(kind: ExitKind, causer: Causer, pauses_s: list[int]) -> None:
    for before, pause in enumerate(pauses_s):
        retries = Retries(**{causer.value: before})
        assert back_off(retries, kind, causer, SHORT) == timedelta(seconds=pause)


def test_pauses_begin_anew_after_a_long_run_and_have_a_bound_after_any_number() -> None:
    many = Retries(platform=10_000, user=10_000)
    long_run = timedelta(minutes=10)
    assert back_off(many, ExitKind.TRANSIENT, Causer.PLATFORM, SHORT) == timedelta(seconds=300)
    assert back_off(many, ExitKind.TRANSIENT, Causer.PLATFORM, long_run) == timedelta(seconds=1)
    assert back_off(many, ExitKind.UNKNOWN, Causer.USER, long_run) == timedelta(0)


def test_the_run_that_counts_for_a_pause_is_the_one_that_ended() -> None:
    job = make_job(spec=make_spec())
    for _ in range(3):
        job = forgotten(lost(running(job.model_copy(update={"backoff_until": None}))))
    assert job.phase is Phase.BACKING_OFF
    job = running(job.model_copy(update={"backoff_until": None}))
    after_hours = forgotten(ended(job, 0, None, "lost", after_s=7200), after_s=7201)
    assert after_hours.backoff_until is not None
    assert after_hours.tasks[0].started_at is None
    assert after_hours.backoff_until == job.submitted_at + timedelta(seconds=7201 + 1)


def test_a_gang_does_not_follow_task_retries() -> None:
    """Source: OpenPAI, taskRetryCount is followed only when gangAllocation is false (research, §2.4)."""
    role = make_role(instances=2, task_retry_count=5)
    job = forgotten(ended(running(make_job(spec=make_spec(roles=[role]))), 0, 1))
    assert job.verdict is not None
    assert job.tasks[0].attempt == 0
