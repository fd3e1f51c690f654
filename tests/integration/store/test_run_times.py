"""How long attempts ran: noted with their end, in one transaction, and read as the latest kinds."""

from __future__ import annotations

import asyncio
from datetime import datetime, timedelta

import pytest

from pai_backend.model.attempts import KEPT, Times, kind_of
from pai_backend.model.job import Job, State
from pai_backend.store.base import Conflict
from pai_backend.store.sql import Store
from pai_backend.testing.builders import T0, make_job, make_spec, make_uid


async def controller(store: Store) -> int:
    lease = await store.leadership.acquire("one", 10, T0, force=True)
    assert lease is not None
    return lease.epoch


async def submitted(store: Store, number: int, name: str = "train", user: str = "alice") -> Job:
    name = f"{name}-{number}"
    return await store.jobs.submit(
        make_job(name, uid=make_uid(number), user=user, spec=make_spec(name)), b"", "", "", []
    )


def over(job: Job, seconds: int, state: State = State.SUCCEEDED) -> Job:
    (task,) = job.tasks
    task = task.model_copy(update={"started_at": T0, "ended_at": T0 + timedelta(seconds=seconds)})
    return job.model_copy(update={"state": state, "tasks": (task,)})


async def end(store: Store, job: Job, seconds: int, epoch: int, *, at: datetime = T0) -> Job:
    return await store.jobs.save(over(job, seconds), seen=job, epoch=epoch, events=[], at=at)


def times(name: str, *seconds: int, user: str = "alice") -> Times:
    return Times(user, kind_of(make_spec(f"{name}-1")), seconds)


@pytest.mark.asyncio
async def test_each_kind_has_its_times_and_those_with_the_latest_ends_come_last(store: Store) -> None:
    epoch = await controller(store)
    ends = [("train", "alice", 10), ("test", "alice", 20), ("train", "bob", 30), ("train", "alice", 40)]
    for number, (name, user, seconds) in enumerate(ends):
        job = await submitted(store, number, name, user)
        await end(store, job, seconds, epoch, at=T0 + timedelta(minutes=number))

    found = [times("test", 20), times("train", 30, user="bob"), times("train", 10, 40)]
    assert await store.run_times.latest(10) == found
    assert await store.run_times.latest(2) == found[1:]


@pytest.mark.asyncio
async def test_only_the_last_times_of_a_kind_are_kept(store: Store) -> None:
    epoch = await controller(store)
    for number in range(KEPT + 2):
        await end(store, await submitted(store, number), 100 + number, epoch)
    assert await store.run_times.latest(10) == [times("train", *range(102, 102 + KEPT))]


@pytest.mark.asyncio
async def test_ends_that_are_written_together_all_count(store: Store) -> None:
    epoch = await controller(store)
    jobs = [await submitted(store, number) for number in range(8)]
    await asyncio.gather(*(end(store, job, 100 + number, epoch) for number, job in enumerate(jobs)))
    (found,) = await store.run_times.latest(10)
    assert sorted(found.seconds) == list(range(100, 108))


@pytest.mark.asyncio
async def test_an_end_that_is_not_written_does_not_count_and_one_that_is_counts_once(store: Store) -> None:
    epoch = await controller(store)
    job = await submitted(store, 1)
    with pytest.raises(Conflict):
        await end(store, job.model_copy(update={"version": 7}), 50, epoch)
    assert await store.run_times.latest(10) == []
    saved = await end(store, job, 60, epoch)
    forgotten = tuple(task.model_copy(update={"forgotten": True}) for task in saved.tasks)
    await store.jobs.save(saved.model_copy(update={"tasks": forgotten}), seen=saved, epoch=epoch, events=[], at=T0)
    assert await store.run_times.latest(10) == [times("train", 60)]


@pytest.mark.asyncio
@pytest.mark.parametrize("state", [State.FAILED, State.STOPPED])
async def test_attempts_that_did_not_succeed_are_not_noted(store: Store, state: State) -> None:
    epoch = await controller(store)
    job = await submitted(store, 1)
    await store.jobs.save(over(job, 60, state), seen=job, epoch=epoch, events=[], at=T0)
    assert await store.run_times.latest(10) == []
