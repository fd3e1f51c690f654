"""Incremental jobs under the controller: tasks placed one by one, told of late-comers, each run again alone."""

from __future__ import annotations

import asyncio
import json
from datetime import UTC, datetime
from pathlib import Path

import pytest

from pai_backend.engine.base import EngineError, TaskSeen, TaskState
from pai_backend.model.ids import TaskUid
from pai_backend.model.job import Job, Phase, State, Task, TaskExit
from pai_backend.model.spec import Completion, JobSpec, PortSpec
from pai_backend.testing.builders import make_role, make_spec
from tests.support.lab_config import one_vc
from tests.support.scripted_cluster import PATIENCE_S, Cluster, cluster, controlled, opened
from tests.support.scripted_engine import ScriptedEngine, lab_node
from tests.unit.controller.test_preemption import PROD, TEST, Reluctant, job_in

ALL_DONE = Completion(min_failed=None)


def workers(count: int = 3, gpus: int = 1, task_retry_count: int = 0) -> JobSpec:
    role = make_role(
        instances=count,
        gpus=gpus,
        ports=[PortSpec(label="http")],
        completion=ALL_DONE,
        task_retry_count=task_retry_count,
    )
    return make_spec(roles=[role], gang=False)


def of_phase(job: Job, phase: Phase) -> list[str]:
    return [task.name for task in job.tasks if task.phase is phase]


async def told(engine: ScriptedEngine, uid: TaskUid, hosts: int) -> None:
    """Wait until a task was told of a job info file in which so many tasks have an address."""

    def has_been() -> bool:
        files = [json.loads(text) for task, text in engine.refreshed if task == uid]
        return any(sum(task["host"] is not None for task in file["tasks"]) == hosts for file in files)

    async with asyncio.timeout(PATIENCE_S), engine._changed:
        await engine._changed.wait_for(has_been)


def beginning_with(least: int, count: int = 3, gpus: int = 1, task_retry_count: int = 0) -> JobSpec:
    """Workers of which so many start together, before the others."""
    made = workers(count, gpus, task_retry_count)
    (role,) = made.task_roles
    return made.model_copy(update={"task_roles": (role.model_copy(update={"min_instances": least}),)})


@pytest.mark.asyncio
async def test_the_first_tasks_start_together_or_not_at_all_and_the_others_join_as_room_comes(tmp_path: Path) -> None:
    async with cluster(tmp_path, lab_node("carol", gpus=2)) as lab:
        one = await lab.running(await lab.submit(workers(1)))
        job = await lab.until((await lab.submit(beginning_with(2))).uid, lambda now: bool(now.why))
        assert of_phase(job, Phase.QUEUED) == ["worker-0", "worker-1", "worker-2"]
        await lab.engine.exit(one.tasks[0].uid, 0)
        job = await lab.until(job.uid, lambda now: len(of_phase(now, Phase.RUNNING)) == 2)
        assert of_phase(job, Phase.RUNNING) == ["worker-0", "worker-1"]
        await lab.until(job.uid, lambda now: now.why.startswith("1 of 3 tasks wait: "))
        await lab.engine.exit(job.tasks[0].uid, 0)
        job = await lab.until(job.uid, lambda now: "worker-2" in of_phase(now, Phase.RUNNING))
        assert of_phase(job, Phase.RUNNING) == ["worker-1", "worker-2"]


@pytest.mark.asyncio
@pytest.mark.parametrize("gpus", [0, 1])
async def test_a_first_task_that_fails_is_run_again_while_the_others_go_on(tmp_path: Path, gpus: int) -> None:
    async with cluster(tmp_path, lab_node("carol", gpus=2)) as lab:
        spec = beginning_with(2, 2, gpus, task_retry_count=1)
        job = await lab.until((await lab.submit(spec)).uid, lambda now: len(of_phase(now, Phase.RUNNING)) == 2)
        await lab.engine.exit(job.tasks[0].uid, 1)
        job = await lab.until(job.uid, lambda now: now.tasks[0].attempt == 1 and now.tasks[0].phase is Phase.RUNNING)
        assert job.tasks[1].attempt == 0
        for task in job.tasks:
            await lab.engine.exit(task.uid, 0)
        assert (await lab.final(job)).state is State.SUCCEEDED


@pytest.mark.asyncio
async def test_a_controller_that_starts_anew_lets_the_others_join_a_job_that_has_begun(tmp_path: Path) -> None:
    async with opened(tmp_path) as store:
        engine = ScriptedEngine(lab_node("carol", gpus=2))
        lab = Cluster(store, engine)
        async with controlled(store, engine):
            submitted = await lab.submit(beginning_with(2))
            job = await lab.until(submitted.uid, lambda now: len(of_phase(now, Phase.RUNNING)) == 2)
        async with controlled(store, engine):
            await engine.exit(job.tasks[1].uid, 0)
            job = await lab.until(job.uid, lambda now: "worker-2" in of_phase(now, Phase.RUNNING))
            assert of_phase(job, Phase.RUNNING) == ["worker-0", "worker-2"]


@pytest.mark.asyncio
async def test_cells_are_taken_from_others_for_the_first_tasks_also_across_a_restart(
    tmp_path: Path,
) -> None:
    async with opened(tmp_path) as store:
        engine = Reluctant()
        lab = Cluster(store, engine)
        async with controlled(store, engine, config=one_vc()):
            low = await lab.running(await lab.submit(job_in("default", TEST, tasks=2)))
            spec = beginning_with(2)
            prod = spec.scheduling.model_copy(update={"priority_class": PROD})
            job = await lab.submit(spec.model_copy(update={"scheduling": prod}))
            for task in low.tasks:
                await engine.asked_to_stop(task.uid)
            assert of_phase(await lab.store.jobs.get(job.uid), Phase.QUEUED) == ["worker-0", "worker-1", "worker-2"]
        async with controlled(store, engine, config=one_vc()):
            await engine.exit(low.tasks[0].uid, 0)
            await lab.until(low.uid, lambda now: now.tasks[0].is_over or now.tasks[0].attempt > 0)
            assert of_phase(await lab.store.jobs.get(job.uid), Phase.RUNNING) == []
            await engine.exit(low.tasks[1].uid, 0)
            job = await lab.until(job.uid, lambda now: len(of_phase(now, Phase.RUNNING)) == 2)
            assert of_phase(job, Phase.RUNNING) == ["worker-0", "worker-1"]


@pytest.mark.asyncio
async def test_tasks_start_as_room_appears_and_the_others_say_what_they_wait_for(tmp_path: Path) -> None:
    async with cluster(tmp_path, lab_node("carol", gpus=2)) as lab:
        submitted = await lab.submit(workers())
        job = await lab.until(submitted.uid, lambda now: of_phase(now, Phase.RUNNING) == ["worker-0", "worker-1"])
        assert job.state is State.RUNNING
        assert job.why.startswith("1 of 3 tasks wait: waits for 1 GPU: suitable resources are in use: held by alice~")
        await lab.engine.exit(job.tasks[0].uid, 0)
        job = await lab.until(job.uid, lambda now: "worker-2" in of_phase(now, Phase.RUNNING))
        assert job.why == ""


@pytest.mark.asyncio
async def test_a_task_that_is_too_large_does_not_hold_up_the_others(tmp_path: Path) -> None:
    big, small = make_role("big", gpus=9, completion=ALL_DONE), make_role("small", completion=ALL_DONE)
    async with cluster(tmp_path) as lab:
        submitted = await lab.submit(make_spec(roles=[big, small], gang=False))
        job = await lab.until(submitted.uid, lambda now: of_phase(now, Phase.RUNNING) == ["small-0"])
        assert job.why.startswith("1 of 2 tasks wait: needs 9 GPU, and the virtual cluster default owns 2")


@pytest.mark.asyncio
async def test_a_gang_of_the_same_size_waits_as_a_whole(tmp_path: Path) -> None:
    async with cluster(tmp_path, lab_node("carol", gpus=2)) as lab:
        gang = workers().model_copy(update={"scheduling": make_spec().scheduling})
        job = await lab.until((await lab.submit(gang)).uid, lambda now: bool(now.why))
        assert of_phase(job, Phase.QUEUED) == ["worker-0", "worker-1", "worker-2"]


@pytest.mark.asyncio
async def test_running_tasks_are_told_of_late_comers_also_when_the_engine_is_in_trouble(tmp_path: Path) -> None:
    async with cluster(tmp_path, lab_node("carol", gpus=2)) as lab:
        submitted = await lab.submit(workers())
        job = await lab.until(submitted.uid, lambda now: len(of_phase(now, Phase.RUNNING)) == 2)
        await told(lab.engine, job.tasks[1].uid, 2)
        lab.engine.trouble = [EngineError("the disk is busy")]
        await lab.engine.exit(job.tasks[0].uid, 0)
        await told(lab.engine, job.tasks[1].uid, 3)


@pytest.mark.asyncio
async def test_a_new_controller_tells_all_running_tasks_again(tmp_path: Path) -> None:
    engine = ScriptedEngine(lab_node("carol", gpus=3))
    async with opened(tmp_path) as store:
        lab = Cluster(store, engine)
        async with controlled(store, engine):
            submitted = await lab.submit(workers())
            job = await lab.until(submitted.uid, lambda now: len(of_phase(now, Phase.RUNNING)) == 3)
        engine.refreshed.clear()
        async with controlled(store, engine):
            for task in job.tasks:
                await told(engine, task.uid, 3)


@pytest.mark.asyncio
async def test_a_failed_task_is_run_again_alone_on_the_ports_it_had(tmp_path: Path) -> None:
    async with cluster(tmp_path, lab_node("carol", gpus=3)) as lab:
        submitted = await lab.submit(workers(task_retry_count=1))
        first = await lab.until(submitted.uid, lambda now: len(of_phase(now, Phase.RUNNING)) == 3)
        await lab.engine.exit(first.tasks[1].uid, 7)
        again = await lab.until(
            submitted.uid, lambda now: now.tasks[1].attempt == 1 and len(of_phase(now, Phase.RUNNING)) == 3
        )
        places = [task.placement for task in (first.tasks[1], again.tasks[1])]
        assert places[0] is not None
        assert places[0] == places[1]
        assert [task.uid for task in again.tasks if task.attempt == 0] == [first.tasks[0].uid, first.tasks[2].uid]
        assert len(await lab.store.ports.leases()) == 3
        for task in again.tasks:
            await lab.engine.exit(task.uid, 0)
        assert (await lab.final(again)).state is State.SUCCEEDED
        assert await lab.store.ports.leases() == []
        past = [Task.model_validate(row) for row in await lab.store.jobs.past_tasks(again.uid)]
        assert sorted(task.exit.status for task in past if task.exit) == [0, 0, 0, 7]


@pytest.mark.asyncio
async def test_a_port_that_a_program_took_is_not_tried_again(tmp_path: Path) -> None:
    async with cluster(tmp_path, lab_node("carol")) as lab:
        submitted = await lab.submit(workers(1))
        first = await lab.running(submitted)
        await lab.engine.exit(first.tasks[0].uid, None, reason="port-conflict")
        again = await lab.until(
            submitted.uid, lambda now: now.tasks[0].attempt == 1 and now.tasks[0].phase is Phase.RUNNING
        )
        places = [task.placement for task in (first.tasks[0], again.tasks[0])]
        assert places[0] is not None
        assert places[1] is not None
        assert places[0].ports != places[1].ports
        assert len(await lab.store.ports.leases()) == 1


@pytest.mark.asyncio
async def test_lost_tasks_come_back_by_themselves_after_their_pause(tmp_path: Path) -> None:
    async with cluster(tmp_path, lab_node("carol", gpus=2)) as lab:
        submitted = await lab.submit(workers(2))
        first = await lab.until(submitted.uid, lambda now: len(of_phase(now, Phase.RUNNING)) == 2)
        gone = TaskExit(reason="lost", at=datetime.now(UTC))
        await lab.engine.say(TaskSeen(first.tasks[0].uid, TaskState.EXITED, exit=gone))
        waiting = await lab.until(submitted.uid, lambda now: now.tasks[0].attempt == 1)
        assert waiting.tasks[0].phase is Phase.BACKING_OFF
        again = await lab.until(submitted.uid, lambda now: len(of_phase(now, Phase.RUNNING)) == 2)
        assert (again.attempt, again.tasks[0].retries.charged) == (0, 0)


@pytest.mark.asyncio
async def test_a_stop_ends_running_and_waiting_tasks_alike(tmp_path: Path) -> None:
    async with cluster(tmp_path, lab_node("carol", gpus=2)) as lab:
        submitted = await lab.submit(workers())
        job = await lab.until(submitted.uid, lambda now: len(of_phase(now, Phase.RUNNING)) == 2)
        await lab.store.jobs.request_stop(job.uid, "alice", datetime.now(UTC))
        assert (await lab.final(job)).state is State.STOPPED
        assert await lab.store.ports.leases() == []
