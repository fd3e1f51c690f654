"""The controller decides: over a real SQLite store and an engine whose tasks do what the test says."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from pathlib import Path

import pytest

from pai_backend.controller import Controller, ControllerOptions
from pai_backend.engine.base import EngineError, StartForbidden, StartRefused, TaskSeen, TaskState
from pai_backend.model.job import Causer, State, TaskExit
from pai_backend.model.spec import PortSpec
from pai_backend.testing.builders import make_role, make_spec
from tests.support.scripted_cluster import Cluster, cluster, controlled, on_gpu, opened, roomy_cluster
from tests.support.scripted_engine import ScriptedEngine, lab_node


@pytest.mark.asyncio
async def test_a_submitted_job_is_placed_started_and_followed_to_its_end(tmp_path: Path) -> None:
    async with cluster(tmp_path) as lab:
        job = await lab.running(await lab.submit(on_gpu()))
        place = job.tasks[0].placement
        assert place is not None
        assert (place.node, place.gpus, place.gpu_type) == ("carol", (0,), "TITANX")
        await lab.engine.exit(job.tasks[0].uid, 0)
        done = await lab.until(job.uid, lambda now: now.state.final and now.tasks[0].forgotten)
        assert (done.state, done.exit.status if done.exit else None) == (State.SUCCEEDED, 0)
        assert lab.engine.forgotten == {job.tasks[0].uid}
        assert await lab.store.ports.leases() == []


@pytest.mark.asyncio
async def test_the_history_tells_the_whole_life_without_a_gap(tmp_path: Path) -> None:
    async with cluster(tmp_path) as lab:
        job = await lab.running(await lab.submit(on_gpu()))
        await lab.engine.exit(job.tasks[0].uid, 3)
        await lab.final(job)
        events = await lab.store.events.of_job(job.uid)
        assert [event.seq for event in events] == list(range(1, len(events) + 1))
        states = [event.payload["state"] for event in events if event.type == "job.state"]
        assert [*dict.fromkeys(states)] == ["WAITING", "RUNNING", "FAILED"]
        assert events[-1].type == "job.exit"
        assert events[-1].payload["status"] == 3


@pytest.mark.asyncio
async def test_a_job_without_room_says_why_and_starts_when_there_is_room(tmp_path: Path) -> None:
    async with cluster(tmp_path, lab_node("carol")) as lab:
        first = await lab.running(await lab.submit(on_gpu()))
        second = await lab.until((await lab.submit(on_gpu())).uid, lambda now: bool(now.why))
        assert second.why.startswith("waits for 1 TITANX GPU")
        await lab.engine.exit(first.tasks[0].uid, 0)
        assert (await lab.running(second)).why == ""


@pytest.mark.asyncio
async def test_a_job_that_does_not_fit_does_not_hold_up_a_later_one(tmp_path: Path) -> None:
    async with cluster(tmp_path) as lab:
        big = await lab.submit(make_spec(roles=[make_role(gpus=4)]))
        small = await lab.submit(on_gpu())
        await lab.running(small)
        assert "needs 4 GPU, and the virtual cluster default owns 2" in (await lab.store.jobs.get(big.uid)).why


@pytest.mark.asyncio
async def test_a_stop_request_reaches_the_task_and_frees_its_place(tmp_path: Path) -> None:
    async with cluster(tmp_path) as lab:
        job = await lab.running(await lab.submit(on_gpu()))
        await lab.store.jobs.request_stop(job.uid, "alice", datetime.now(UTC), "enough")
        done = await lab.final(job)
        assert (done.state, done.exit.message if done.exit else "") == (State.STOPPED, "enough")
        assert await lab.store.ports.leases() == []


@pytest.mark.asyncio
async def test_a_stop_that_races_with_the_placement_is_never_lost(tmp_path: Path) -> None:
    async with roomy_cluster(tmp_path) as lab:
        jobs = []
        for _ in range(30):
            job = await lab.submit(on_gpu())
            await lab.store.jobs.request_stop(job.uid, "alice", datetime.now(UTC))
            jobs.append(job)
        assert {(await lab.final(job)).state for job in jobs} == {State.STOPPED}
        assert await lab.store.ports.leases() == []


@pytest.mark.asyncio
async def test_a_retry_keeps_its_ports_on_the_same_machine(tmp_path: Path) -> None:
    async with cluster(tmp_path) as lab:
        job = await lab.running(await lab.submit(on_gpu(retry_count=1)))
        before = job.tasks[0].placement
        await lab.engine.exit(job.tasks[0].uid, 1)
        again = await lab.until(job.uid, lambda now: now.attempt == 1 and now.state is State.RUNNING)
        after = again.tasks[0].placement
        assert before is not None
        assert after is not None
        assert after.ports == before.ports
        assert len(await lab.store.ports.leases()) == 1


@pytest.mark.asyncio
async def test_a_port_that_another_program_took_is_not_leased(tmp_path: Path) -> None:
    async with cluster(tmp_path) as lab:
        lab.engine.busy = set(range(15000, 15009))
        job = await lab.running(await lab.submit(on_gpu()))
        assert job.tasks[0].placement is not None
        assert job.tasks[0].placement.ports == {"http": (15009,)}


@pytest.mark.asyncio
async def test_a_fixed_port_in_use_is_the_reason_to_wait_until_it_is_free(tmp_path: Path) -> None:
    fixed = make_spec(roles=[make_role(ports=[PortSpec(label="web", begin_at=8080)])])
    async with cluster(tmp_path) as lab:
        first = await lab.running(await lab.submit(fixed))
        second = await lab.until((await lab.submit(fixed)).uid, lambda now: bool(now.why))
        assert second.why == "port 8080 (web) of laptop is in use"
        await lab.engine.exit(first.tasks[0].uid, 0)
        await lab.running(second)


@pytest.mark.asyncio
async def test_a_full_port_range_is_a_reason_too(tmp_path: Path) -> None:
    async with cluster(tmp_path) as lab:
        many = make_spec(roles=[make_role(ports=[PortSpec(label="http", count=11)])])
        job = await lab.until((await lab.submit(many)).uid, lambda now: bool(now.why))
        assert job.why == "the ports 15000-15009 of laptop are used up: 11 for http wanted, 10 free"


@pytest.mark.asyncio
async def test_a_task_that_can_never_start_fails_with_the_reason(tmp_path: Path) -> None:
    async with cluster(tmp_path) as lab:
        lab.engine.trouble = [StartRefused("bash is not on this machine")]
        done = await lab.final(await lab.submit())
        assert done.state is State.FAILED
        assert done.exit is not None
        assert done.exit.message == "task worker-0: the engine could not start it (bash is not on this machine)"


@pytest.mark.asyncio
async def test_what_the_cluster_forbids_the_document_costs_no_retry(tmp_path: Path) -> None:
    async with cluster(tmp_path) as lab:
        lab.engine.trouble = [StartForbidden("it asks for more than its namespace allows")]
        done = await lab.final(await lab.submit(make_spec(retry_count=3)))
        assert (done.state, done.attempt, done.retries.charged) == (State.FAILED, 0, 0)
        assert done.tasks[0].exit is not None
        assert done.tasks[0].exit.reason == "start-forbidden"


@pytest.mark.asyncio
async def test_an_engine_in_trouble_is_asked_again(tmp_path: Path) -> None:
    async with cluster(tmp_path) as lab:
        lab.engine.trouble = [EngineError("the disk is busy")]
        await lab.running(await lab.submit())


@pytest.mark.asyncio
async def test_a_new_controller_goes_on_where_the_last_one_ended(tmp_path: Path) -> None:
    engine = ScriptedEngine()
    async with opened(tmp_path) as store:
        lab = Cluster(store, engine)
        async with controlled(store, engine):
            job = await lab.running(await lab.submit(on_gpu()))
        await engine.exit(job.tasks[0].uid, 5)
        async with controlled(store, engine):
            done = await lab.final(job)
            assert done.exit is not None
            assert done.exit.status == 5
        assert len(engine.starts) == 1


@pytest.mark.asyncio
async def test_a_running_task_the_engine_no_longer_knows_is_run_again_free(tmp_path: Path) -> None:
    engine = ScriptedEngine()
    async with opened(tmp_path) as store:
        lab = Cluster(store, engine)
        async with controlled(store, engine):
            job = await lab.running(await lab.submit())
        engine.tasks.clear()
        async with controlled(store, engine):
            again = await lab.until(job.uid, lambda now: now.attempt == 1 and now.state is State.RUNNING)
            assert (again.retries.platform, again.retries.user) == (1, 0)


@pytest.mark.asyncio
async def test_a_lost_task_is_not_charged_to_the_user(tmp_path: Path) -> None:
    async with cluster(tmp_path) as lab:
        job = await lab.running(await lab.submit())
        uid = job.tasks[0].uid
        gone = TaskExit(reason="lost", causer=Causer.PLATFORM, at=datetime.now(UTC))
        await lab.engine.say(TaskSeen(uid, TaskState.EXITED, exit=gone))
        again = await lab.until(job.uid, lambda now: now.attempt == 1 and now.state is State.RUNNING)
        assert again.retries.platform == 1


@pytest.mark.asyncio
async def test_many_jobs_each_get_their_own_gpu_and_all_end(tmp_path: Path) -> None:
    async with cluster(tmp_path, lab_node("carol", gpus=3)) as lab:
        jobs = [await lab.submit(on_gpu()) for _ in range(12)]
        done = 0
        while done < len(jobs):
            plans = await lab.engine.started(done + 1)
            held = [plan.placement.gpus for plan in plans[done:]]
            assert len(held) == len(set(held)) <= 3
            await lab.engine.exit(plans[done].uid, 0)
            done += 1
        assert {(await lab.final(job)).state for job in jobs} == {State.SUCCEEDED}


@pytest.mark.asyncio
async def test_a_cancelled_controller_leaves_no_task_behind(tmp_path: Path) -> None:
    async with opened(tmp_path) as store:
        before = asyncio.all_tasks()
        controller = Controller(store, ScriptedEngine(), ControllerOptions(holder="test"))
        work = asyncio.create_task(controller.run(asyncio.Event()))
        await Cluster(store, ScriptedEngine()).until_decided()
        work.cancel()
        await asyncio.gather(work, return_exceptions=True)
        assert {task for task in asyncio.all_tasks() - before if task.get_name() != "store-wake"} == set()
