"""How long an attempt may run, from when that counts, and who says so."""

from datetime import timedelta

import pytest

from pai_backend.lifecycle.durations import end_of, notice, warning
from pai_backend.lifecycle.restart import restarted
from pai_backend.model.job import Desired, Job
from pai_backend.model.vc_rules import LEAST_LEFT, LongestRun
from pai_backend.testing.builders import T0, make_job, make_role, make_spec
from tests.support.lives import ended, forgotten, running

HOUR = timedelta(hours=1)


def job_of(max_duration: timedelta | None, tasks: int = 1, **changes: object) -> Job:
    """A job that waits."""
    limit = int(max_duration.total_seconds()) if max_duration is not None else None
    spec = make_spec(roles=[make_role(instances=tasks)])
    return make_job(spec=spec.model_copy(update={"max_duration_s": limit, **changes}))


@pytest.mark.parametrize(
    ("own", "of_cluster", "after", "says"),
    [
        (HOUR, None, HOUR, "it has run for 1h, its maxDuration"),
        (None, HOUR, HOUR, "it has run for 1h, the longest run in its virtual cluster"),
        (HOUR, 2 * HOUR, HOUR, "it has run for 1h, its maxDuration"),
        (3 * HOUR, 2 * HOUR, 2 * HOUR, "it has run for 2h, the longest run in its virtual cluster"),
    ],
)
def test_the_shorter_of_both_times_counts(
    own: timedelta | None, of_cluster: timedelta | None, after: timedelta, says: str
) -> None:
    job = running(job_of(own))
    end = end_of(job, None if of_cluster is None else LongestRun(of_cluster))
    assert end is not None
    assert job.launched_at is not None
    assert (end.at, end.sentence) == (job.launched_at + after, says)


def test_a_job_without_either_runs_until_it_is_done() -> None:
    assert end_of(running(job_of(None)), None) is None


def test_waiting_does_not_count() -> None:
    assert end_of(job_of(HOUR), LongestRun(HOUR)) is None


def test_the_first_task_begins_the_time_of_all() -> None:
    job = running(job_of(HOUR, tasks=2))
    first, second = job.tasks
    later = job.model_copy(update={"tasks": (second.model_copy(update={"started_at": T0 + 9 * HOUR}), first)})
    end = end_of(later, None)
    assert first.started_at is not None
    assert end is not None
    assert end.at == first.started_at + HOUR


def test_another_attempt_has_its_time_again() -> None:
    failed = forgotten(ended(running(job_of(HOUR, retry_count=1)), 0, 1))
    assert failed.attempt == 1
    assert end_of(failed, None) is None


def test_what_ends_anyway_has_no_such_end() -> None:
    job = running(job_of(HOUR))
    assert end_of(job.model_copy(update={"desired": Desired.STOP}), None) is None
    over = forgotten(ended(job, 0, 0))
    assert over.state.final
    assert end_of(over, None) is None


def test_a_job_that_is_restarted_is_not_ended_by_its_last_run() -> None:
    again = restarted(forgotten(ended(running(job_of(HOUR)), 0, 0)), T0 + 5 * HOUR)
    assert any(task.started_at for task in again.tasks)
    assert end_of(again, None) is None


def test_a_longest_run_that_is_set_while_it_runs_leaves_ten_minutes() -> None:
    job = running(job_of(None))
    assert job.launched_at is not None
    early, late = job.launched_at + 55 * HOUR / 60, job.launched_at + 5 * HOUR
    for since, at in (
        (early, early + LEAST_LEFT),
        (job.launched_at + HOUR / 2, job.launched_at + HOUR),
        (late, late + LEAST_LEFT),
        (job.launched_at, job.launched_at + HOUR),
    ):
        end = end_of(job, LongestRun(HOUR, since))
        assert end is not None
        assert end.at == at
    own = end_of(running(job_of(HOUR / 2)), LongestRun(HOUR, late))
    assert own is not None
    assert own.is_own


@pytest.mark.parametrize(("after", "minutes"), [(HOUR, 6), (10 * HOUR, 15), (HOUR / 6, 1)])
def test_the_warning_comes_a_tenth_before_and_at_most_a_quarter_of_an_hour(after: timedelta, minutes: int) -> None:
    end = end_of(running(job_of(None)), LongestRun(after))
    assert end is not None
    assert notice(end) == timedelta(minutes=minutes)
    assert f"stopped at {end.at:%Y-%m-%d %H:%M:%S} UTC: that is the longest run in its virtual cluster" in warning(end)
