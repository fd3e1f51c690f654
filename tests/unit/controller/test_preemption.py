"""Who must make way, and comes back: quotas, priorities and gangs as the controller carries them out."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from pai_backend.model.ids import TaskUid
from pai_backend.model.job import Job, Phase, State
from pai_backend.model.spec import JobSpec, PriorityClass
from pai_backend.testing.builders import make_role, make_spec
from tests.support.lab_config import one_vc, shared_chain, two_vcs
from tests.support.scripted_cluster import Cluster, cluster, controlled, opened
from tests.support.scripted_engine import ScriptedEngine, lab_node

PROD, TEST, OPPO = PriorityClass.PROD, PriorityClass.TEST, PriorityClass.OPPO


def job_in(vc: str, priority: PriorityClass, *, tasks: int = 1, **changes: Any) -> JobSpec:
    return make_spec(roles=[make_role(instances=tasks, gpus=1)], virtual_cluster=vc, priority=priority, **changes)


def node_of(job: Job) -> str:
    place = job.tasks[0].placement
    assert place is not None
    return place.node


def is_displaced(job: Job) -> bool:
    place = job.tasks[0].placement
    return place is not None and place.displaced


class Reluctant(ScriptedEngine):
    """An engine whose tasks do not end when they are asked to, until the test says so."""

    def __init__(self) -> None:
        super().__init__()
        self.asked: list[TaskUid] = []

    async def stop(self, uid: TaskUid, grace: float) -> None:
        self.asked.append(uid)
        async with self._changed:
            self._changed.notify_all()

    async def asked_to_stop(self, uid: TaskUid) -> None:
        async with self._changed:
            await self._changed.wait_for(lambda: uid in self.asked)


@pytest.mark.asyncio
async def test_a_quota_is_never_exceeded_though_another_virtual_cluster_is_idle(tmp_path: Path) -> None:
    async with cluster(tmp_path, config=two_vcs()) as lab:
        first = await lab.running(await lab.submit(job_in("vc1", PROD)))
        second = await lab.until((await lab.submit(job_in("vc1", PROD))).uid, lambda now: bool(now.why))
        assert (node_of(first), second.state) == ("dan", State.WAITING)
        assert "in use: held by alice~job1" in second.why
        await lab.engine.exit(first.tasks[0].uid, 0)
        assert node_of(await lab.running(second)) == "dan"


@pytest.mark.asyncio
async def test_a_higher_priority_ends_a_lower_one_which_comes_back_for_free(tmp_path: Path) -> None:
    async with cluster(tmp_path, config=two_vcs()) as lab:
        low = await lab.running(await lab.submit(job_in("vc1", TEST)))
        high = await lab.running(await lab.submit(job_in("vc1", PROD)))
        again = await lab.until(low.uid, lambda now: now.attempt == 1 and now.phase is Phase.QUEUED)
        assert again.retries.free == again.retries.total == 1
        past = await lab.store.jobs.past_tasks(low.uid)
        exit_ = past[0]["exit"]
        assert isinstance(exit_, dict)
        assert exit_["reason"] == "preempted"
        assert f"preempted by {high.id}, priority 100" in exit_["message"]
        await lab.engine.exit(high.tasks[0].uid, 0)
        assert (await lab.running(again)).attempt == 1


@pytest.mark.asyncio
async def test_an_idle_node_is_lent_to_an_opportunistic_job_until_its_owner_wants_it(tmp_path: Path) -> None:
    async with cluster(tmp_path, config=two_vcs()) as lab:
        await lab.running(await lab.submit(job_in("vc1", PROD)))
        guest = await lab.running(await lab.submit(job_in("vc1", OPPO)))
        assert node_of(guest) == "carol"
        owner = await lab.running(await lab.submit(job_in("default", TEST)))
        assert node_of(owner) == "carol"
        assert (await lab.until(guest.uid, lambda now: now.attempt == 1)).state is State.WAITING


@pytest.mark.asyncio
async def test_a_gang_starts_together_and_an_incremental_job_grows(tmp_path: Path) -> None:
    async with cluster(tmp_path, config=one_vc()) as lab:
        first = await lab.running(await lab.submit(job_in("default", PROD)))
        gang = await lab.until((await lab.submit(job_in("default", PROD, tasks=2))).uid, lambda now: bool(now.why))
        assert {task.phase for task in gang.tasks} == {Phase.QUEUED}
        one_by_one = await lab.running(await lab.submit(job_in("default", PROD, tasks=2, gang=False)))
        assert [task.phase for task in one_by_one.tasks] == [Phase.RUNNING, Phase.QUEUED]
        await lab.engine.exit(first.tasks[0].uid, 0)
        grown = await lab.until(
            one_by_one.uid, lambda now: all(task.phase is Phase.RUNNING for task in now.tasks) or now.state.final
        )
        assert grown.state is State.RUNNING


@pytest.mark.asyncio
async def test_a_preemptor_keeps_its_place_over_a_restart_while_its_victim_goes_slowly(tmp_path: Path) -> None:
    async with opened(tmp_path) as store:
        engine = Reluctant()
        async with controlled(store, engine, config=two_vcs()):
            lab = Cluster(store, engine)
            low = await lab.running(await lab.submit(job_in("vc1", TEST)))
            high = await lab.submit(job_in("vc1", PROD))
            await engine.asked_to_stop(low.tasks[0].uid)
        kept = (await store.jobs.get(high.uid)).tasks[0]
        assert kept.reserved is not None
        assert (kept.reserved.node, kept.reserved.cells, kept.placement) == ("dan", (0,), None)
        engine.asked.clear()
        async with controlled(store, engine, config=two_vcs()):
            await engine.asked_to_stop(low.tasks[0].uid)
            rival = await lab.until((await lab.submit(job_in("vc1", PROD))).uid, lambda now: bool(now.why))
            assert "alice~job2" in rival.why
            await engine.exit(low.tasks[0].uid, signal=15, reason="stopped")
            started = await lab.running(high)
        assert node_of(started) == "dan"
        assert started.tasks[0].reserved is None
        assert (await store.jobs.get(rival.uid)).state is State.WAITING


@pytest.mark.asyncio
async def test_a_preemptor_that_is_stopped_gives_its_place_up(tmp_path: Path) -> None:
    async with opened(tmp_path) as store:
        engine = Reluctant()
        async with controlled(store, engine, config=two_vcs()):
            lab = Cluster(store, engine)
            low = await lab.running(await lab.submit(job_in("vc1", TEST)))
            high = await lab.submit(job_in("vc1", PROD))
            await engine.asked_to_stop(low.tasks[0].uid)
            await store.jobs.request_stop(high.uid, "alice", datetime.now(UTC))
            await lab.final(high)
            await engine.exit(low.tasks[0].uid, signal=15, reason="stopped")
            assert (await lab.until(low.uid, lambda now: now.attempt == 1 and now.state is State.RUNNING)).attempt == 1


@pytest.mark.asyncio
async def test_a_task_that_ends_by_itself_meanwhile_has_not_been_preempted(tmp_path: Path) -> None:
    async with opened(tmp_path) as store:
        engine = Reluctant()
        async with controlled(store, engine, config=two_vcs()):
            lab = Cluster(store, engine)
            low = await lab.running(await lab.submit(job_in("vc1", TEST)))
            high = await lab.submit(job_in("vc1", PROD))
            await engine.asked_to_stop(low.tasks[0].uid)
            await engine.exit(low.tasks[0].uid, 0)
            assert (await lab.final(low)).state is State.SUCCEEDED
            await lab.running(high)


@pytest.mark.asyncio
async def test_lazy_preemption_ends_nobody_and_the_claim_comes_back(tmp_path: Path) -> None:
    async with cluster(tmp_path, config=shared_chain()) as lab:
        lazy = await lab.running(await lab.submit(job_in("vc1", TEST, lazy=True)))
        high = await lab.running(await lab.submit(job_in("vc1", PROD)))
        assert node_of(high) != node_of(lazy)
        assert (await lab.until(lazy.uid, is_displaced)).state is State.RUNNING
        await lab.engine.exit(high.tasks[0].uid, 0)
        assert (await lab.until(lazy.uid, lambda now: not is_displaced(now))).attempt == 0


@pytest.mark.asyncio
async def test_who_lost_its_claim_makes_way_for_the_owner(tmp_path: Path) -> None:
    async with opened(tmp_path) as store:
        engine = ScriptedEngine()
        async with controlled(store, engine, config=shared_chain()):
            lab = Cluster(store, engine)
            lazy = await lab.running(await lab.submit(job_in("vc1", TEST, lazy=True)))
            await lab.running(await lab.submit(job_in("vc1", PROD)))
            await lab.until(lazy.uid, is_displaced)
        async with controlled(store, engine, config=shared_chain()):
            owner = await lab.running(await lab.submit(job_in("default", TEST)))
        assert node_of(owner) == node_of(lazy)
        assert (await store.jobs.get(lazy.uid)).attempt == 1


@pytest.mark.asyncio
async def test_a_gang_that_lacks_cpu_on_one_node_is_spread(tmp_path: Path) -> None:
    nodes = [lab_node("carol", gpus=4, cpus=4), lab_node("dan", gpus=4, cpus=4)]
    async with cluster(tmp_path, *nodes) as lab:
        job = await lab.running(await lab.submit(make_spec(roles=[make_role(instances=4, gpus=1, cpus=2)])))
        places = [task.placement.node for task in job.tasks if task.placement is not None]
        assert sorted(places) == ["carol", "carol", "dan", "dan"]
