"""What is kept of the use of jobs: uses of several writers, clocks, and the stop that a late use prevents."""

from __future__ import annotations

from datetime import timedelta

import pytest

from pai_backend.model.errors import NoSuchJob
from pai_backend.model.idle import IdleClock, UseSource
from pai_backend.model.job import Desired, Job, State, StopCause
from pai_backend.store.base import Fenced, NewEvent
from pai_backend.store.sql import Store
from pai_backend.testing.builders import T0, make_job, make_spec, make_uid

MINUTE, STEP = timedelta(minutes=1), timedelta(microseconds=1)


async def submitted(store: Store, number: int = 1) -> Job:
    spec = make_spec(f"job-{number}").model_copy(update={"idle_timeout_s": 3600})
    return await store.jobs.submit(make_job(f"job-{number}", uid=make_uid(number), spec=spec), b"", "", "", [])


async def epoch_of(store: Store) -> int:
    lease = await store.leadership.acquire("here", 60, T0)
    assert lease is not None
    return lease.epoch


@pytest.mark.asyncio
async def test_each_use_moves_its_mark_on_whatever_the_writers_clock(store: Store, other_store: Store) -> None:
    one, two = await submitted(store, 1), await submitted(store, 2)
    nobody = make_uid(9)
    await store.idling.note({(one.uid, UseSource.SSH): T0 + MINUTE, (nobody, UseSource.SSH): T0})
    await other_store.idling.note(
        {(one.uid, UseSource.SSH): T0, (one.uid, UseSource.SERVICE): T0, (two.uid, UseSource.SSH): T0}
    )
    await other_store.idling.note({(one.uid, UseSource.SERVICE): T0 + 2 * MINUTE})

    assert await store.idling.uses([one.uid, two.uid, nobody]) == {
        one.uid: {UseSource.SSH: T0 + MINUTE + STEP, UseSource.SERVICE: T0 + 2 * MINUTE},
        two.uid: {UseSource.SSH: T0},
    }
    assert (await store.jobs.get(one.uid)).version == one.version


@pytest.mark.asyncio
async def test_clocks_are_kept_with_what_is_told_and_only_by_the_controller(store: Store) -> None:
    job, epoch = await submitted(store), await epoch_of(store)
    clock = IdleClock(since=T0, looked_at=T0 + MINUTE, used_by=UseSource.GPU, unread={UseSource.KERNELS: "no answer"})
    await store.idling.keep({job.uid: clock}, {}, T0, epoch)
    warned = clock.model_copy(update={"warned_at": T0 + MINUTE})
    await store.idling.keep({job.uid: warned}, {job.uid: NewEvent("job.idle-warning", {"a": 1})}, T0 + MINUTE, epoch)

    assert await store.idling.clocks([job.uid]) == {job.uid: warned}
    (event,) = await store.events.of_job(job.uid)
    assert (event.type, event.at, event.payload) == ("job.idle-warning", T0 + MINUTE, {"a": 1})
    with pytest.raises(Fenced):
        await store.idling.keep({job.uid: clock}, {}, T0, epoch + 1)
    with pytest.raises(Fenced):
        await store.idling.stop(job.uid, {}, "idle", T0, epoch + 1)
    assert await store.idling.clocks([job.uid]) == {job.uid: warned}


@pytest.mark.asyncio
async def test_a_use_that_was_written_first_prevents_the_stop(store: Store, other_store: Store) -> None:
    job, epoch = await submitted(store), await epoch_of(store)
    await other_store.idling.note({(job.uid, UseSource.SSH): T0 - MINUTE})
    assert not await store.idling.stop(job.uid, {}, "idle", T0 + 2 * MINUTE, epoch)
    assert (await store.jobs.get(job.uid)).desired is Desired.START

    await other_store.idling.note({(job.uid, UseSource.PAGE): T0})
    seen = {UseSource.SSH: T0 - MINUTE}
    assert await store.idling.stop(job.uid, seen, "idle: nothing", T0 + 2 * MINUTE, epoch)
    stored = await store.jobs.get(job.uid)
    assert (stored.desired, stored.stop_cause, stored.stop_reason) == (Desired.STOP, StopCause.IDLE, "idle: nothing")
    assert [each.uid for each in await store.jobs.dirty()] == [job.uid]
    (event,) = await store.events.of_job(job.uid)
    assert event.payload == {"by": "", "reason": "idle: nothing", "cause": "idle"}
    assert not await store.idling.stop(job.uid, seen, "idle: nothing", T0 + 3 * MINUTE, epoch)
    with pytest.raises(NoSuchJob):
        await store.idling.stop(make_uid(9), {}, "idle", T0, epoch)


@pytest.mark.asyncio
async def test_the_end_of_a_job_takes_its_clock_away(store: Store) -> None:
    job, epoch = await submitted(store), await epoch_of(store)
    await store.idling.note({(job.uid, UseSource.SSH): T0})
    await store.idling.keep({job.uid: IdleClock(since=T0, looked_at=T0)}, {}, T0, epoch)
    over = job.model_copy(update={"state": State.STOPPED, "completed_at": T0})
    await store.jobs.save(over, seen=job, epoch=epoch, events=[], at=T0)

    for _ in range(2):
        assert not await store.idling.clocks([job.uid])
        assert not await store.idling.uses([job.uid])
        told = {job.uid: NewEvent("job.idle-warning", {})}
        await store.idling.keep({job.uid: IdleClock(since=T0, looked_at=T0)}, told, T0, epoch)
        await store.idling.note({(job.uid, UseSource.SSH): T0})
    assert await store.events.of_job(job.uid) == []
