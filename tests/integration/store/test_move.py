"""Waiting jobs change places in the stored queue."""

from __future__ import annotations

import asyncio
from datetime import timedelta

import pytest

from pai_backend.model.errors import Forbidden, NoSuchJob, NotWaiting, OtherQueue
from pai_backend.model.job import Job, Phase, State
from pai_backend.model.spec import PriorityClass
from pai_backend.scheduling.jobs.reorder import Move, Side, in_order, standing_of
from pai_backend.store.sql import Store
from pai_backend.testing.builders import T0, make_job, make_spec, make_uid

NOW = T0 + timedelta(hours=1)


async def queued(
    store: Store, number: int, user: str = "ann", priority: PriorityClass | None = None, vc: str = "default"
) -> Job:
    """The job of that number, which came so many minutes after the first."""
    spec = make_spec(name=f"job{number}", priority=priority, virtual_cluster=vc)
    job = make_job(f"job{number}", uid=make_uid(number), user=user, spec=spec)
    at = T0 + timedelta(minutes=number)
    return await store.jobs.submit(job.model_copy(update={"submitted_at": at}), b"", "", "", [])


async def order(store: Store) -> list[str]:
    standings = [standing_of(job, shared=False) for job in await store.jobs.unfinished()]
    return [each.id for each in in_order(each for each in standings if each is not None)]


@pytest.mark.asyncio
async def test_own_jobs_exchange_places_for_good_with_an_event_in_each_history(store: Store) -> None:
    first, other, last = [await queued(store, number, user) for number, user in enumerate(("ann", "bob", "ann"))]
    for job in await store.jobs.dirty():
        lease = await store.leadership.acquire("test", 60, T0, force=True)
        assert lease is not None
        await store.jobs.save(job, seen=job, epoch=lease.epoch, events=[], at=T0)
    move = Move(last.uid, Side.BEFORE, first.uid, "ann")

    moves = await store.jobs.request_move(move, "ann", NOW, shared=False)

    assert [(each.uid, each.place, each.was) for each in moves] == [(last.uid, 1, 3), (first.uid, 3, 1)]
    assert await order(store) == ["ann~job2", "bob~job1", "ann~job0"]
    stored = await store.jobs.get(last.uid)
    assert (stored.turn_at, stored.submitted_at, stored.version) == (
        first.submitted_at,
        last.submitted_at,
        last.version + 2,
    )
    assert {job.uid for job in await store.jobs.dirty()} == {first.uid, last.uid}
    (event,) = await store.events.of_job(last.uid)
    assert (event.type, event.at) == ("job.moved", NOW)
    assert event.payload == {"by": "ann", "turn": first.submitted_at.isoformat(), "place": 1, "was": 3}
    assert await store.events.of_job(other.uid) == []
    assert await store.jobs.request_move(move, "ann", NOW, shared=False) == ()
    assert await store.jobs.get(last.uid) == stored


@pytest.mark.asyncio
async def test_moves_at_the_same_time_are_judged_one_after_the_other(store: Store) -> None:
    jobs = [await queued(store, number) for number in range(4)]

    await asyncio.gather(
        *(store.jobs.request_move(Move(job.uid, Side.BEFORE, None, None), "root", NOW, shared=False) for job in jobs)
    )

    turns = [(await store.jobs.get(job.uid)).turn_at for job in jobs]
    assert len({turn or job.submitted_at for turn, job in zip(turns, jobs, strict=True)}) == 4
    assert sorted(await order(store)) == [job.id for job in jobs]


@pytest.mark.asyncio
async def test_what_may_not_be_moved_changes_nothing(store: Store) -> None:
    mine, theirs = await queued(store, 0), await queued(store, 1, "bob")
    urgent = await queued(store, 2, priority=PriorityClass.PROD)
    running = await queued(store, 3)
    lease = await store.leadership.acquire("test", 60, T0)
    assert lease is not None
    runs = running.model_copy(update={"state": State.RUNNING, "phase": Phase.RUNNING})
    await store.jobs.save(runs, seen=running, epoch=lease.epoch, events=[], at=T0)
    before = [await store.jobs.get(job.uid) for job in (mine, theirs, urgent, running)]

    for other, user, refusal in (
        (theirs.uid, "ann", Forbidden),
        (urgent.uid, None, OtherQueue),
        (running.uid, None, NotWaiting),
        (make_uid(9), None, NoSuchJob),
    ):
        with pytest.raises(refusal):
            await store.jobs.request_move(Move(mine.uid, Side.AFTER, other, user), "who", NOW, shared=False)

    assert [await store.jobs.get(job.uid) for job in before] == before


@pytest.mark.asyncio
async def test_the_refusal_names_the_job_as_people_know_it(store: Store) -> None:
    job = await queued(store, 0)
    await store.jobs.request_stop(job.uid, "ann", NOW)
    with pytest.raises(NotWaiting, match="ann~job0 does not wait"):
        await store.jobs.request_move(Move(job.uid, Side.BEFORE, None, None), "root", NOW, shared=False)


@pytest.mark.asyncio
async def test_without_cells_all_virtual_clusters_are_one_queue(store: Store) -> None:
    first, other = await queued(store, 0, vc="vision"), await queued(store, 1, vc="speech")
    move = Move(other.uid, Side.BEFORE, first.uid, None)
    with pytest.raises(OtherQueue):
        await store.jobs.request_move(move, "root", NOW, shared=False)
    assert [each.uid for each in await store.jobs.request_move(move, "root", NOW, shared=True)] == [other.uid]
