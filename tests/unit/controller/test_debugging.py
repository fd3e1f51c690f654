"""Kept tasks under the controller: their place stays taken until they are let go, over restarts too."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from pai_backend.model.job import Job, Phase, State
from pai_backend.model.spec import JobSpec
from tests.support.scripted_cluster import Cluster, cluster, controlled, on_gpu, opened
from tests.support.scripted_engine import ScriptedEngine, lab_node


def debug_job() -> JobSpec:
    return on_gpu(debug=True)


async def kept(lab: Cluster) -> Job:
    """A job whose task has failed and is kept."""
    job = await lab.running(await lab.submit(debug_job()))
    await lab.engine.exit(job.tasks[0].uid, 3)
    return await lab.until(job.uid, lambda now: now.phase is Phase.KEPT)


async def let_go(lab: Cluster, job: Job) -> Job:
    await lab.store.jobs.request_release(job.uid, None, "alice", datetime.now(UTC))
    return await lab.final(job)


@pytest.mark.asyncio
async def test_a_kept_task_holds_its_gpu_and_ports_until_it_is_let_go(tmp_path: Path) -> None:
    async with cluster(tmp_path, lab_node("carol")) as lab:
        job = await kept(lab)
        waiting = await lab.until((await lab.submit(on_gpu())).uid, lambda now: bool(now.why))
        assert lab.engine.forgotten == set()
        assert len(await lab.store.ports.leases()) == 1
        done = await let_go(lab, job)
        assert (done.state, done.exit.status if done.exit else None) == (State.FAILED, 3)
        await lab.running(waiting)
        assert job.tasks[0].uid in lab.engine.forgotten


@pytest.mark.asyncio
async def test_the_whole_story_is_in_the_history(tmp_path: Path) -> None:
    async with cluster(tmp_path) as lab:
        job = await kept(lab)
        await let_go(lab, job)
        events = await lab.store.events.of_job(job.uid)
        told = {event.type: event.payload for event in events}
        assert [event.type for event in events].index("task.kept") < [event.type for event in events].index(
            "job.release-requested"
        )
        assert told["task.kept"]["until"] == job.tasks[0].kept_until.isoformat()  # type: ignore[union-attr]
        assert told["task.released"]["by"] == "user"
        assert told["job.exit"]["status"] == 3
        assert str(told["job.exit"]["remedy"]).startswith("The end of its log")


@pytest.mark.asyncio
async def test_the_deadline_survives_a_new_controller(tmp_path: Path) -> None:
    engine = ScriptedEngine()
    async with opened(tmp_path) as store:
        lab = Cluster(store, engine)
        async with controlled(store, engine):
            job = await kept(lab)
        async with controlled(store, engine, keep=timedelta(0)):
            again = await lab.store.jobs.get(job.uid)
            assert again.tasks[0].kept_until == job.tasks[0].kept_until
            done = await let_go(lab, job)
            assert done.tasks[0].released_by == "user"


@pytest.mark.asyncio
async def test_the_clock_lets_go_by_itself(tmp_path: Path) -> None:
    async with cluster(tmp_path, keep=timedelta(seconds=1)) as lab:
        job = await lab.running(await lab.submit(debug_job()))
        await lab.engine.exit(job.tasks[0].uid, 3)
        done = await lab.final(job)
        task = done.tasks[0]
        assert task.released_by == "clock"
        assert done.completed_at is not None
        assert task.kept_until is not None
        assert done.completed_at >= task.kept_until


@pytest.mark.asyncio
async def test_a_stop_lets_go_too(tmp_path: Path) -> None:
    async with cluster(tmp_path) as lab:
        job = await kept(lab)
        await lab.store.jobs.request_stop(job.uid, "alice", datetime.now(UTC))
        done = await lab.final(job)
        assert (done.state, done.tasks[0].released_by) == (State.FAILED, "stop")


@pytest.mark.asyncio
async def test_a_kept_task_that_the_engine_no_longer_has_is_let_go(tmp_path: Path) -> None:
    engine = ScriptedEngine()
    async with opened(tmp_path) as store:
        lab = Cluster(store, engine)
        async with controlled(store, engine):
            job = await kept(lab)
        engine.tasks.clear()
        async with controlled(store, engine):
            done = await lab.final(job)
            assert (done.state, done.tasks[0].released_by) == (State.FAILED, "lost")
