"""Jobs without gang allocation of which some tasks start together, before the others (minInstances)."""

from __future__ import annotations

from datetime import timedelta

from pai_backend.lifecycle.events import Placed
from pai_backend.lifecycle.step import step, to_place
from pai_backend.model.job import Job, Phase, State
from pai_backend.model.spec import Completion, TaskRole
from pai_backend.testing.builders import T0, make_job, make_role, make_spec
from tests.support.lives import HERE, ended, forgotten, looked_at, placed, running

LATER = T0 + timedelta(hours=1)
NEVER = Completion(min_failed=None, min_succeeded=None)


def role(name: str, instances: int, least: int | None, retries: int = 0) -> TaskRole:
    made = make_role(name, instances=instances, task_retry_count=retries, completion=NEVER)
    return made.model_copy(update={"min_instances": least})


def elastic(*roles: TaskRole, retry_count: int = 0) -> Job:
    return make_job(spec=make_spec(roles=roles, gang=False, retry_count=retry_count))


def names(job: Job) -> list[str]:
    return [task.name for task in to_place(job, T0)]


def test_the_first_tasks_of_each_role_wait_alone_until_they_have_a_place() -> None:
    job = elastic(role("ps", 1, 1), role("worker", 4, 2), role("watcher", 1, None))
    assert names(job) == ["ps-0", "worker-0", "worker-1"]
    after, _ = step(job, Placed({task.uid: HERE for task in to_place(job, T0)}), T0)
    assert names(after) == ["worker-2", "worker-3", "watcher-0"]
    assert (after.state, after.phase) == (State.WAITING, Phase.STARTING)


def test_without_a_least_number_all_wait_and_a_gang_has_none() -> None:
    assert names(elastic(role("worker", 2, None))) == ["worker-0", "worker-1"]
    gang = make_job(spec=make_spec(roles=[role("worker", 3, 2)]))
    assert (gang.core, names(gang)) == ((), ["worker-0", "worker-1", "worker-2"])


def test_a_first_task_that_is_run_again_waits_by_itself() -> None:
    job = placed(running(elastic(role("worker", 3, 2, retries=1)), [0, 1]), [2])
    again = looked_at(forgotten(ended(job, 0, 1)), LATER)
    assert [task.name for task in to_place(again, LATER)] == ["worker-0"]


def test_tasks_that_were_all_taken_away_need_not_start_together_again() -> None:
    job = running(elastic(role("worker", 3, 2)), [0, 1])
    gone = looked_at(forgotten(ended(ended(job, 0, None, "preempted"), 1, None, "preempted")), LATER)
    assert all(task.phase is Phase.QUEUED for task in gone.tasks)
    assert [task.name for task in to_place(gone, LATER)] == ["worker-0", "worker-1", "worker-2"]


def test_the_next_attempt_of_the_job_starts_as_the_first_did() -> None:
    failing = role("worker", 3, 2).model_copy(update={"completion": Completion(min_failed=1)})
    job = running(elastic(failing, retry_count=1), [0, 1])
    again = looked_at(forgotten(ended(ended(job, 0, 1), 1, 1)), LATER)
    assert again.attempt == 1
    assert [task.name for task in to_place(again, LATER)] == ["worker-0", "worker-1"]
