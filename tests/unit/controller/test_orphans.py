"""Tasks that the engine has and the database does not know: kept, taken back, ended only when somebody asks."""

from __future__ import annotations

import asyncio
import shutil
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from pai_backend.engine.base import Records, TaskSeen, TaskState
from pai_backend.engine.holding import EngineHolder
from pai_backend.model.ids import TaskUid
from pai_backend.model.job import State, TaskExit
from pai_backend.model.spec import PortSpec
from pai_backend.store.orphans import Orphan
from pai_backend.store.sql import Store
from pai_backend.testing.builders import make_job, make_role, make_spec, make_uid
from tests.support.scripted_cluster import Cluster, controlled, on_gpu, opened
from tests.support.scripted_engine import ScriptedEngine, lab_node

pytestmark = [pytest.mark.asyncio, pytest.mark.timeout(120)]

STRAY = TaskUid(f"{make_uid(77)}-0-0-0")


async def listed(store: Store, count: int) -> list[Orphan]:
    """The orphans, once there are so many."""
    while len(found := await store.recovery.orphans()) != count:  # noqa: ASYNC110 - seeing one wakes nobody
        await asyncio.sleep(0.01)
    return found


def running(uid: TaskUid) -> TaskSeen:
    return TaskSeen(uid, TaskState.RUNNING, since=datetime.now(UTC))


async def test_a_task_of_no_job_is_kept_and_shown(tmp_path: Path) -> None:
    engine = ScriptedEngine()
    engine.tasks[STRAY] = running(STRAY)
    async with opened(tmp_path) as store:
        async with controlled(store, engine):
            lab = Cluster(store, engine)
            (orphan,) = await listed(store, 1)
            await lab.running(await lab.submit(on_gpu()))  # everything else goes on
        async with controlled(store, engine):
            await lab.running(await lab.submit(on_gpu()))
            assert await store.recovery.orphans() == [orphan]
    assert (orphan.task, orphan.state, orphan.why) == (STRAY, "running", "it carries no record of its job")
    assert engine.tasks[STRAY].state is TaskState.RUNNING


async def test_an_administrator_ends_an_orphan(tmp_path: Path) -> None:
    engine = ScriptedEngine()
    engine.tasks[STRAY] = running(STRAY)
    async with opened(tmp_path) as store, controlled(store, engine):
        await listed(store, 1)
        await store.recovery.end(STRAY, "root")
        await listed(store, 0)
    assert engine.forgotten == {STRAY}


async def test_an_orphan_ends_at_the_age_that_is_configured_and_not_before(tmp_path: Path) -> None:
    engine = ScriptedEngine()
    engine.tasks[STRAY] = running(STRAY)
    async with opened(tmp_path) as store:
        async with controlled(store, engine, keep_orphans=timedelta(days=1)):
            await listed(store, 1)
            await Cluster(store, engine).submit(on_gpu())
            assert engine.tasks[STRAY].state is TaskState.RUNNING
        async with controlled(store, engine, keep_orphans=timedelta(0)):
            await listed(store, 0)
    assert engine.forgotten == {STRAY}


async def test_a_run_that_its_own_job_is_past_is_cleared_away(tmp_path: Path) -> None:
    engine = ScriptedEngine()
    async with opened(tmp_path) as store:
        lab = Cluster(store, engine)
        async with controlled(store, engine):
            job = await lab.running(await lab.submit(on_gpu()))
            await engine.exit(job.tasks[0].uid, 0)
            await lab.until(job.uid, lambda now: now.state.final and now.tasks[0].forgotten)
        engine.forgotten.clear()
        engine.tasks[job.tasks[0].uid] = running(job.tasks[0].uid)  # by a controller that slept
        async with controlled(store, engine):
            while job.tasks[0].uid not in engine.forgotten:  # noqa: ASYNC110 - the script tells nobody
                await asyncio.sleep(0.01)
        assert await store.recovery.orphans() == []


async def test_a_restored_database_ends_nothing_and_accounts_for_every_job(tmp_path: Path) -> None:
    """Back up while jobs run, go on, restore the copy."""
    engine = ScriptedEngine(lab_node("carol", gpus=8, cpus=64))
    now, backup = tmp_path / "now", tmp_path / "backup"
    now.mkdir()
    ports = make_spec(roles=[make_role(gpus=1, ports=[PortSpec(label="http")])], retry_count=3)
    async with opened(now) as store, controlled(store, engine):
        lab = Cluster(store, engine)
        stays = await lab.running(await lab.submit(ports))
        retried = await lab.running(await lab.submit(ports))
        ends = await lab.running(await lab.submit(on_gpu()))
    shutil.copytree(now, backup)
    async with opened(now) as store, controlled(store, engine):
        lab = Cluster(store, engine, numbers=3)
        later = await lab.running(await lab.submit(ports, password="hush"))
        await engine.exit(retried.tasks[0].uid, 1)
        again = await lab.until(retried.uid, lambda job: job.attempt == 1 and job.state is State.RUNNING)
        ended = TaskExit(code=5, at=datetime.now(UTC))
        engine.ended[ends.tasks[0].uid] = TaskSeen(ends.tasks[0].uid, TaskState.EXITED, ended)
        await engine.exit(ends.tasks[0].uid, 5)
        await lab.until(ends.uid, lambda job: job.state.final and job.tasks[0].forgotten)
        leases = await store.ports.leases()
    alive = {uid: seen.state for uid, seen in engine.tasks.items()}
    starts = len(engine.starts)
    async with opened(backup) as store, controlled(store, engine):
        lab = Cluster(store, engine, numbers=10)
        assert (await lab.final(ends)).exit.status == 5  # type: ignore[union-attr]
        back = await lab.running(later)
        assert (back.name, back.user, back.alias, back.tasks[0].placement) == (
            later.name,
            later.user,
            later.alias,
            later.tasks[0].placement,
        )
        assert await store.jobs.secrets(later.uid) == {"password": "hush"}
        assert (await lab.until(retried.uid, lambda job: job.attempt == 1)).tasks[0].uid == again.tasks[0].uid
        await lab.until(retried.uid, lambda job: job.state is State.RUNNING)
        assert (await store.jobs.get(stays.uid)).state is State.RUNNING
        assert sorted(await store.ports.leases(), key=str) == sorted(leases, key=str)
        assert {uid: seen.state for uid, seen in engine.tasks.items()} == alive
        assert len(engine.starts) == starts
        assert "job.taken-back" in {event.type for event in await store.events.of_job(later.uid)}
        await engine.exit(later.tasks[0].uid, 0)  # it goes on as any other
        assert (await lab.final(later)).state is State.SUCCEEDED
        assert await store.recovery.orphans() == []


async def test_a_job_that_waited_at_the_backup_and_runs_now_is_taken_back_as_it_runs(tmp_path: Path) -> None:
    """It is stored as not begun: what the engine says of it could not be heard, and it would be placed anew."""
    engine = ScriptedEngine(lab_node("carol", gpus=1))
    now, backup = tmp_path / "now", tmp_path / "backup"
    now.mkdir()
    ports = make_spec(roles=[make_role(gpus=1, ports=[PortSpec(label="http")])])
    async with opened(now) as store, controlled(store, engine):
        lab = Cluster(store, engine)
        first = await lab.running(await lab.submit(on_gpu()))
        waits = await lab.submit(ports)
        await lab.until(waits.uid, lambda job: bool(job.why))
    shutil.copytree(now, backup)
    async with opened(now) as store, controlled(store, engine):
        lab = Cluster(store, engine)
        engine.ended[first.tasks[0].uid] = TaskSeen(
            first.tasks[0].uid, TaskState.EXITED, TaskExit(code=0, at=datetime.now(UTC))
        )
        await engine.exit(first.tasks[0].uid, 0)
        runs = await lab.running(waits)
    starts = len(engine.starts)
    async with opened(backup) as store, controlled(store, engine):
        lab = Cluster(store, engine)
        back = await lab.running(waits)
        assert back.tasks[0].placement == runs.tasks[0].placement
        assert await store.recovery.orphans() == []
        assert len(engine.starts) == starts
        await engine.exit(waits.tasks[0].uid, 0)
        assert (await lab.final(waits)).state is State.SUCCEEDED


async def test_a_wish_to_stop_outlives_being_taken_back(tmp_path: Path) -> None:
    engine = ScriptedEngine(lab_node("carol", gpus=1))
    now, backup = tmp_path / "now", tmp_path / "backup"
    now.mkdir()
    async with opened(now) as store:
        await store.recovery.identity()
        lab = Cluster(store, engine)
        job = await lab.submit(on_gpu())
    shutil.copytree(now, backup)
    async with opened(now) as store, controlled(store, engine):
        await Cluster(store, engine).running(job)
    async with opened(backup) as store:
        await store.jobs.request_stop(job.uid, "alice", datetime.now(UTC), "enough")
        async with controlled(store, engine):
            assert (await Cluster(store, engine).final(job)).state is State.STOPPED


async def test_a_job_whose_name_was_given_away_stays_an_orphan(tmp_path: Path) -> None:
    engine = ScriptedEngine(lab_node("carol", gpus=2))
    now, backup = tmp_path / "now", tmp_path / "backup"
    now.mkdir()
    async with opened(now) as store:
        await store.recovery.identity()
    shutil.copytree(now, backup)
    async with opened(now) as store, controlled(store, engine):
        lab = Cluster(store, engine)
        job = await lab.running(await lab.submit(on_gpu()))
    async with opened(backup) as store:
        other = Cluster(store, engine)
        named = make_job(job.name, uid=make_uid(50), spec=make_spec().model_copy(update={"name": job.name}))
        await store.jobs.submit(named, b"{}", "job.json", "application/json", [])
        async with controlled(store, engine):
            (orphan,) = await listed(store, 1)
            assert "has another job named" in orphan.why
            assert (await other.running(named)).state is State.RUNNING
    assert engine.tasks[job.tasks[0].uid].state is TaskState.RUNNING


async def test_a_record_of_another_job_is_not_believed(tmp_path: Path) -> None:
    engine = ScriptedEngine(lab_node("carol", gpus=2))
    async with opened(tmp_path) as store:
        lab = Cluster(store, engine)
        async with controlled(store, engine):
            job = await lab.running(await lab.submit(on_gpu()))
        theirs = engine.carried[job.tasks[0].uid]
        engine.tasks[STRAY] = running(STRAY)
        engine.carried[STRAY] = Records(theirs.database, theirs.job, theirs.task)
        async with controlled(store, engine):
            (orphan,) = await listed(store, 1)
    assert orphan.why == "its record is of another task"


async def test_another_database_does_nothing_at_all(tmp_path: Path) -> None:
    engine = ScriptedEngine()
    engine.held = EngineHolder(identity="theirs", holder="their-laptop-7", epoch=3, beat_at=datetime.now(UTC))
    engine.tasks[STRAY] = running(STRAY)
    async with opened(tmp_path) as store:
        lab = Cluster(store, engine)
        async with controlled(store, engine):
            job = await lab.submit(on_gpu())
            await lab.until_decided()
            first = await store.leadership.latest()
            while (lease := await store.leadership.latest()) is None or lease == first:  # noqa: ASYNC110 - until it tried again
                await asyncio.sleep(0.01)
            assert (await store.jobs.get(job.uid)).state is State.WAITING
            await engine.hand_over(await store.recovery.identity())
            await lab.running(job)
            await listed(store, 1)
    assert engine.tasks[STRAY].state is TaskState.RUNNING
    assert engine.held is not None
    assert engine.held.previous == ("theirs",)
