"""Rules of virtual clusters are live in the controller: who starts, for how long, and whose GPUs must work."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from typing import cast

import pytest

from pai_backend.controller.durations import DurationKeeper
from pai_backend.controller.reconciler import Reconciler
from pai_backend.controller.underuse import UnderuseKeeper
from pai_backend.controller.use_sampler import Sampling, UseSampler
from pai_backend.engine.base import Engine, EngineError, GpuWork, TaskUse
from pai_backend.engine.use_series import UseSeries
from pai_backend.model.booking import Booking
from pai_backend.model.ids import JobUid, TaskUid
from pai_backend.model.job import Job, Phase, State
from pai_backend.model.node import Placement
from pai_backend.model.vc_rules import KeptRules, LongestRun, VcRules
from pai_backend.scheduling.queue import Cap, Policy, VcCaps
from pai_backend.scheduling.queue.policy import with_rules
from pai_backend.store.grants import Act
from pai_backend.store.sql import Store
from pai_backend.testing.builders import T0, make_job, make_spec
from tests.support.scripted_cluster import Cluster, cluster, controlled, on_gpu, opened
from tests.support.scripted_engine import ScriptedEngine, lab_node
from tests.unit.controller.test_admission import ACT


async def rule(store: Store, **given: object) -> KeptRules:
    return await store.vc_rules.change("default", given, ACT)


def is_refused(job: Job) -> bool:
    return job.state is State.WAITING and job.why.startswith("not allowed any longer: ")


@pytest.mark.asyncio
async def test_what_waits_and_is_not_allowed_any_longer_starts_when_it_is_again(tmp_path: Path) -> None:
    async with opened(tmp_path) as store:
        engine = ScriptedEngine(lab_node("carol", gpus=1))
        lab = Cluster(store, engine)
        async with controlled(store, engine):
            first = await lab.running(await lab.submit(on_gpu()))
            second = await lab.until((await lab.submit(on_gpu())).uid, lambda now: bool(now.why))
            await rule(store, images=["registry.lab/*"])
            told = await lab.until(second.uid, is_refused)
            assert "does not allow the image" in told.why
            assert "Choose an image that matches: registry.lab/*" in told.why
            assert (await store.jobs.get(first.uid)).state is State.RUNNING, "who runs goes on"
        async with controlled(store, engine):
            await engine.exit(first.tasks[0].uid, 0)
            await lab.final(first)
            assert is_refused(await store.jobs.get(second.uid)), "a later controller keeps to it, too"
            await rule(store, images=None, gpu_types=["K80"])
            await lab.until(second.uid, lambda now: "GPU type TITANX" in now.why)
            await rule(store, gpu_types=["K80", "TITANX"])
            await lab.running(second)


@pytest.mark.asyncio
async def test_a_limit_of_jobs_of_each_user_is_live_and_counts_what_runs_already(tmp_path: Path) -> None:
    async with cluster(tmp_path, lab_node("carol", gpus=2)) as lab:
        first = await lab.running(await lab.submit(on_gpu()))
        second = await lab.running(await lab.submit(on_gpu()))
        await rule(lab.store, most_jobs_per_user=2)
        third = await lab.submit(on_gpu())
        waits = await lab.until(third.uid, lambda now: "at most 2 jobs at once" in now.why)
        assert waits.why.endswith("running now: 2 tasks, 2 GPUs, 2 jobs")
        await lab.engine.exit(first.tasks[0].uid, 0)
        await lab.running(third)
        await rule(lab.store, most_jobs_per_user=1)
        fourth = await lab.until((await lab.submit(on_gpu())).uid, lambda now: "at most 1 jobs" in now.why)
        assert (await lab.store.jobs.get(second.uid)).state is State.RUNNING
        await rule(lab.store, most_jobs_per_user=None, most_gpus_per_user=2)
        await lab.until(fourth.uid, lambda now: "at most 2 GPUs at once" in now.why)
        await rule(lab.store, most_gpus_per_user=None)
        await lab.until(fourth.uid, lambda now: bool(now.why) and "at once" not in now.why)
        await lab.engine.exit(second.tasks[0].uid, 0)
        await lab.running(fourth)


def test_the_settings_go_before_the_rules() -> None:
    base = Policy(vc=VcCaps(user=Cap(gpus=4), longest_run=None, users={"eve": Cap(gpus=1)}))
    kept = KeptRules(VcRules(most_gpus_per_user=9, most_jobs_per_user=3, longest_run_s=60), T0, "root", T0)
    policy = with_rules(base, {"vision": kept})
    caps = policy.vcs["vision"]
    assert caps.user == Cap(gpus=4, jobs=3)
    assert caps.users == {"eve": Cap(gpus=1)}
    assert policy.longest_run("vision") == LongestRun(timedelta(seconds=60), T0)
    assert policy.longest_run("other") is None
    fixed = Policy(vcs={"vision": VcCaps(longest_run=LongestRun(timedelta(hours=1)))})
    assert with_rules(fixed, {"vision": kept}).longest_run("vision") == LongestRun(timedelta(hours=1))


@dataclass
class Meter:
    """An engine whose GPUs tests move."""

    gpus: tuple[GpuWork, ...] = (GpuWork(0, 10), GpuWork(0, 10))
    away: bool = False

    async def uses(self, tasks: Mapping[TaskUid, Placement]) -> Mapping[TaskUid, TaskUse]:
        if self.away:
            raise EngineError("the cluster is away")
        return {uid: TaskUse(1.0, 100, self.gpus) for uid in tasks}


@dataclass
class Site:
    """A job with a task that runs since T0, on two GPUs, and who watches over it."""

    store: Store
    job: Job
    epoch: int
    series: UseSeries
    vc_rules: Mapping[str, KeptRules] = field(default_factory=dict)
    meter: Meter = field(default_factory=Meter)
    now: datetime = T0
    knows_nodes: bool = True
    bookings: tuple[Booking, ...] = ()

    @property
    def jobs(self) -> dict[JobUid, Job]:
        return {self.job.uid: self.job}

    def sampler(self) -> UseSampler:
        tenure, engine = cast("Reconciler", self), cast("Engine", self.meter)
        underuse = UnderuseKeeper(
            self.store, tenure, self.series, sample_s=60, epoch=self.epoch, clock=lambda: self.now
        )
        sampling = Sampling(self.series, 60, 0)
        return UseSampler(
            self.store, tenure, engine, sampling, epoch=self.epoch, clock=lambda: self.now, underuse=underuse
        )

    def durations(self) -> DurationKeeper:
        tenure = cast("Reconciler", self)
        return DurationKeeper(self.store, tenure, self._longest, epoch=self.epoch, clock=lambda: self.now)

    def _longest(self, vc: str) -> LongestRun | None:
        return with_rules(Policy(), self.vc_rules).longest_run(vc)

    async def minutes(self, sampler: UseSampler, count: int) -> None:
        for _ in range(count):
            self.now += timedelta(minutes=1)
            await sampler.sample(self.meter)

    async def told(self) -> list[str]:
        return [event.type for event in await self.store.events.of_job(self.job.uid)]


@asynccontextmanager
async def site(path: Path) -> AsyncIterator[Site]:
    async with opened(path) as store:
        job = await store.jobs.submit(make_job(spec=make_spec()), b"", "", "", [])
        lease = await store.leadership.acquire("here", 60, T0)
        assert lease is not None
        place = Placement(node="n", address="a", machine="m", gpus=(0, 1))
        changed = {"phase": Phase.RUNNING, "placement": place, "started_at": T0}
        job = job.model_copy(update={"tasks": (job.tasks[0].model_copy(update=changed),)})
        yield Site(store, job, lease.epoch, UseSeries(path))


@pytest.mark.asyncio
async def test_a_job_whose_gpus_rest_is_warned_and_stopped_though_controllers_change(tmp_path: Path) -> None:
    async with site(tmp_path) as lab:
        lab.vc_rules = {"default": await rule(lab.store, idle_below_percent=5, idle_for_s=1200)}
        await lab.minutes(lab.sampler(), 30)
        sampler = lab.sampler()  # a successor reads what was sampled
        await lab.minutes(sampler, 10)
        assert await lab.told() == []
        await lab.minutes(sampler, 1)
        assert await lab.told() == ["job.underused"]
        await lab.minutes(lab.sampler(), 5)
        (event,) = await lab.store.events.of_job(lab.job.uid)
        assert str(event.payload["text"]).startswith(
            "The GPUs of this job work 0.0 % of the time on average, less than"
        )
        assert event.payload.keys() == {"below_percent", "for_s", "stop_at", "text", "text_wording"}
        lab.meter.away = True
        await lab.minutes(sampler, 30)
        assert await lab.told() == ["job.underused"], "what is not read holds the clock"
        lab.meter.away = False
        await lab.minutes(lab.sampler(), 12)
        assert await lab.told() == ["job.underused", "job.stop-requested"]
        stopped = await lab.store.jobs.get(lab.job.uid)
        assert (
            stopped.stop_reason == "idle: its GPUs worked less than the 5 % over 20m that its virtual cluster asks for"
        )


@pytest.mark.asyncio
async def test_a_gpu_that_does_not_tell_holds_the_clock_and_one_that_works_takes_the_warning_back(
    tmp_path: Path,
) -> None:
    async with site(tmp_path) as lab:
        lab.vc_rules = {"default": await rule(lab.store, idle_below_percent=5, idle_for_s=1200)}
        lab.meter.gpus = (GpuWork(0, 10), GpuWork(None, 10))
        await lab.minutes(lab.sampler(), 90)
        sampler = lab.sampler()  # the kept series says so, too
        await lab.minutes(sampler, 10)
        assert await lab.told() == []
        lab.meter.gpus = (GpuWork(0, 10), GpuWork(0, 10))
        await lab.minutes(sampler, 22)
        assert await lab.told() == ["job.underused"]
        assert (await lab.store.rule_clocks.underuse([lab.job.uid]))[lab.job.uid].text
        lab.meter.gpus = (GpuWork(100, 10), GpuWork(100, 10))
        await lab.minutes(sampler, 2)
        assert await lab.told() == ["job.underused", "job.underused-over"]
        assert (await lab.store.rule_clocks.underuse([lab.job.uid]))[lab.job.uid].text == ""


@pytest.mark.asyncio
async def test_a_rule_that_is_removed_takes_its_warning_back(tmp_path: Path) -> None:
    async with site(tmp_path) as lab:
        lab.vc_rules = {"default": await rule(lab.store, idle_below_percent=5, idle_for_s=600, idle_stops=False)}
        sampler = lab.sampler()
        await lab.minutes(sampler, 90)
        assert await lab.told() == ["job.underused"], "only warned, and once"
        lab.vc_rules = {"default": await rule(lab.store, idle_below_percent=None, idle_for_s=None)}
        await lab.minutes(sampler, 1)
        assert await lab.told() == ["job.underused", "job.underused-over"]


@pytest.mark.asyncio
async def test_the_end_of_a_longest_run_is_warned_once_and_moves_with_the_rule(tmp_path: Path) -> None:
    async with site(tmp_path) as lab:
        keeper = lab.durations()
        lab.now = T0 + timedelta(hours=5)
        await keeper.look()
        assert await lab.told() == []
        kept = await lab.store.vc_rules.change("default", {"longest_run_s": 3600}, Act("root", lab.now))
        lab.vc_rules = {"default": kept}
        lab.now += timedelta(seconds=5)
        for look in (keeper, keeper, lab.durations()):
            await look.look()
        assert await lab.told() == ["job.ending-soon"], "a successor does not repeat it"
        kept = await lab.store.vc_rules.change("default", {"longest_run_s": 6 * 3600}, Act("root", lab.now))
        lab.vc_rules = {"default": kept}
        await keeper.look()
        assert (await lab.store.rule_clocks.ending([lab.job.uid]))[lab.job.uid].text == "", "it has moved away"
        lab.now = T0 + timedelta(hours=5, minutes=50)
        await keeper.look()
        assert await lab.told() == ["job.ending-soon"] * 2
        lab.now = T0 + timedelta(hours=6)
        await lab.durations().look()
        assert await lab.told() == [*["job.ending-soon"] * 2, "job.stop-requested"]
