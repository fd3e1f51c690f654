"""Which ends of attempts tell how long jobs run, and which jobs are of one kind."""

from __future__ import annotations

from datetime import timedelta

import pytest

from pai_backend.model.attempts import KEPT, Ran, kind_of, ran, stem, with_another
from pai_backend.model.job import Job, JobExit, Phase, State, Task, Verdict
from pai_backend.model.spec import TaskRole
from pai_backend.testing.builders import T0, make_job, make_role, make_spec

MINUTE = timedelta(minutes=1)


@pytest.mark.parametrize(
    ("name", "stem_"),
    [
        ("bert", "bert"),
        ("bert-12", "bert"),
        ("bert_2026-01-02", "bert"),
        ("bert-20260102T030405Z", "bert"),
        ("jupyter_16be8b71", "jupyter"),
        ("train-550e8400-e29b-41d4-a716-446655440000", "train"),
        ("a.b~7", "a.b"),
        ("resnet50", "resnet50"),
        ("big-effect", "big-effect"),
        ("bert-large", "bert-large"),
        ("42", "42"),
        ("-42", "-42"),
    ],
)
def test_a_name_without_its_number_time_stamp_or_identifier(name: str, stem_: str) -> None:
    assert stem(name) == stem_


def kind(name: str = "train-1", gpu_type: str | None = None, **changes: object) -> str:
    role = make_role(instances=2, gpus=4, cpus=8).model_copy(update=changes)
    return kind_of(make_spec(name, roles=[role], gpu_type=gpu_type))


def test_jobs_are_of_a_kind_when_only_their_number_and_command_differ() -> None:
    assert kind("train-1") == kind("train-2", command="python other.py") == kind(memory_mb=1)
    bigger = make_role(instances=2, gpus=8, cpus=8)
    others = [
        kind("test-1"),
        kind(instances=3),
        kind(name="train-1", gpu_type="V100"),
        kind(sku_type="K80"),
        kind_of(make_spec("train-1", roles=[bigger])),
        kind_of(make_spec("train-1", roles=[make_role(instances=2, gpus=4, cpus=8), make_role("ps")])),
    ]
    assert len({kind("train-1"), *others}) == 1 + len(others)
    assert kind(gpu_type="V100") == kind(sku_type="V100")


def task_that_ran(job: Job, number: int, begin: float, end: float) -> Task:
    """The task with that number, from ``begin`` to ``end`` minutes after the submission."""
    times = {"started_at": T0 + begin * MINUTE, "ended_at": T0 + end * MINUTE}
    return job.tasks[number].model_copy(update={**times, "phase": Phase.ENDED})


def running(*roles: TaskRole, gang: bool = True) -> Job:
    return make_job(spec=make_spec("train-1", roles=roles or [make_role(instances=2)], gang=gang), state=State.RUNNING)


def ended(job: Job, state: State, *spans: tuple[float, float]) -> Job:
    tasks = tuple(task_that_ran(job, number, *span) for number, span in enumerate(spans))
    return job.model_copy(update={"state": state, "tasks": tasks})


def test_a_gang_ran_from_its_first_start_to_its_last_end() -> None:
    job = running()
    after = ended(job, State.SUCCEEDED, (1, 11), (3, 14.25))
    assert ran(job, after) == Ran("alice", kind_of(job.spec), int(13.25 * 60))


def test_of_tasks_that_were_placed_one_by_one_the_longest_counts() -> None:
    job = running(gang=False)
    found = ran(job, ended(job, State.SUCCEEDED, (1, 11), (30, 35)))
    assert found is not None
    assert found.seconds == 600


@pytest.mark.parametrize("state", [State.FAILED, State.STOPPED, State.RUNNING])
def test_what_did_not_end_by_itself_and_in_success_tells_nothing(state: State) -> None:
    job = running()
    assert ran(job, ended(job, state, (1, 11), (1, 11))) is None


def test_an_end_counts_once() -> None:
    after = ended(running(), State.SUCCEEDED, (1, 11), (1, 11))
    forgotten = after.model_copy(update={"tasks": tuple(t.model_copy(update={"forgotten": True}) for t in after.tasks)})
    assert ran(after, forgotten) is None


def test_a_job_of_which_no_task_was_seen_to_run_tells_nothing() -> None:
    job = running()
    assert ran(job, job.model_copy(update={"state": State.SUCCEEDED})) is None


@pytest.mark.parametrize(("outcome", "seconds"), [(State.SUCCEEDED, 600), (State.FAILED, None)])
def test_of_a_job_that_runs_again_the_attempt_before_counts(outcome: State, seconds: int | None) -> None:
    """Retry count -2 runs a job again that has succeeded; a retry after a failure leaves an attempt that failed."""
    first = ended(running(), State.RUNNING, (1, 11), (1, 11))
    first = first.model_copy(update={"verdict": Verdict(outcome=outcome, exit=JobExit(status=0, message=""))})
    again = make_job(spec=first.spec, attempt=1)
    found = ran(first, again)
    assert (None if found is None else found.seconds) == seconds


def test_only_the_last_times_are_kept() -> None:
    times: tuple[int, ...] = ()
    for seconds in range(KEPT + 5):
        times = with_another(times, seconds)
    assert times == tuple(range(5, KEPT + 5))
