"""Deleting jobs: the engine erases after the rows are gone, a crash in between is followed by the rest."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from pai_backend.controller.deleting import Deleter
from pai_backend.engine.base import EngineError
from pai_backend.model.errors import NoSuchJob
from pai_backend.model.job import Job
from pai_backend.store.deletion import Retention
from pai_backend.store.sql import Store
from tests.support.scripted_cluster import Cluster, controlled, on_gpu, opened
from tests.support.scripted_engine import ScriptedEngine

pytestmark = [pytest.mark.asyncio, pytest.mark.timeout(120)]


async def finished(lab: Cluster) -> Job:
    """A job that ran, and whose task is forgotten."""
    job = await lab.running(await lab.submit(on_gpu()))
    await lab.engine.exit(job.tasks[0].uid, 0)
    return await lab.until(job.uid, lambda now: now.state.final and now.tasks[0].forgotten)


async def closed(store: Store) -> None:
    while await store.deletion.pending(None, 1):  # noqa: ASYNC110 - closing a mark wakes nobody
        await asyncio.sleep(0.01)


async def test_what_the_engine_keeps_of_a_deleted_job_goes(tmp_path: Path) -> None:
    engine = ScriptedEngine()
    async with opened(tmp_path) as store, controlled(store, engine):
        lab = Cluster(store, engine)
        job, other = await finished(lab), await finished(lab)

        await store.deletion.request(job.uid, "alice", datetime.now(UTC))
        await closed(store)

        assert engine.erased == [job.uid]
        assert (await store.jobs.get(other.uid)).state.final


async def test_a_deletion_that_a_crash_cut_off_goes_on_with_the_next_controller(tmp_path: Path) -> None:
    engine = ScriptedEngine()
    async with opened(tmp_path) as store:
        async with controlled(store, engine):
            job = await finished(Cluster(store, engine))
        await store.deletion.request(job.uid, "alice", datetime.now(UTC))
        assert engine.erased == []
        async with controlled(store, engine):
            await closed(store)
    assert engine.erased == [job.uid]


async def test_a_job_is_deleted_once_its_tasks_are_forgotten(tmp_path: Path) -> None:
    engine = ScriptedEngine()
    async with opened(tmp_path) as store:
        lab = Cluster(store, engine)
        async with controlled(store, engine):
            job = await lab.running(await lab.submit(on_gpu()))
            await engine.exit(job.tasks[0].uid, 0)
            await lab.final(job)
            await store.deletion.request(job.uid, "alice", datetime.now(UTC))
            await closed(store)
    assert job.tasks[0].uid in engine.forgotten
    assert engine.erased == [job.uid]


async def test_an_engine_that_cannot_erase_one_job_is_asked_again_and_holds_up_no_other(tmp_path: Path) -> None:
    engine = ScriptedEngine()
    async with opened(tmp_path) as store:
        async with controlled(store, engine):
            lab = Cluster(store, engine)
            first, second = await finished(lab), await finished(lab)
        lease = await store.leadership.acquire("test", 60, datetime.now(UTC), force=True)
        assert lease is not None
        for job in (first, second):
            await store.deletion.request(job.uid, "alice", datetime.now(UTC))
        deleter = Deleter(store, engine, Retention(), epoch=lease.epoch, clock=lambda: datetime.now(UTC))
        engine.trouble.append(EngineError("the disk is away"))

        await deleter.finish()
        assert engine.erased == [second.uid]
        await deleter.finish()

        assert engine.erased == [second.uid, first.uid]
        assert await store.deletion.pending(None, 1) == []


async def test_old_jobs_are_deleted_and_those_that_run_or_wait_are_not(tmp_path: Path) -> None:
    engine = ScriptedEngine()
    async with opened(tmp_path) as store:
        async with controlled(store, engine):
            lab = Cluster(store, engine)
            old, runs = await finished(lab), await lab.running(await lab.submit(on_gpu()))
            waits = await lab.submit(on_gpu())
        lease = await store.leadership.acquire("test", 60, datetime.now(UTC), force=True)
        assert lease is not None
        later = datetime.now(UTC) + timedelta(days=2)
        keep = Retention(age=timedelta(days=1), number=1, bytes=1)
        deleter = Deleter(store, engine, keep, epoch=lease.epoch, clock=lambda: later)

        assert await deleter.retain() == 1
        assert await deleter.retain() == 0
        await deleter.finish()

        assert engine.erased == [old.uid]
        with pytest.raises(NoSuchJob):
            await store.jobs.get(old.uid)
        assert [(await store.jobs.get(each.uid)).state.final for each in (runs, waits)] == [False, False]
