"""The wish that a job which has ended run again, in the store."""

from __future__ import annotations

import asyncio
from datetime import timedelta

import pytest

from pai_backend.model.errors import NoSuchJob, NotFinished, ReadOnlyJob
from pai_backend.model.job import Job, JobExit, Phase, State, Verdict
from pai_backend.store.sql import Store
from pai_backend.testing.builders import T0, make_job, make_uid

LATER = T0 + timedelta(hours=1)


def over(*, forgotten: bool = True) -> Job:
    """A job that has failed."""
    job = make_job(state=State.FAILED)
    exit_ = JobExit(status=3, message="task worker-0")
    tasks = tuple(task.model_copy(update={"phase": Phase.ENDED, "forgotten": forgotten}) for task in job.tasks)
    verdict = Verdict(outcome=State.FAILED, exit=exit_)
    changes = {"phase": Phase.ENDED, "tasks": tasks, "exit": exit_, "verdict": verdict, "completed_at": T0}
    return job.model_copy(update=changes)


@pytest.mark.asyncio
async def test_a_restart_is_recorded_once_for_the_controller(store: Store) -> None:
    job = await store.jobs.submit(over(), b"", "", "", [])

    await asyncio.gather(*(store.jobs.request_restart(job.uid, who, LATER) for who in ("alice", "root")))

    now = await store.jobs.get(job.uid)
    assert (now.state, now.restarting, now.completed_at, now.version) == (State.WAITING, True, None, job.version + 1)
    assert [each.uid for each in await store.jobs.dirty()] == [job.uid]
    assert [each.uid for each in await store.jobs.unfinished()] == [job.uid]
    types = [event.type for event in await store.events.of_job(job.uid)]
    assert types == ["job.restart-requested", "job.state"]
    assert await store.jobs.counts() == {"WAITING": 1}


@pytest.mark.asyncio
async def test_a_job_that_is_being_stopped_is_not_restarted(store: Store) -> None:
    job = await store.jobs.submit(make_job(), b"", "", "", [])
    await store.jobs.request_stop(job.uid, "alice", T0)
    with pytest.raises(ReadOnlyJob, match="still being stopped"):
        await store.jobs.request_restart(job.uid, "alice", LATER)


@pytest.mark.asyncio
async def test_restart_and_deletion_exclude_each_other(store: Store) -> None:
    job = await store.jobs.submit(over(forgotten=False), b"", "", "", [])
    assert not await store.deletion.request(job.uid, "alice", T0)  # as soon as its tasks are forgotten
    with pytest.raises(ReadOnlyJob, match="being deleted"):
        await store.jobs.request_restart(job.uid, "alice", LATER)
    other = await store.jobs.submit(over().model_copy(update={"uid": make_uid(2), "name": "b"}), b"", "", "", [])
    await store.jobs.request_restart(other.uid, "alice", LATER)
    with pytest.raises(NotFinished):
        await store.deletion.request(other.uid, "alice", LATER)


@pytest.mark.asyncio
async def test_restarting_no_job_is_an_error(store: Store) -> None:
    with pytest.raises(NoSuchJob):
        await store.jobs.request_restart(make_uid(5), "alice", T0)
