"""A job's life, step by step, as a user would tell it."""

from datetime import timedelta

import pytest

from pai_backend.controller.inbox import job_events
from pai_backend.engine.base import TaskSeen, TaskState
from pai_backend.lifecycle.derive import next_wake
from pai_backend.lifecycle.effects import Forget, Start, Stop, open_effects
from pai_backend.lifecycle.events import Look, Placed, TaskExited, TaskRunning, Waiting
from pai_backend.lifecycle.history import events_between
from pai_backend.lifecycle.step import step, to_place
from pai_backend.lifecycle.table import IllegalTransition
from pai_backend.model.job import Desired, Job, Phase, State, TaskExit
from pai_backend.model.spec import Completion
from pai_backend.testing.builders import T0, make_job, make_role, make_spec
from tests.support.lives import HERE, ended, forgotten, placed, running


def two_roles(**completion: int | None) -> Job:
    roles = [make_role("ps", completion=Completion(**completion)), make_role("worker", instances=2)]
    return make_job(spec=make_spec(roles=roles))


def test_a_new_job_waits_in_the_queue_and_opens_nothing() -> None:
    job = make_job()
    assert (job.state, job.phase) == (State.WAITING, Phase.QUEUED)
    assert open_effects(job) == ()
    assert to_place(job, T0)


def test_waiting_says_why_and_being_placed_clears_it() -> None:
    job, effects = step(make_job(), Waiting("all GPUs are in use"), T0)
    assert (job.why, effects) == ("all GPUs are in use", ())
    assert placed(job).why == ""


def test_why_a_placed_task_has_not_begun_is_told_until_it_has() -> None:
    """As an engine says it; what it says too late is no reason for anything any more."""
    job = placed(make_job())
    seen = TaskSeen(job.tasks[0].uid, TaskState.PULLING, message="no such image")
    for event in job_events(seen):
        job, _ = step(job, event, T0)
    assert (job.phase, job.why) == (Phase.PULLING, "no such image")
    job, _ = step(job, TaskRunning(seen.uid, T0), T0)
    for state in (TaskState.STARTING, TaskState.PULLING):
        for event in job_events(TaskSeen(seen.uid, state, message="too late")):
            job, _ = step(job, event, T0)
    assert (job.phase, job.why) == (Phase.RUNNING, "")


def test_placing_opens_one_start_for_each_task() -> None:
    job = make_job(spec=make_spec(roles=[make_role(instances=3)]))
    after, effects = step(job, Placed({task.uid: HERE for task in job.tasks}), T0)
    assert effects == tuple(Start(task.uid) for task in job.tasks)
    assert (after.state, after.phase) == (State.WAITING, Phase.STARTING)


def test_a_gang_is_placed_whole_or_not_at_all() -> None:
    job = make_job(spec=make_spec(roles=[make_role(instances=2)]))
    with pytest.raises(IllegalTransition, match="left out"):
        step(job, Placed({job.tasks[0].uid: HERE}), T0)


def test_a_job_runs_when_its_tasks_run_and_remembers_when_that_was() -> None:
    job = running(make_job())
    assert (job.state, job.phase) == (State.RUNNING, Phase.RUNNING)
    assert job.launched_at == T0 + timedelta(seconds=1)


def test_what_was_waited_for_is_forgotten_when_everything_runs() -> None:
    job = placed(two_roles())
    job, _ = step(job, Waiting("the start is tried again: the disk is busy"), T0)
    for task in job.tasks[:2]:
        job, _ = step(job, TaskRunning(task.uid, T0), T0)
    assert job.why
    assert step(job, TaskRunning(job.tasks[2].uid, T0), T0)[0].why == ""


def test_success_ends_the_job_and_leaves_only_the_cleaning() -> None:
    job = ended(running(make_job()), 0)
    assert (job.state, job.phase) == (State.SUCCEEDED, Phase.ENDED)
    assert job.exit is not None
    assert job.exit.status == 0
    assert open_effects(job) == (Forget(job.tasks[0].uid),)
    assert open_effects(forgotten(job)) == ()


def test_a_failed_task_fails_the_job_with_its_exit_status_and_stops_the_others() -> None:
    job = ended(running(two_roles()), 1, code=7)
    assert (job.state, job.phase) == (State.RUNNING, Phase.STOPPING)
    assert {effect for effect in open_effects(job) if isinstance(effect, Stop)} == {
        Stop(job.tasks[0].uid),
        Stop(job.tasks[2].uid),
    }
    for number in (0, 2):
        job = ended(job, number, code=143, reason="stopped")
    assert job.state is State.FAILED
    assert job.exit is not None
    assert (job.exit.status, job.exit.role, job.exit.index) == (7, "worker", 0)


def test_min_failed_null_never_fails_the_job() -> None:
    spec = make_spec(roles=[make_role(instances=2, completion=Completion(min_failed=None))])
    job = ended(ended(running(make_job(spec=spec)), 0, code=1), 1, code=1)
    assert job.state is State.SUCCEEDED


def test_min_succeeded_ends_the_job_early() -> None:
    job = ended(running(two_roles(min_succeeded=1)), 0)
    assert job.phase is Phase.STOPPING
    job = ended(ended(job, 1, code=143, reason="stopped"), 2, code=143, reason="stopped")
    assert job.state is State.SUCCEEDED


def test_kill_all_ends_the_job_when_that_many_tasks_have_completed() -> None:
    spec = make_spec(roles=[make_role(instances=3)]).model_copy(update={"kill_all_on_completed": 2})
    job = ended(ended(running(make_job(spec=spec)), 0), 1)
    assert open_effects(job)[-1] == Stop(job.tasks[2].uid)
    assert ended(job, 2, code=143, reason="stopped").state is State.SUCCEEDED


def test_stopping_a_queued_job_ends_it_at_once() -> None:
    job, effects = step(make_job().model_copy(update={"desired": Desired.STOP}), Look(), T0)
    assert (job.state, effects) == (State.STOPPED, ())
    assert all(task.forgotten for task in job.tasks)


def test_stopping_a_running_job_waits_for_its_tasks() -> None:
    asked = running(make_job()).model_copy(update={"desired": Desired.STOP, "stop_reason": "enough"})
    job, effects = step(asked, Look(), T0)
    assert (job.state, job.phase) == (State.STOPPING, Phase.STOPPING)
    assert effects == (Stop(job.tasks[0].uid),)
    job = ended(job, 0, code=143, reason="stopped")
    assert job.state is State.STOPPED
    assert job.exit is not None
    assert job.exit.message == "enough"


def test_a_stop_that_comes_while_starting_is_carried_out_too() -> None:
    asked = placed(make_job()).model_copy(update={"desired": Desired.STOP})
    job, effects = step(asked, Look(), T0)
    assert effects == (Stop(job.tasks[0].uid),)
    late, _ = step(job, TaskRunning(job.tasks[0].uid, T0), T0)
    assert late.tasks[0].phase is Phase.STOPPING


def test_a_failure_is_retried_as_often_as_the_document_says() -> None:
    job = make_job(spec=make_spec(retry_count=1))
    first = ended(running(job), 0, code=1)
    assert not first.state.final, "the engine must forget the old attempt first"
    second = forgotten(first)
    assert (second.attempt, second.phase, second.retries.user) == (1, Phase.QUEUED, 1)
    assert second.tasks[0].uid != job.tasks[0].uid
    assert ended(running(second), 0, code=1).state is State.FAILED


def test_a_stop_during_a_retry_wins() -> None:
    failing = ended(running(make_job(spec=make_spec(retry_count=5))), 0, code=1)
    job, _ = step(failing.model_copy(update={"desired": Desired.STOP}), Look(), T0)
    assert job.state is State.STOPPED


def test_what_the_platform_lost_is_run_again_free_and_after_a_pause() -> None:
    job = forgotten(ended(running(make_job()), 0, code=255, reason="lost"))
    assert (job.attempt, job.retries.user, job.retries.platform) == (1, 0, 1)
    assert job.phase is Phase.BACKING_OFF
    wake = next_wake(job)
    assert wake is not None
    assert not to_place(job, T0)
    assert to_place(job, wake)
    assert step(job, Look(), wake)[0].phase is Phase.QUEUED


def test_what_the_platform_cannot_start_fails_instead_of_trying_for_ever() -> None:
    job = ended(running(make_job()), 0, code=255, reason="start-failed")
    assert job.state is State.FAILED


def test_free_retries_leave_the_documents_retries_untouched() -> None:
    job = make_job(spec=make_spec(retry_count=1))
    for _ in range(3):
        job = forgotten(ended(running(job), 0, code=255, reason="lost"))
    job = forgotten(ended(running(job), 0, code=1))
    assert (job.state, job.retries.total, job.retries.free) == (State.WAITING, 4, 3)
    assert ended(running(job), 0, code=1).state is State.FAILED


def test_retry_count_minus_two_runs_again_after_success() -> None:
    job = forgotten(ended(running(make_job(spec=make_spec(retry_count=-2))), 0))
    assert (job.attempt, job.state) == (1, State.WAITING)


def test_news_of_an_earlier_attempt_changes_nothing() -> None:
    first = make_job(spec=make_spec(retry_count=1))
    second = forgotten(ended(running(first), 0, code=1))
    gone = TaskExit(code=0, at=T0)
    assert step(second, TaskExited(first.tasks[0].uid, gone), T0) == (second, ())


def test_a_repeated_exit_keeps_the_first_one() -> None:
    job = ended(running(two_roles()), 0, code=0)
    assert ended(job, 0, code=9).tasks[0].exit == job.tasks[0].exit


def test_nothing_but_cleaning_touches_a_final_job() -> None:
    job = ended(running(make_job()), 0)
    assert step(job.model_copy(update={"desired": Desired.STOP}), Look(), T0)[0].state is State.SUCCEEDED


def test_every_visible_change_is_worth_an_event() -> None:
    before = make_job()
    job = placed(before)
    assert [event.type for event in events_between(before, job)] == ["task.state", "job.state"]
    done = ended(running(before), 0)
    assert [event.type for event in events_between(running(before), done)] == ["task.state", "job.state", "job.exit"]
    assert events_between(done, forgotten(done)) == []


def test_a_retry_is_an_event_that_says_who_is_charged() -> None:
    failing = ended(running(make_job(spec=make_spec(retry_count=1))), 0, code=1)
    (retry, *_) = events_between(failing, forgotten(failing))
    assert retry.type == "job.retry"
    assert (retry.payload["attempt"], retry.payload["charged"]) == (1, "user")
