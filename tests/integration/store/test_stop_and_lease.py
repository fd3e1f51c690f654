"""The wish that a job end, and the right to be the controller."""

from __future__ import annotations

import asyncio
from datetime import timedelta

import pytest

from pai_backend.model.errors import NoSuchJob
from pai_backend.model.job import Desired, State
from pai_backend.store.base import Fenced, Lease
from pai_backend.store.sql import Store
from pai_backend.testing.builders import T0, make_job, make_uid


@pytest.mark.asyncio
async def test_a_stop_is_recorded_once_with_who_and_why(store: Store) -> None:
    job = await store.jobs.submit(make_job(), b"", "", "", [])
    at = T0 + timedelta(minutes=1)

    first, second = await asyncio.gather(
        store.jobs.request_stop(job.uid, "alice", at, "wrong data"), store.jobs.request_stop(job.uid, "bob", at)
    )

    assert first == second == await store.jobs.get(job.uid)
    assert (first.desired, first.stop_reason, first.version) == (Desired.STOP, "wrong data", job.version + 1)
    (event,) = await store.events.of_job(job.uid)
    assert (event.type, event.at) == ("job.stop-requested", at)
    assert event.payload == {"by": "alice", "reason": "wrong data", "cause": "user"}


@pytest.mark.asyncio
async def test_a_final_job_cannot_be_stopped_any_more(store: Store) -> None:
    job = await store.jobs.submit(make_job(state=State.SUCCEEDED), b"", "", "", [])

    assert await store.jobs.request_stop(job.uid, "alice", T0) == job
    assert await store.events.of_job(job.uid) == []


@pytest.mark.asyncio
async def test_stopping_no_job_is_an_error(store: Store) -> None:
    with pytest.raises(NoSuchJob):
        await store.jobs.request_stop(make_uid(5), "alice", T0)


@pytest.mark.asyncio
async def test_of_many_candidates_one_becomes_the_controller(store: Store, other_store: Store) -> None:
    leases = await asyncio.gather(
        *(who.leadership.acquire(f"{who}-{number}", 10.0, T0) for who in (store, other_store) for number in range(4))
    )

    assert [lease for lease in leases if lease is not None] == [Lease(1, T0 + timedelta(seconds=10))]


@pytest.mark.asyncio
async def test_a_lease_is_taken_over_when_it_has_run_out(store: Store) -> None:
    await store.leadership.acquire("one", 10.0, T0)

    assert await store.leadership.acquire("two", 10.0, T0 + timedelta(seconds=9)) is None
    second = await store.leadership.acquire("two", 10.0, T0 + timedelta(seconds=10))

    assert second == Lease(2, T0 + timedelta(seconds=20))
    with pytest.raises(Fenced):
        await store.leadership.renew(1, 10.0, T0 + timedelta(seconds=10))


@pytest.mark.asyncio
async def test_a_lease_that_is_renewed_is_not_taken_over(store: Store) -> None:
    await store.leadership.acquire("one", 10.0, T0)

    renewed = await store.leadership.renew(1, 10.0, T0 + timedelta(seconds=5))

    assert renewed == Lease(1, T0 + timedelta(seconds=15))
    assert await store.leadership.acquire("two", 10.0, T0 + timedelta(seconds=14)) is None


@pytest.mark.asyncio
async def test_force_takes_over_at_once_and_fences_the_other(store: Store) -> None:
    await store.leadership.acquire("one", 10.0, T0)

    assert await store.leadership.acquire("two", 10.0, T0, force=True) == Lease(2, T0 + timedelta(seconds=10))
    with pytest.raises(Fenced, match="is 2, not 1"):
        await store.leadership.renew(1, 10.0, T0)


@pytest.mark.asyncio
async def test_nobody_renews_a_lease_that_was_never_given(store: Store) -> None:
    with pytest.raises(Fenced):
        await store.leadership.renew(0, 10.0, T0)


@pytest.mark.asyncio
async def test_a_holder_that_starts_again_gets_a_new_epoch(store: Store) -> None:
    await store.leadership.acquire("one", 10.0, T0)

    assert await store.leadership.acquire("one", 10.0, T0) == Lease(2, T0 + timedelta(seconds=10))


@pytest.mark.asyncio
async def test_anyone_can_see_who_decides_and_until_when(store: Store, other_store: Store) -> None:
    assert await other_store.leadership.latest() is None
    taken = await store.leadership.acquire("one", 10.0, T0)
    assert taken is not None
    assert await other_store.leadership.latest() == taken


@pytest.mark.asyncio
async def test_a_name_is_claimed_once_and_forgotten_after_its_time(store: Store, other_store: Store) -> None:
    end = T0 + timedelta(seconds=60)
    answers = await asyncio.gather(*(each.secrets.claim("ticket:1", end, T0) for each in (store, other_store) * 4))
    assert sorted(answers) == [False] * 7 + [True]
    assert not await store.secrets.claim("ticket:1", end, end)
    later = end + timedelta(seconds=1)
    assert await other_store.secrets.claim("ticket:1", later, later)
