"""When GPUs count as idle, and what an owner is told of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from typing import cast

import pytest

from pai_backend.controller.reconciler import Reconciler
from pai_backend.controller.use_sampler import IdleWindow, Sampling, UseSampler
from pai_backend.engine.base import Engine, EngineError, GpuWork, TaskUse
from pai_backend.engine.use_series import UseSample, UseSeries
from pai_backend.model.ids import JobUid, TaskUid
from pai_backend.model.job import Job, Phase
from pai_backend.model.node import Placement
from pai_backend.store.sql import Store
from pai_backend.testing.builders import T0, make_job
from tests.support.stores import opened

IDLE, BUSY, SILENT = GpuWork(0, 10), GpuWork(60, 10), GpuWork(None, 10)


def idle_after(*samples: int | None, window_s: float = 120, sample_s: float = 30) -> int:
    window = IdleWindow(window_s, sample_s)
    for number, idle in enumerate(samples):
        window.add(UseSample(1000 + number * 30, idle_gpus=idle))
    return window.idle


def test_gpus_are_idle_that_did_nothing_for_the_whole_window() -> None:
    assert idle_after(4, 4, 4, 4) == 0, "90 s are not 120 s"
    assert idle_after(4, 4, 4, 4, 4) == 4
    assert idle_after(4, 4, 1, 4, 4) == 1
    assert idle_after(0, 4, 4, 4, 4, 4) == 4, "work before the window does not count"
    assert idle_after(4, None, None, None, 4) == 0, "a gap is no idleness"
    assert idle_after(4, 4, 4, 4, 4, window_s=0) == 0, "0 is never"


@dataclass
class Meter:
    """An engine whose GPUs tests move."""

    gpus: tuple[GpuWork, ...] = (IDLE, BUSY)
    away: bool = False

    async def uses(self, tasks: Mapping[TaskUid, Placement]) -> Mapping[TaskUid, TaskUse]:
        if self.away:
            raise EngineError("the cluster is away")
        return {uid: TaskUse(1.0, 100, self.gpus) for uid in tasks}


@dataclass
class Site:
    """A job with a task that runs."""

    store: Store
    job: Job
    epoch: int
    sampling: Sampling
    meter: Meter = field(default_factory=Meter)
    now: datetime = T0
    knows_nodes: bool = True

    @property
    def jobs(self) -> dict[JobUid, Job]:
        return {self.job.uid: self.job}

    def sampler(self) -> UseSampler:
        tenure, engine = cast("Reconciler", self), cast("Engine", self.meter)
        return UseSampler(self.store, tenure, engine, self.sampling, epoch=self.epoch, clock=lambda: self.now)

    async def minutes(self, sampler: UseSampler, count: int) -> None:
        for _ in range(count):
            self.now += timedelta(minutes=1)
            await sampler.sample(self.meter)

    async def told(self) -> list[object]:
        events = await self.store.events.of_job(self.job.uid, type_="job.gpus-idle")
        return [event.payload["gpus"] for event in events]


@pytest.mark.asyncio
async def test_the_owner_is_told_once_until_the_gpus_work_again(tmp_path: Path) -> None:
    async with opened(f"sqlite:///{tmp_path}/pai.sqlite") as store:
        job = await store.jobs.submit(make_job(), b"", "", "", [])
        lease = await store.leadership.acquire("here", 60, T0)
        assert lease is not None
        placement = Placement(node="n", address="a", machine="m", gpus=(0, 1))
        tasks = tuple(
            each.model_copy(update={"phase": Phase.RUNNING, "placement": placement}) for each in job.tasks[:1]
        )
        job = job.model_copy(update={"tasks": tasks})
        site = Site(store, job, lease.epoch, Sampling(UseSeries(tmp_path), 60, 600))
        sampler = site.sampler()
        await site.minutes(sampler, 11)
        assert await site.told() == [], "another task's may join"
        await site.minutes(sampler, 1)
        assert await site.told() == [1]
        assert site.sampling.found == {job.uid: 1}
        site.meter.away = True
        await site.minutes(sampler, 30)
        site.meter.away = False
        sampler = site.sampler()  # a successor: what was not looked at is no idleness
        await site.minutes(sampler, 10)
        assert await site.told() == [1]
        await site.minutes(sampler, 2)
        assert await site.told() == [1, 1]
        sampler = site.sampler()
        await site.minutes(sampler, 5)
        assert await site.told() == [1, 1], "what was told is not told again by a successor"
        site.meter.gpus = (BUSY, BUSY)
        await site.minutes(sampler, 1)
        assert site.sampling.found == {}
        site.meter.gpus = (IDLE, IDLE)
        await site.minutes(sampler, 12)
        assert await site.told() == [1, 1, 2]
        assert len(site.sampling.series.read(tasks[0].uid)) == 42
