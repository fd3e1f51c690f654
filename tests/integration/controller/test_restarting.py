"""Jobs that end and run again, with real processes, over restarts of the controller at any instant."""

from __future__ import annotations

import secrets
from datetime import UTC, datetime
from pathlib import Path

import pytest

from pai_backend.api.openpai.jobs import Attempt
from pai_backend.api.services.attempts import attempt_of
from pai_backend.model.ids import JobUid
from pai_backend.model.job import Job, NewEvent, State, Task
from pai_backend.model.spec import JobSpec, PortSpec
from pai_backend.store.base import slot
from pai_backend.store.sql import Store
from pai_backend.testing.builders import make_job, make_role, make_spec
from tests.support.real_cluster import at_work, final, log_of, submit, until

SSH = [PortSpec(label="ssh")]


async def restart(store: Store, job: Job) -> None:
    await store.jobs.request_restart(job.uid, "alice", datetime.now(UTC))


async def replacing(store: Store, spec: JobSpec) -> Job:
    """Submit another job under the name of the first."""
    spec = spec.model_copy(update={"name": "job1"})
    job = make_job("job1", uid=JobUid(f"j{secrets.token_hex(8)}"), spec=spec, submitted_at=datetime.now(UTC))
    return await store.jobs.submit(job, b"{}", "", "", [NewEvent("job.submitted")], replace=True)


async def ended_again(store: Store, job: Job, attempt: int) -> Job:
    return await until(store, job.uid, lambda now: now.attempt == attempt and now.state.final)


async def attempts_of(store: Store, job: Job) -> list[Attempt]:
    tasks = [Task.model_validate(body) for body in await store.jobs.past_tasks(job.uid)]
    retries = await store.events.of_job(job.uid, type_="job.retry")
    return [attempt_of(job, number, tasks, retries) for number in range(job.attempt + 1)]


@pytest.mark.asyncio
async def test_a_stopped_job_and_one_that_is_done_run_again_with_history_and_host_key(
    store: Store, tmp_path: Path
) -> None:
    gate = tmp_path / "gate"
    command = f"echo run $PAI_TASK_INDEX; [ -e {gate} ] || sleep 600"
    spec = make_spec(roles=[make_role(command=command, gpus=1, ports=SSH)])
    async with at_work(store, tmp_path / "engine") as engine:
        job = await submit(store, 1, spec)
        await until(store, job.uid, lambda now: now.state is State.RUNNING)
        host_key = await store.task_keys.get(slot(job.uid, 0, 0))
        await store.jobs.request_stop(job.uid, "alice", datetime.now(UTC))
        stopped = await final(store, job)
        assert stopped.state is State.STOPPED
        gate.touch()

        await restart(store, job)  # its tasks may not be forgotten yet
        done = await ended_again(store, job, 1)
        await restart(store, job)
        again = await ended_again(store, job, 2)

        assert (done.state, again.state) == (State.SUCCEEDED, State.SUCCEEDED)
        assert (again.uid, again.alias) == (job.uid, job.alias)
        assert await log_of(engine, again) == "run 0\n"
        assert await store.task_keys.get(slot(job.uid, 0, 0)) == host_key is not None
        attempts = await attempts_of(store, again)
        assert [(each.number, each.completed) for each in attempts] == [
            (0, stopped.tasks[0].ended_at),
            (1, done.tasks[0].ended_at),
            (2, again.completed_at),
        ]
        assert [task["attempt"] for task in await store.jobs.past_tasks(job.uid)] == [0, 1, 2]
        assert [event.payload["attempt"] for event in await store.events.of_job(job.uid, type_="job.retry")] == [1, 2]
        await until(store, job.uid, lambda now: all(task.forgotten for task in now.tasks))
        assert await store.ports.leases() == []


@pytest.mark.asyncio
@pytest.mark.parametrize("at_once", [True, False], ids=["the same controller", "a later controller"])
async def test_a_job_that_replaces_another_starts_when_that_has_ended(
    store: Store, tmp_path: Path, at_once: bool
) -> None:
    """The first ignores being asked for its grace time; both print to one file, and so in turn."""
    told, root = tmp_path / "told", tmp_path / "engine"
    first_says = f"trap 'echo first ends >> {told}; exit 1' TERM; echo first >> {told}; while :; do sleep 0.1; done"
    async with at_work(store, root):
        first = await submit(store, 1, make_spec(roles=[make_role(command=first_says, gpus=1, ports=SSH)]))
        await until(store, first.uid, lambda now: now.state is State.RUNNING and told.exists())
        host_key = await store.task_keys.get(slot(first.uid, 0, 0))
        if at_once:
            second = await replacing(
                store, make_spec(roles=[make_role(command=f"echo second >> {told}", gpus=1, ports=SSH)])
            )
            done = await final(store, second)
    if not at_once:
        second = await replacing(
            store, make_spec(roles=[make_role(command=f"echo second >> {told}", gpus=1, ports=SSH)])
        )
        async with at_work(store, root):
            done = await final(store, second)
    assert told.read_text().splitlines() == ["first", "first ends", "second"]
    assert (done.state, done.name, done.alias, done.replaces) == (State.SUCCEEDED, "job1", first.alias, None)
    assert await store.task_keys.get(slot(done.uid, 0, 0)) == host_key is not None
    earlier = await store.jobs.get(first.uid)
    assert (earlier.state, earlier.name) == (State.STOPPED, f"job1-{first.uid[1:5]}")


@pytest.mark.asyncio
async def test_a_wish_that_no_controller_heard_is_carried_out_by_the_next(store: Store, tmp_path: Path) -> None:
    root = tmp_path / "engine"
    async with at_work(store, root):
        job = await submit(store, 1, make_spec(roles=[make_role(command="exit 7", gpus=1, ports=SSH)]))
        failed = await final(store, job)
        assert failed.exit is not None
    await restart(store, job)  # while no controller is there
    assert (await store.jobs.get(job.uid)).state is State.WAITING
    async with at_work(store, root):
        again = await ended_again(store, job, 1)
    assert again.exit is not None
    assert (again.state, again.exit.status) == (State.FAILED, 7)
