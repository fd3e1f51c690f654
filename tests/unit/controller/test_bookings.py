"""Reservations are live in the controller: who starts, by when it has to end, and what is kept over a restart."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from pai_backend.model.booking import Booking
from pai_backend.model.job import Desired, Job, State
from pai_backend.store.bookings import new_id
from pai_backend.store.grants import Act
from pai_backend.store.sql import Store
from tests.support.scripted_cluster import Cluster, cluster, controlled, on_gpu, opened
from tests.support.scripted_engine import ScriptedEngine, lab_node
from tests.unit.controller.test_admission import submit

HOUR = timedelta(hours=1)


async def book(
    store: Store, begins: datetime, *, gpus: int = 1, stops: tuple[Job, ...] = (), **more: object
) -> Booking:
    made_at = datetime.now(UTC)
    uids = frozenset(job.uid for job in stops)
    booking = Booking(new_id(), "default", "course", gpus, begins, begins + HOUR, stops=uids, made_at=made_at, **more)  # type: ignore[arg-type]
    before = [each.id for each in await store.bookings.all()]
    assert await store.bookings.add(booking, before, Act("root", made_at))
    return booking


def is_held(job: Job) -> bool:
    return job.state is State.WAITING and "reserved for course" in job.why


@pytest.mark.asyncio
async def test_others_wait_with_the_reason_until_it_is_removed(tmp_path: Path) -> None:
    async with opened(tmp_path) as store:
        engine = ScriptedEngine(lab_node("carol", gpus=1))
        lab = Cluster(store, engine)
        booking = await book(store, datetime.now(UTC) + HOUR)
        async with controlled(store, engine):
            held = await lab.until((await lab.submit(on_gpu())).uid, is_held)
            bound = on_gpu().model_copy(update={"max_duration_s": 600})
            started = await lab.running(await lab.submit(bound))
            place = started.tasks[0].placement
            assert place is not None
            assert place.stops_by == booking.begins, "it is stored with the place"
            await engine.exit(started.tasks[0].uid, 0)
            await lab.final(started)
        async with controlled(store, engine):
            assert is_held(await store.jobs.get(held.uid))
            assert await store.bookings.remove(booking.id, Act("root", datetime.now(UTC)))
            await lab.running(held)


@pytest.mark.asyncio
async def test_it_begins_and_ends_by_the_clock_for_those_it_is_for(tmp_path: Path) -> None:
    shift = timedelta()

    def clock() -> datetime:
        return datetime.now(UTC) + shift

    async with cluster(tmp_path, lab_node("carol", gpus=1), clock=clock) as lab:
        booking = await book(lab.store, datetime.now(UTC) + HOUR, users=("bob",))
        first = await lab.until((await lab.submit(on_gpu())).uid, is_held)
        theirs = await lab.until((await submit(lab, "bob")).uid, is_held)
        shift = HOUR
        running = await lab.running(theirs)
        assert is_held(await lab.store.jobs.get(first.uid))
        await lab.engine.exit(running.tasks[0].uid, 0)
        await lab.final(theirs)
        assert is_held(await lab.store.jobs.get(first.uid))
        shift = booking.ends - datetime.now(UTC) + timedelta(seconds=1)
        await lab.running(first)


@pytest.mark.asyncio
async def test_jobs_that_were_named_are_told_and_stopped_when_it_begins_also_by_a_later_controller(
    tmp_path: Path,
) -> None:
    shift = timedelta()

    def clock() -> datetime:
        return datetime.now(UTC) + shift

    async with opened(tmp_path) as store:
        engine = ScriptedEngine(lab_node("carol", gpus=2))
        lab = Cluster(store, engine)
        async with controlled(store, engine, clock=clock):
            stopped, stays = [await lab.running(await lab.submit(on_gpu())) for _ in range(2)]
            await book(store, datetime.now(UTC) + timedelta(minutes=14), stops=(stopped,))
            mark = -1
            async with asyncio.timeout(60):
                while not (warned := (await store.rule_clocks.ending([stopped.uid])).get(stopped.uid)):
                    mark = await store.changes.wait(mark, 1.0)
            assert "GPUs that it holds are reserved from then on for course" in warned.text
        shift = timedelta(minutes=14, seconds=1)
        async with controlled(store, engine, clock=clock):
            await lab.until(stopped.uid, lambda now: now.desired is Desired.STOP)
            assert (await store.jobs.get(stays.uid)).state is State.RUNNING
