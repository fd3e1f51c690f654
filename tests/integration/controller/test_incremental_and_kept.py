"""Incremental and debug jobs with real processes: peers learn late-comers, failed tasks stay until they are let go."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from pai_backend.model.job import Job, Phase, State
from pai_backend.model.spec import Completion, JobSpec, PortSpec
from pai_backend.store.sql import Store
from pai_backend.testing.builders import make_role, make_spec
from tests.support.real_cluster import at_work, final, log_of, submit, until

ALL_DONE = Completion(min_failed=None)
HOSTS = (
    "import json, os; print(sum(task['host'] is not None for task in json.load(open(os.environ['PAI_JOB_INFO_FILE']))"
    "['tasks']))"
)
"""Prints how many tasks of the job have an address, by the word of the job info file."""


def workers(command: str, count: int, task_retry_count: int = 0) -> JobSpec:
    role = make_role(
        instances=count,
        gpus=1,
        ports=[PortSpec(label="http")],
        command=command,
        completion=ALL_DONE,
        task_retry_count=task_retry_count,
    )
    return make_spec(roles=[role], gang=False)


@pytest.mark.asyncio
async def test_a_running_task_learns_where_a_late_comer_is(store: Store, tmp_path: Path) -> None:
    """Three tasks on two GPUs: the third starts when the second ends, and the first sees its address in its file."""
    wait_for_all = f'until [ "$(python -c "{HOSTS}")" = 3 ]; do sleep 0.1; done; echo all are there'
    gate = tmp_path / "gate"
    wait_for_gate = f"until [ -e {gate} ]; do sleep 0.05; done"
    command = f'if [ "$PAI_TASK_INDEX" = 1 ]; then {wait_for_gate}; else {wait_for_all}; fi'
    async with at_work(store, tmp_path / "engine") as engine:
        job = await submit(store, 1, workers(command, 3))
        await until(store, job.uid, lambda now: [t.phase for t in now.tasks][:2] == [Phase.RUNNING] * 2)
        gate.touch()
        done = await final(store, job)
        assert done.state is State.SUCCEEDED
        assert [await log_of(engine, done, number) for number in (0, 2)] == ["all are there\n"] * 2


@pytest.mark.asyncio
async def test_a_failed_task_alone_runs_again_and_the_others_go_on(store: Store, tmp_path: Path) -> None:
    runs = tmp_path / "runs"
    command = f'echo $PAI_TASK_INDEX >> {runs}; [ "$(grep -c $PAI_TASK_INDEX {runs})" -gt "$PAI_TASK_INDEX" ]'
    async with at_work(store, tmp_path / "engine"):
        done = await final(store, await submit(store, 1, workers(command, 2, task_retry_count=3)))
    assert done.state is State.SUCCEEDED
    assert [task.attempt for task in done.tasks] == [0, 1]
    assert sorted(runs.read_text().split()) == ["0", "1", "1"]
    assert await store.ports.leases() == []


async def failing(store: Store, number: int = 1) -> Job:
    """A debug job that leaves a file behind and fails."""
    spec = make_spec(roles=[make_role(command="echo evidence > left; exit 3", gpus=1)], debug=True)
    return await submit(store, number, spec)


@pytest.mark.asyncio
async def test_a_kept_task_outlives_its_controller_with_its_files_until_it_is_let_go(
    store: Store, tmp_path: Path
) -> None:
    root = tmp_path / "engine"
    async with at_work(store, root):
        job = await failing(store)
        job = await until(store, job.uid, lambda now: now.phase is Phase.KEPT)
        uid = job.tasks[0].uid
    async with at_work(store, root):
        (left,) = (root / "tasks" / uid).rglob("left")
        assert left.read_text() == "evidence\n"
        assert (await store.jobs.get(job.uid)).tasks[0].kept_until == job.tasks[0].kept_until
        await store.jobs.request_release(job.uid, {"worker-0"}, "alice", datetime.now(UTC))
        done = await until(store, job.uid, lambda now: now.state.final and now.tasks[0].forgotten)
        assert (done.state, done.exit.status if done.exit else None) == (State.FAILED, 3)
        assert not (root / "tasks" / uid).exists()


@pytest.mark.asyncio
async def test_the_clock_ends_the_keeping_and_the_place_is_free(store: Store, tmp_path: Path) -> None:
    async with at_work(store, tmp_path / "engine", keep=timedelta(seconds=1)):
        for job in [await failing(store, number) for number in (1, 2, 3)]:  # and there are two GPUs
            assert (await final(store, job)).tasks[0].released_by == "clock"
