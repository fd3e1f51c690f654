"""Another cluster configuration while jobs run: who is told, and what a crash at any instant leaves."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

import pytest

from pai_backend.controller.configuring import Setting
from pai_backend.model.change import ClusterChange
from pai_backend.model.errors import Unavailable
from pai_backend.model.ids import TaskUid
from pai_backend.model.job import Event, Job, State
from pai_backend.model.spec import JobSpec, PriorityClass
from pai_backend.scheduling.config.derive import derive, to_yaml
from pai_backend.store.configurations import Configurations
from pai_backend.store.sql import Store
from pai_backend.testing.builders import make_role, make_spec
from tests.support.lab_config import ONE_VC, TWO_VCS
from tests.support.scripted_cluster import PATIENCE_S, Cluster, cluster, controlled, opened
from tests.support.scripted_engine import ScriptedEngine, lab_node

PROD, TEST = PriorityClass.PROD, PriorityClass.TEST
HARDWARE = ONE_VC.partition("virtualClusters")[0]


def shared(default: int, vc1: int) -> str:
    """Two nodes of one kind, so many for each virtual cluster."""
    owned = {"default": default, "vc1": vc1}
    lines = [f"  {vc}: {{virtualCells: [{{cellType: GPU-NODE, cellNumber: {n}}}]}}" for vc, n in owned.items()]
    return "\n".join([f"{HARDWARE}virtualClusters:", *lines])


def job_in(vc: str, priority: PriorityClass = TEST, tasks: int = 1) -> JobSpec:
    return make_spec(roles=[make_role(instances=tasks, gpus=1)], virtual_cluster=vc, priority=priority)


def is_displaced(job: Job) -> bool:
    place = job.tasks[0].placement
    return place is not None and place.displaced


def claims(events: Sequence[Event]) -> list[tuple[object, ...]]:
    told = [event.payload for event in events if event.type == "job.claim"]
    return [(payload["change"], payload["tasks"], payload["config"]) for payload in told]


async def in_force(store: Store, version: int) -> ClusterChange:
    """The effects of a version, once it is in force."""
    mark = -1
    async with asyncio.timeout(PATIENCE_S):
        while (state := await store.configs.state()).in_force_number != version:
            mark = await store.changes.wait(mark, 1.0)
    assert state.in_force is not None
    return ClusterChange.model_validate_json(state.in_force.effects)


async def apply(lab: Cluster, text: str) -> ClusterChange:
    number = (await lab.store.configs.state()).number
    made = await lab.store.configs.record(text, "root", datetime.now(UTC), number)
    return await in_force(lab.store, made.version)


@pytest.mark.asyncio
async def test_a_job_that_loses_its_quota_runs_on_and_a_waiting_one_starts_at_once(tmp_path: Path) -> None:
    async with cluster(tmp_path, cluster=Setting(shared(2, 0))) as lab:
        first, second = [await lab.running(await lab.submit(job_in("default"))) for _ in range(2)]
        waiting = await lab.until((await lab.submit(job_in("vc1", PROD))).uid, lambda now: bool(now.why))
        effects = await apply(lab, shared(1, 1))
        assert [(each.job, each.gpus) for each in effects.lost] == [(second.id, 1)]
        displaced = await lab.until(second.uid, is_displaced)
        assert displaced.state is State.RUNNING
        assert claims(await lab.store.events.of_job(second.uid)) == [("lost", [f"{second.tasks[0].role}-0"], 2)]
        assert claims(await lab.store.events.of_job(first.uid)) == []
        # What is owned now is taken back from the one that runs without a claim.
        assert (await lab.running(waiting)).tasks[0].placement is not None
        assert (await lab.store.jobs.get(first.uid)).state is State.RUNNING


@pytest.mark.asyncio
async def test_a_quota_that_comes_back_is_regained_where_the_job_runs(tmp_path: Path) -> None:
    async with cluster(tmp_path, cluster=Setting(shared(2, 0))) as lab:
        jobs = [await lab.running(await lab.submit(job_in("default"))) for _ in range(2)]
        await apply(lab, shared(1, 1))
        await lab.until(jobs[1].uid, is_displaced)
        effects = await apply(lab, shared(2, 0))
        assert [each.job for each in effects.regained] == [jobs[1].id]
        await lab.until(jobs[1].uid, lambda now: not is_displaced(now))
        told = claims(await lab.store.events.of_job(jobs[1].uid))
        assert [(change, config) for change, _, config in told] == [("lost", 2), ("regained", 3)]
        assert [(await lab.store.jobs.get(job.uid)).attempt for job in jobs] == [0, 0]


@pytest.mark.asyncio
async def test_a_waiting_job_starts_at_once_when_its_virtual_cluster_grows(tmp_path: Path) -> None:
    async with cluster(tmp_path, cluster=Setting(shared(1, 0))) as lab:
        gone = await lab.until((await lab.submit(job_in("vc1"))).uid, lambda now: bool(now.why))
        await apply(lab, shared(1, 1))
        assert (await lab.running(gone)).state is State.RUNNING


@pytest.mark.asyncio
async def test_a_virtual_cluster_that_goes_keeps_its_jobs_waiting_until_it_comes_back(tmp_path: Path) -> None:
    async with cluster(tmp_path, cluster=Setting(shared(1, 1))) as lab:
        runs = await lab.running(await lab.submit(job_in("vc1")))
        waits = await lab.until((await lab.submit(job_in("vc1"))).uid, lambda now: bool(now.why))
        effects = await apply(lab, ONE_VC)
        assert [each.job for each in effects.lost] == [runs.id]
        waits = await lab.until(waits.uid, lambda now: "vc1" in now.why and "no virtual cluster" in now.why.lower())
        await apply(lab, shared(0, 2))
        assert (await lab.running(waits)).state is State.RUNNING
        assert (await lab.store.jobs.get(runs.uid)).attempt == 0


@pytest.mark.asyncio
async def test_jobs_of_a_derived_configuration_keep_their_claims_in_a_written_one_that_fits(tmp_path: Path) -> None:
    """Without a configuration all jobs are of one virtual cluster; a written one has theirs."""
    written = to_yaml(derive([lab_node("carol"), lab_node("dan")])).replace("default:", "research:")
    async with cluster(tmp_path, lab_node("carol"), lab_node("dan")) as lab:
        job = await lab.running(await lab.submit(job_in("research")))
        effects = await apply(lab, written)
        assert (effects.lost, effects.missing) == ((), ())
        await lab.running(await lab.submit(job_in("research")))
        assert not is_displaced(await lab.store.jobs.get(job.uid))


class Reluctant(ScriptedEngine):
    """An engine whose tasks do not end when they are asked to."""

    async def stop(self, uid: TaskUid, grace: float) -> None:
        return


@pytest.mark.asyncio
async def test_a_reservation_is_dropped_told_and_decided_anew(tmp_path: Path) -> None:
    engine = Reluctant()
    async with opened(tmp_path) as store, controlled(store, engine, cluster=Setting(TWO_VCS)):
        lab = Cluster(store, engine)
        low = await lab.running(await lab.submit(job_in("vc1", TEST)))
        high = await lab.submit(job_in("vc1", PROD))
        await lab.until(high.uid, lambda now: now.tasks[0].reserved is not None)
        effects = await apply(lab, ONE_VC.replace("default:", "vc1:"))
        assert ([each.job for each in effects.dropped], [each.job for each in effects.lost]) == ([high.id], [low.id])
        events = await store.events.of_job((await lab.running(high)).uid)
        assert claims(events) == [("unreserved", [f"{high.tasks[0].role}-0"], 2)]
        assert (await store.jobs.get(low.uid)).tasks[0].exit is None


@pytest.mark.asyncio
async def test_a_changed_setting_is_a_new_version_at_the_next_start(tmp_path: Path) -> None:
    engine = ScriptedEngine()
    async with opened(tmp_path) as store:
        lab = Cluster(store, engine)
        async with controlled(store, engine, cluster=Setting(shared(2, 0))):
            jobs = [await lab.running(await lab.submit(job_in("default"))) for _ in range(2)]
        async with controlled(store, engine, cluster=Setting(shared(1, 1))):
            effects = await in_force(store, 2)
            assert [each.job for each in effects.lost] == [jobs[1].id]
        await apply_without_controller(store, shared(2, 0))
        async with controlled(store, engine, cluster=Setting(shared(1, 1))):
            assert [each.job for each in (await in_force(store, 3)).regained] == [jobs[1].id]
        async with controlled(store, engine, cluster=Setting(shared(1, 1), fixed=True)):
            assert [each.job for each in (await in_force(store, 4)).lost] == [jobs[1].id]


async def apply_without_controller(store: Store, text: str) -> None:
    number = (await store.configs.state()).number
    await store.configs.record(text, "root", datetime.now(UTC), number)


class CutOff(Configurations):
    """Configurations of a database that is away when a version is to take force, or right afterwards."""

    def __init__(self, real: Configurations, *, after: bool) -> None:
        self.__dict__.update(real.__dict__)
        self._after = after
        self.cut = 0

    async def took_force(self, version: int, effects: str, at: datetime, epoch: int) -> None:
        self.cut += 1
        if self.cut > 1:
            return await super().took_force(version, effects, at, epoch)
        if self._after:
            await super().took_force(version, effects, at, epoch)
        raise Unavailable("The database is away.")


@pytest.mark.asyncio
@pytest.mark.parametrize(
    "after", [False, True], ids=["before it is in force", "when it is in force and nobody is told"]
)
async def test_a_controller_that_ends_in_the_middle_loses_no_effect(tmp_path: Path, after: bool) -> None:
    async with cluster(tmp_path, cluster=Setting(shared(2, 0))) as lab:
        jobs = [await lab.running(await lab.submit(job_in("default"))) for _ in range(2)]
        cut = CutOff(lab.store.configs, after=after)
        lab.store.configs = cut
        effects = await apply(lab, shared(1, 1))
        assert [each.job for each in effects.lost] == [jobs[1].id]
        await lab.until(jobs[1].uid, is_displaced)
        assert claims(await lab.store.events.of_job(jobs[1].uid)) == [("lost", [f"{jobs[1].tasks[0].role}-0"], 2)]
        assert cut.cut == (1 if after else 2)
        assert [(await lab.store.jobs.get(job.uid)).state for job in jobs] == [State.RUNNING] * 2


@pytest.mark.asyncio
async def test_a_version_that_can_be_read_no_more_gives_way_to_a_newer_one(tmp_path: Path) -> None:
    engine = ScriptedEngine()
    async with opened(tmp_path) as store:
        lease = await store.leadership.acquire("old", 0, datetime.now(UTC))
        assert lease is not None
        await store.configs.adopt_setting("physicalCluster: 7", datetime.now(UTC), lease.epoch, fixed=False)
        async with controlled(store, engine, cluster=Setting("physicalCluster: 7")):
            lab = Cluster(store, engine)
            await apply(lab, ONE_VC)
            await lab.running(await lab.submit(job_in("default")))


@pytest.mark.asyncio
async def test_a_newer_version_that_cannot_be_read_leaves_the_old_one_in_force(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with cluster(tmp_path, cluster=Setting(shared(1, 1))) as lab:
        await lab.running(await lab.submit(job_in("default")))
        await lab.store.configs.record("physicalCluster: 7", "root", datetime.now(UTC), 1)
        await lab.running(await lab.submit(job_in("vc1")))
        assert (await lab.store.configs.state()).in_force_number == 1
        await apply(lab, shared(2, 0))
        assert "version 2, cannot be read" in caplog.text
