"""Jobs whose tasks start one by one and are each run again alone (gangAllocation false)."""

from datetime import timedelta

import pytest

from pai_backend.lifecycle.derive import next_wake
from pai_backend.lifecycle.effects import Refresh, Start, edition, open_effects
from pai_backend.lifecycle.events import Placed, TaskExited, Waiting
from pai_backend.lifecycle.history import events_between
from pai_backend.lifecycle.step import step, to_place
from pai_backend.lifecycle.table import IllegalTransition
from pai_backend.model.ids import TaskUid
from pai_backend.model.job import Job, Phase, State, TaskExit
from pai_backend.model.spec import Completion
from pai_backend.testing.builders import T0, make_job, make_role, make_spec
from tests.support.lives import HERE, asked_to_stop, ended, forgotten, looked_at, lost, placed, running

ALL_OR_NONE = Completion(min_failed=1, min_succeeded=None)


def three(task_retry_count: int = 0, retry_count: int = 0, completion: Completion = ALL_OR_NONE) -> Job:
    role = make_role(instances=3, task_retry_count=task_retry_count, completion=completion)
    return make_job(spec=make_spec(roles=[role], gang=False, retry_count=retry_count))


def refreshes(job: Job) -> set[TaskUid]:
    return {effect.uid for effect in open_effects(job) if isinstance(effect, Refresh)}


def test_each_task_starts_when_it_has_a_place() -> None:
    job = three()
    after, effects = step(job, Placed({job.tasks[1].uid: HERE}), T0)
    assert effects == (Start(job.tasks[1].uid),)
    assert [task.uid for task in to_place(after, T0)] == [job.tasks[0].uid, job.tasks[2].uid]
    assert (after.state, after.phase) == (State.WAITING, Phase.STARTING)


def test_the_job_runs_as_soon_as_one_task_does_and_says_what_the_others_wait_for() -> None:
    job, _ = step(running(three(), [0]), Waiting("2 of 3 tasks wait: all GPUs are in use"), T0)
    assert (job.state, job.phase) == (State.RUNNING, Phase.RUNNING)
    assert job.why.startswith("2 of 3")
    assert placed(job, [1, 2]).why == ""


def test_a_task_that_is_placed_already_or_unknown_cannot_be_placed() -> None:
    job = placed(three(), [0])
    with pytest.raises(IllegalTransition):
        placed(job, [0])
    with pytest.raises(IllegalTransition, match="not a task of this job"):
        step(job, Placed({TaskUid("j0-0-0-0"): HERE}), T0)


def test_running_tasks_are_told_when_a_late_comer_gets_its_address() -> None:
    early = running(three(), [0])
    before = refreshes(early)
    after, effects = step(early, Placed({early.tasks[1].uid: HERE}), T0)
    assert before == {early.tasks[0].uid}
    assert Refresh(early.tasks[0].uid, edition(after)) in effects
    assert edition(after) > edition(early)


def test_tasks_of_a_gang_and_a_task_without_peers_need_not_be_told() -> None:
    assert refreshes(running(make_job(spec=make_spec(roles=[make_role(instances=2)])))) == set()
    assert refreshes(running(make_job(spec=make_spec(gang=False)))) == set()


def test_after_a_restart_every_running_task_is_told_again() -> None:
    job = ended(running(three(completion=Completion(min_failed=None))), 2)
    assert refreshes(Job.model_validate_json(job.model_dump_json())) == {task.uid for task in job.tasks[:2]}


def test_a_task_that_ends_keeps_its_last_address() -> None:
    job = running(three(completion=Completion(min_failed=None)))
    after = ended(job, 1, 3)
    assert after.tasks[1].placement == HERE
    assert edition(after) == edition(job)


def test_a_failed_task_runs_again_alone_under_a_new_uid_while_the_others_go_on() -> None:
    job = ended(running(three(task_retry_count=1)), 1, 7)
    assert job.verdict is None
    assert job.tasks[1].phase is Phase.ENDED, "the engine must forget the old run first"
    again = forgotten(job)
    assert again.attempt == 0
    assert [task.attempt for task in again.tasks] == [0, 1, 0]
    assert again.tasks[1].uid != job.tasks[1].uid
    assert (again.tasks[1].phase, again.tasks[1].placement, again.tasks[1].exit) == (Phase.QUEUED, None, None)
    assert again.tasks[0] == job.tasks[0]
    assert again.state is State.RUNNING


def test_task_retries_are_bounded_and_then_completion_counts_the_failure() -> None:
    job = forgotten(ended(running(three(task_retry_count=1)), 1, 7))
    job = ended(running(job, [1]), 1, 8)
    assert job.verdict is not None
    assert (job.verdict.outcome, job.verdict.exit.status) == (State.FAILED, 8)


@pytest.mark.parametrize(
    ("limit", "code", "reason", "runs_again"),
    [
        # Source: OpenPAI, taskRetryCount with the retry policy of the framework controller (research, §2.4)
        (0, 1, "exited", False),
        (1, 1, "exited", True),
        (-1, 1, "exited", True),
        (-2, 0, "exited", True),
        (-1, 0, "exited", False),
        (9, 127, "exited", False),
        (-2, 127, "exited", True),
        (0, None, "lost", True),
        (0, None, "preempted", True),
        (0, None, "evicted", True),
    ],
)
def test_a_task_is_run_again_by_the_class_of_its_end(
    limit: int, code: int | None, reason: str, runs_again: bool
) -> None:
    job = forgotten(ended(running(three(limit, completion=Completion(min_failed=None))), 0, code, reason))
    assert job.tasks[0].attempt == int(runs_again)


def test_what_was_lost_is_free_and_comes_back_after_a_pause() -> None:
    job = forgotten(lost(running(three()), 2))
    task = job.tasks[2]
    assert (task.phase, task.state) == (Phase.BACKING_OFF, State.WAITING)
    assert (task.retries.platform, task.retries.free, task.retries.charged) == (1, 1, 0)
    assert to_place(job, T0) == ()
    wake = next_wake(job)
    assert wake == task.backoff_until is not None
    assert wake is not None
    due = looked_at(job, wake)
    assert due.tasks[2].phase is Phase.QUEUED
    assert [task.uid for task in to_place(due, wake)] == [task.uid]
    assert next_wake(due) is None


def test_a_retry_of_the_job_goes_on_counting_runs_and_begins_task_retries_anew() -> None:
    job = forgotten(ended(running(three(task_retry_count=1, retry_count=1)), 1, 7))
    job = ended(running(job, [1]), 1, 8)
    for number in (0, 2):
        job = ended(job, number, 143, "stopped")
    again = forgotten(job)
    assert again.attempt == 1
    assert [task.attempt for task in again.tasks] == [1, 2, 1]
    assert {task.job_attempt for task in again.tasks} == {1}
    assert {task.retries.total for task in again.tasks} == {0}
    assert {task.uid for task in again.tasks}.isdisjoint({task.uid for task in job.tasks})


def test_stopping_ends_queued_and_waiting_tasks_at_once_and_asks_the_running_ones() -> None:
    job = forgotten(lost(running(three(), [0, 1]), 1))
    assert [task.phase for task in job.tasks] == [Phase.RUNNING, Phase.BACKING_OFF, Phase.QUEUED]
    job = asked_to_stop(job)
    assert [task.phase for task in job.tasks] == [Phase.STOPPING, Phase.ENDED, Phase.ENDED]
    assert ended(job, 0, 143, "stopped").state is State.STOPPED


def test_a_verdict_ends_tasks_that_wait_for_another_run() -> None:
    role = make_role(instances=2, task_retry_count=5, completion=Completion(min_failed=None, min_succeeded=1))
    job = forgotten(ended(running(make_job(spec=make_spec(roles=[role], gang=False))), 0, 1))
    job = ended(job, 1, 0)
    assert job.state is State.SUCCEEDED
    assert job.tasks[0].state is State.STOPPED


def test_news_of_an_earlier_run_changes_nothing() -> None:
    first = running(three(task_retry_count=1))
    again = forgotten(ended(first, 1, 7))
    gone = TaskExit(code=0, at=T0)
    assert step(again, TaskExited(first.tasks[1].uid, gone), T0) == (again, ())


def test_a_job_all_of_whose_tasks_wait_for_another_run_is_not_over() -> None:
    job = make_job(spec=make_spec(roles=[make_role(instances=1, task_retry_count=-2)], gang=False))
    job = ended(running(job), 0, 0)
    assert (job.state, job.phase) == (State.RUNNING, Phase.QUEUED)
    assert forgotten(job).tasks[0].attempt == 1


def test_a_task_retry_is_an_event_that_says_who_is_charged() -> None:
    failing = lost(running(three()), 1)
    events = {event.type: event.payload for event in events_between(failing, forgotten(failing))}
    retry = events["task.retry"]
    assert (retry["role"], retry["index"], retry["attempt"]) == ("worker", 1, 1)
    assert (retry["charged"], retry["free"]) == ("platform", True)
    assert str(retry["reason"]).startswith("the node, or the process that kept the task there, was lost")
    assert retry["backoff_until"] == (T0 + timedelta(seconds=4)).isoformat()
    assert events["task.state"]["phase"] == "backing off"
