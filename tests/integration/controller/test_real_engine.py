"""The controller over the real store and real processes: what unit tests script, here happens."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest

from pai_backend.model.job import State
from pai_backend.model.spec import Completion, PortSpec
from pai_backend.store.sql import Store
from pai_backend.testing.builders import make_role, make_spec
from tests.support.living import lives
from tests.support.real_cluster import at_work, final, log_of, submit, until


@pytest.mark.asyncio
async def test_peers_know_each_others_addresses_before_any_of_them_starts(store: Store, tmp_path: Path) -> None:
    ports = [PortSpec(label="http")]
    ps = make_role("ps", gpus=1, ports=ports, command="echo $PAI_TASK_ROLE_worker_HOST_LIST")
    worker = make_role("worker", gpus=1, ports=ports, command="echo $PAI_TASK_ROLE_ps_HOST_LIST")
    async with at_work(store, tmp_path / "engine") as engine:
        spec = make_spec(roles=[role.model_copy(update={"completion": Completion()}) for role in (ps, worker)])
        done = await final(store, await submit(store, 1, spec))
        assert done.state is State.SUCCEEDED
        places = [task.placement for task in done.tasks]
        assert [place.node for place in places if place] == ["carol", "dan"]
        told = [(await log_of(engine, done, number)).strip() for number in (0, 1)]
        assert told == [f"127.0.0.1:{places[n].ports['http'][0]}" for n in (1, 0) if places[n]]  # type: ignore[union-attr]
    assert await store.ports.leases() == []


@pytest.mark.asyncio
async def test_a_job_that_outlives_its_controller_keeps_its_exit_status(store: Store, tmp_path: Path) -> None:
    gate = tmp_path / "gate"
    command = f"echo up; until [ -e {gate} ]; do sleep 0.05; done; exit 7"
    async with at_work(store, tmp_path / "engine"):
        job = await submit(store, 1, make_spec(roles=[make_role(command=command)]))
        await until(store, job.uid, lambda now: now.state is State.RUNNING)
    gate.touch()
    async with at_work(store, tmp_path / "engine") as engine:
        done = await final(store, job)
        assert (done.state, done.exit.status if done.exit else None) == (State.FAILED, 7)
        assert await log_of(engine, done) == "up\n"


@pytest.mark.asyncio
async def test_a_retry_runs_on_the_same_ports(store: Store, tmp_path: Path) -> None:
    seen = tmp_path / "ports"
    command = f"echo $PAI_CONTAINER_HOST_http_PORT_LIST >> {seen}; [ $(wc -l < {seen}) = 3 ]"
    spec = make_spec(roles=[make_role(ports=[PortSpec(label="http")], command=command)], retry_count=5)
    async with at_work(store, tmp_path / "engine"):
        done = await final(store, await submit(store, 1, spec))
    lines = seen.read_text().splitlines()
    assert (done.state, done.retries.user) == (State.SUCCEEDED, 2)
    assert len(lines) == 3
    assert len(set(lines)) == 1


@pytest.mark.asyncio
@pytest.mark.parametrize("retries", [0, 1])
async def test_a_job_that_kills_what_keeps_it_runs_as_often_as_it_may_and_leaves_nothing(
    store: Store, tmp_path: Path, retries: int
) -> None:
    pids = tmp_path / "pids"
    command = f"env -i setsid sleep 1000 & echo $! >> {pids}; echo $$ >> {pids}; kill -9 $PPID; sleep 1000"
    spec = make_spec(roles=[make_role(command=command)], retry_count=retries)
    async with at_work(store, tmp_path / "engine"):
        done = await final(store, await submit(store, 1, spec))
    exit_ = done.tasks[0].exit
    assert exit_ is not None
    assert (done.state, exit_.reason, done.retries.charged) == (State.FAILED, "lost", retries)
    ran = [int(line) for line in pids.read_text().split()]
    assert len(ran) == 2 * (retries + 1)
    assert [pid for pid in ran if lives(pid)] == []


@pytest.mark.asyncio
async def test_a_stop_reaches_the_process_and_the_job_says_who_asked(store: Store, tmp_path: Path) -> None:
    async with at_work(store, tmp_path / "engine"):
        job = await submit(store, 1, make_spec(roles=[make_role(command="trap 'exit 9' TERM; sleep 600 & wait")]))
        await until(store, job.uid, lambda now: now.state is State.RUNNING)
        await store.jobs.request_stop(job.uid, "alice", datetime.now(UTC), "enough")
        done = await final(store, job)
        exit_ = done.tasks[0].exit
        assert exit_ is not None
        assert (done.state, exit_.reason, exit_.code) == (State.STOPPED, "stopped", 9)
        events = [event for event in await store.events.of_job(job.uid) if event.type == "job.stop-requested"]
        assert [event.payload["by"] for event in events] == ["alice"]


@pytest.mark.asyncio
async def test_two_controllers_on_one_store_act_one_at_a_time(store: Store, other_store: Store, tmp_path: Path) -> None:
    ran = tmp_path / "ran"
    async with at_work(store, tmp_path / "engine"), at_work(other_store, tmp_path / "engine"):
        jobs = [
            await submit(store, number, make_spec(roles=[make_role(command=f"echo {number} >> {ran}")]))
            for number in range(1, 9)
        ]
        assert {(await final(store, job)).state for job in jobs} == {State.SUCCEEDED}
    assert sorted(ran.read_text().split()) == sorted(str(number) for number in range(1, 9))
