"""The wish that kept tasks be let go, and the runs of a task, of which the latest is the current one."""

from __future__ import annotations

import asyncio
from datetime import timedelta

import pytest

from pai_backend.lifecycle.retry import fresh_tasks
from pai_backend.model.errors import Bug, NoSuchJob
from pai_backend.model.ids import task_uid
from pai_backend.model.job import Job, Phase, State, Task, TaskExit
from pai_backend.store.base import NewEvent
from pai_backend.store.sql import Store
from pai_backend.testing.builders import T0, make_job, make_role, make_spec, make_uid

LATER = T0 + timedelta(hours=1)


def kept(task: Task) -> Task:
    gone = TaskExit(code=3, at=T0)
    return task.model_copy(update={"phase": Phase.KEPT, "state": State.FAILED, "exit": gone, "kept_until": LATER})


async def kept_job(store: Store, instances: int = 3, running: int = 1) -> Job:
    """A stored job whose tasks are kept, but for the last ``running`` ones."""
    job = make_job(spec=make_spec(roles=[make_role(instances=instances)], debug=True))
    tasks = [kept(task) for task in job.tasks[: instances - running]]
    job = job.model_copy(update={"tasks": (*tasks, *job.tasks[instances - running :])})
    return await store.jobs.submit(job, b"", "", "", [])


@pytest.mark.asyncio
async def test_all_that_are_kept_are_let_go_once(store: Store) -> None:
    job = await kept_job(store)

    answers = await asyncio.gather(
        store.jobs.request_release(job.uid, None, "alice", LATER),
        store.jobs.request_release(job.uid, None, "bob", LATER),
    )

    assert sorted(len(answer) for answer in answers) == [0, 2]
    stored = await store.jobs.get(job.uid)
    assert stored.released == tuple(task.uid for task in job.tasks[:2])
    assert stored.version == job.version + 1
    assert [waiting.uid for waiting in await store.jobs.dirty()] == [job.uid]
    (event,) = await store.events.of_job(job.uid)
    assert (event.type, event.at) == ("job.release-requested", LATER)
    assert event.payload["tasks"] == ["worker-0", "worker-1"]


@pytest.mark.asyncio
async def test_only_the_named_ones_that_are_kept_are_let_go(store: Store) -> None:
    job = await kept_job(store)

    going = await store.jobs.request_release(job.uid, {"worker-1", "worker-2"}, "alice", LATER)

    assert [task.name for task in going] == ["worker-1"]
    assert (await store.jobs.get(job.uid)).released == (job.tasks[1].uid,)
    more = await store.jobs.request_release(job.uid, None, "alice", LATER)
    assert [task.name for task in more] == ["worker-0"]
    assert (await store.jobs.get(job.uid)).released == (job.tasks[1].uid, job.tasks[0].uid)


@pytest.mark.asyncio
async def test_where_nothing_is_kept_nothing_is_written(store: Store) -> None:
    job = await kept_job(store, instances=1)

    assert await store.jobs.request_release(job.uid, None, "alice", LATER) == ()
    assert await store.jobs.get(job.uid) == job
    assert await store.events.of_job(job.uid) == []


@pytest.mark.asyncio
async def test_releasing_in_no_job_is_an_error(store: Store) -> None:
    with pytest.raises(NoSuchJob):
        await store.jobs.request_release(make_uid(5), None, "alice", T0)


def again(job: Job, number: int) -> Job:
    """The job after one of its tasks has begun its next run."""
    task = job.tasks[number]
    run = task.attempt + 1
    fresh = task.model_copy(update={"attempt": run, "uid": task_uid(job.uid, 0, task.index, run)})
    return job.model_copy(update={"tasks": (*job.tasks[:number], fresh, *job.tasks[number + 1 :])})


async def saved(store: Store, after: Job, seen: Job, epoch: int) -> Job:
    return await store.jobs.save(after, seen=seen, epoch=epoch, events=[NewEvent("task.retry")], at=T0)


async def submitted(store: Store, instances: int) -> tuple[Job, int]:
    job = make_job(spec=make_spec(roles=[make_role(instances=instances)], gang=False))
    lease = await store.leadership.acquire("test", 60.0, T0)
    assert lease is not None
    return await store.jobs.submit(job, b"", "", "", []), lease.epoch


@pytest.mark.asyncio
async def test_the_latest_run_of_each_task_is_the_current_one(store: Store) -> None:
    job, epoch = await submitted(store, 3)
    for number in (1, 1, 2):
        job = await saved(store, again(job, number), job, epoch)

    assert await store.jobs.get(job.uid) == job
    assert [task.attempt for task in job.tasks] == [0, 2, 1]
    assert await store.jobs.unfinished() == [job]
    past = [(row["index"], row["attempt"]) for row in await store.jobs.past_tasks(job.uid)]
    assert sorted(past) == [(0, 0), (1, 0), (1, 1), (1, 2), (2, 0), (2, 1)]


@pytest.mark.asyncio
async def test_a_retry_of_the_whole_job_leaves_runs_of_different_numbers_behind(store: Store) -> None:
    job, epoch = await submitted(store, 2)
    job = await saved(store, again(job, 1), job, epoch)
    fresh = tuple(task for number in (1, 2) for task in fresh_tasks(job.uid, job.spec, number)[number - 1 : number])
    retried = job.model_copy(update={"attempt": 1, "tasks": fresh})

    job = await saved(store, retried, job, epoch)

    assert [task.attempt for task in (await store.jobs.get(job.uid)).tasks] == [1, 2]


@pytest.mark.asyncio
async def test_a_run_that_is_left_out_is_a_bug(store: Store) -> None:
    job, epoch = await submitted(store, 2)

    with pytest.raises(Bug, match="runs"):
        await saved(store, again(again(job, 0), 0), job, epoch)
    assert await store.jobs.get(job.uid) == job
