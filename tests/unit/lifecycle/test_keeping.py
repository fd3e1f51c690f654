"""Failed tasks of debug jobs: kept, shown as kept, and let go by their user, the clock or a stop."""

from datetime import timedelta

import pytest

from pai_backend.lifecycle.derive import KEEP, next_wake
from pai_backend.lifecycle.effects import Forget, Stop, open_effects
from pai_backend.lifecycle.events import Look, TaskExited, TaskForgotten, TaskGone, TaskRunning
from pai_backend.lifecycle.history import events_between
from pai_backend.lifecycle.step import step
from pai_backend.lifecycle.table import IllegalTransition
from pai_backend.model.job import Causer, Job, Phase, State, TaskExit
from pai_backend.model.spec import Completion
from pai_backend.testing.builders import T0, make_job, make_role, make_spec
from tests.support.lives import asked_to_stop, ended, forgotten, looked_at, lost, placed, running

FAILED_AT = T0 + timedelta(seconds=2)


def debug_job(instances: int = 1, retry_count: int = 0, **roles: object) -> Job:
    role = make_role(instances=instances, **roles)  # type: ignore[arg-type]
    return make_job(spec=make_spec(roles=[role], debug=True, retry_count=retry_count))


def kept_job(**job: int) -> Job:
    """A debug job whose first task has failed."""
    return ended(running(debug_job(**job)), 0, 3)


def let_go(job: Job, *numbers: int) -> Job:
    """The job after its user released these tasks."""
    uids = tuple(job.tasks[number].uid for number in numbers)
    return looked_at(job.model_copy(update={"released": uids}), FAILED_AT)


def test_a_failed_task_is_kept_with_its_place_and_exit() -> None:
    job = kept_job()
    task = job.tasks[0]
    assert (task.phase, task.state) == (Phase.KEPT, State.FAILED)
    assert task.exit is not None
    assert task.exit.status == 3
    assert task.holds_place
    assert task.kept_until == FAILED_AT + KEEP == next_wake(job)
    assert open_effects(job) == ()


def test_the_job_goes_on_in_a_phase_of_its_own_and_says_until_when() -> None:
    job = kept_job()
    assert (job.state, job.phase) == (State.RUNNING, Phase.KEPT)
    assert job.why == (
        "task worker-0 failed and is kept for debugging until 2026-01-09 03:04 UTC; release it with `pai release`"
    )


def test_completion_counts_it_at_once_and_stops_the_others() -> None:
    job = kept_job(instances=2)
    assert job.verdict is not None
    assert job.verdict.outcome is State.FAILED
    assert open_effects(job) == (Stop(job.tasks[1].uid),)
    assert job.phase is Phase.STOPPING
    job = ended(job, 1, 143, "stopped")
    assert (job.phase, job.tasks[1].phase) == (Phase.KEPT, Phase.ENDED)


@pytest.mark.parametrize(
    ("code", "reason"),
    [(0, "exited"), (None, "lost"), (None, "preempted"), (None, "evicted"), (143, "stopped")],
)
def test_only_what_failed_by_itself_is_kept(code: int | None, reason: str) -> None:
    job = ended(running(debug_job(instances=2)), 0, code, reason)
    assert job.tasks[0].phase is Phase.ENDED


def test_a_task_that_never_ran_has_nothing_to_look_at() -> None:
    assert ended(placed(debug_job()), 0, None, "start-failed").tasks[0].phase is Phase.ENDED


def test_tasks_of_other_jobs_are_not_kept() -> None:
    assert ended(running(make_job()), 0, 3).state is State.FAILED


def test_an_installation_may_keep_nothing() -> None:
    job = running(debug_job())
    gone = TaskExit(code=3, at=FAILED_AT)
    after, _ = step(job, TaskExited(job.tasks[0].uid, gone), FAILED_AT, keep=timedelta(0))
    assert after.state is State.FAILED


def test_a_task_that_is_being_stopped_is_not_kept() -> None:
    job = ended(asked_to_stop(running(debug_job())), 0, 3)
    assert (job.state, job.tasks[0].phase) == (State.STOPPED, Phase.ENDED)


def test_its_user_lets_it_go_and_the_job_ends_as_it_was_decided() -> None:
    kept = kept_job()
    job = let_go(kept, 0)
    assert (job.state, job.tasks[0].released_by, job.released) == (State.FAILED, "user", ())
    assert job.exit is not None
    assert job.exit.status == 3
    assert open_effects(job) == (Forget(job.tasks[0].uid),)
    assert job.why == ""


def test_one_of_several_can_be_let_go() -> None:
    job = ended(running(debug_job(instances=2, completion=Completion(min_failed=2))), 0, 3)
    job = let_go(ended(job, 1, 4), 1)
    assert [task.phase for task in job.tasks] == [Phase.KEPT, Phase.ENDED]
    assert not job.state.final
    assert let_go(job, 0).state is State.FAILED


def test_letting_go_what_is_not_kept_changes_nothing_but_the_wish() -> None:
    job = running(debug_job())
    assert let_go(job, 0) == job


def test_the_clock_lets_it_go_at_its_time_and_not_before() -> None:
    kept = kept_job()
    assert looked_at(kept, FAILED_AT + KEEP - timedelta(seconds=1)) == kept
    job = looked_at(kept, FAILED_AT + KEEP)
    assert (job.state, job.tasks[0].released_by) == (State.FAILED, "clock")


def test_a_stop_lets_it_go_and_a_job_that_has_failed_stays_failed() -> None:
    job = asked_to_stop(kept_job())
    assert (job.state, job.tasks[0].released_by) == (State.FAILED, "stop")


def test_a_stop_of_a_job_that_still_runs_stops_it() -> None:
    job = ended(running(debug_job(instances=2, completion=Completion(min_failed=None))), 0, 3)
    job = ended(asked_to_stop(job), 1, 143, "stopped")
    assert (job.state, job.tasks[0].released_by) == (State.STOPPED, "stop")


def test_what_the_engine_no_longer_has_cannot_be_kept() -> None:
    job, _ = step(kept_job(), TaskGone(kept_job().tasks[0].uid), FAILED_AT)
    assert (job.state, job.tasks[0].released_by) == (State.FAILED, "lost")


def test_a_retry_follows_the_release() -> None:
    kept = kept_job(retry_count=1)
    assert kept.attempt == 0
    job = let_go(kept, 0)
    assert not job.state.final
    assert forgotten(job).attempt == 1


def test_a_stop_of_a_kept_job_with_retries_left_stops_it() -> None:
    assert asked_to_stop(kept_job(retry_count=1)).state is State.STOPPED


def test_in_an_incremental_job_the_others_go_on_and_its_own_retry_follows_the_release() -> None:
    role = make_role(instances=2, task_retry_count=1)
    job = make_job(spec=make_spec(roles=[role], gang=False, debug=True))
    job = ended(running(job), 0, 3)
    assert (job.verdict, job.phase) == (None, Phase.RUNNING)
    job = forgotten(let_go(job, 0))
    assert [task.attempt for task in job.tasks] == [1, 0]


def test_late_news_of_a_kept_task_changes_nothing() -> None:
    kept = kept_job()
    uid = kept.tasks[0].uid
    assert step(kept, TaskRunning(uid, T0), FAILED_AT)[0] == kept
    assert step(kept, TaskExited(uid, TaskExit(code=9, causer=Causer.PLATFORM, at=T0)), FAILED_AT)[0] == kept
    assert step(kept, Look(), FAILED_AT)[0] == kept
    with pytest.raises(IllegalTransition):
        step(kept, TaskForgotten(uid), FAILED_AT)


def test_a_lost_task_of_a_debug_job_is_run_again_as_ever() -> None:
    assert forgotten(lost(running(debug_job()))).attempt == 1


def test_keeping_and_letting_go_are_events() -> None:
    before = running(debug_job())
    kept = ended(before, 0, 3)
    (keeping,) = [event for event in events_between(before, kept) if event.type == "task.kept"]
    assert keeping.payload == {"role": "worker", "index": 0, "attempt": 0, "until": (FAILED_AT + KEEP).isoformat()}
    (going,) = [event for event in events_between(kept, let_go(kept, 0)) if event.type == "task.released"]
    assert going.payload == {"role": "worker", "index": 0, "attempt": 0, "by": "user"}
