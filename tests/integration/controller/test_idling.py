"""The keeper of idle clocks over the real store: what it tells, what survives it, and what a late use prevents."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import cast

import pytest

from pai_backend.controller.idle_clocks import IdleKeeper, Watcher
from pai_backend.controller.reconciler import Reconciler
from pai_backend.lifecycle.idleness import Sight
from pai_backend.model.idle import UseSource
from pai_backend.model.ids import JobUid
from pai_backend.model.job import Desired, Job, StopCause
from pai_backend.store.sql import Store
from pai_backend.testing.builders import T0, make_job, make_spec

MINUTE = timedelta(minutes=1)
Written = Mapping[UseSource, datetime]


@dataclass
class Backend:
    """A backend whose wall clock tests move; a job that only ``job_uses`` and ``busy`` tell of."""

    store: Store
    job: Job
    epoch: int
    now: datetime = T0
    since: datetime = T0
    busy: bool = False
    blind: bool = False
    jobs: dict[JobUid, Job] = field(default_factory=dict)
    knows_nodes: bool = True

    async def look(self, job: Job, written: Mapping[UseSource, datetime]) -> Sight:
        working = frozenset({UseSource.GPU} if self.busy else set[UseSource]())
        unread = {UseSource.KERNELS: "no answer", **({UseSource.GPU: "no nvidia-smi"} if self.blind else {})}
        return Sight(self.now, self.since, T0, written, working, unread=unread)

    def keeper(self) -> IdleKeeper:
        """A keeper as a fresh process has it."""
        self.since = self.now
        tenure, watcher = cast("Reconciler", self), cast("Watcher", self)
        return IdleKeeper(self.store, tenure, watcher, epoch=self.epoch, clock=lambda: self.now)

    async def pass_time(self, keeper: IdleKeeper, minutes: int) -> None:
        for _ in range(minutes * 2):
            self.now += MINUTE / 2
            await keeper.look_at([self.job])

    async def told(self) -> list[str]:
        return [event.type for event in await self.store.events.of_job(self.job.uid)]


async def backend(store: Store) -> Backend:
    spec = make_spec().model_copy(update={"idle_timeout_s": 3600})
    job = await store.jobs.submit(make_job(spec=spec), b"", "", "", [])
    lease = await store.leadership.acquire("here", 60, T0)
    assert lease is not None
    return Backend(store, job, lease.epoch)


@pytest.mark.asyncio
async def test_a_restart_keeps_the_clock_and_counts_nothing_of_the_outage(store: Store) -> None:
    site = await backend(store)
    keeper = site.keeper()
    await keeper.look_at([site.job])
    await site.pass_time(keeper, 40)
    site.now += timedelta(days=2)
    keeper = site.keeper()
    await keeper.look_at([site.job])
    assert await site.told() == []
    await site.pass_time(keeper, 9)
    assert await site.told() == []
    await site.pass_time(keeper, 1)
    assert await site.told() == ["job.idle-warning"]
    site.now += timedelta(days=2)
    keeper = site.keeper()
    await keeper.look_at([site.job])
    await site.pass_time(keeper, 9)
    assert (await store.jobs.get(site.job.uid)).desired is Desired.START
    await site.pass_time(keeper, 1)
    stored = await store.jobs.get(site.job.uid)
    assert (stored.desired, stored.stop_cause) == (Desired.STOP, StopCause.IDLE)
    assert stored.stop_reason == "idle: nothing has used it for 1h, its idleTimeout"
    assert await site.told() == ["job.idle-warning", "job.stop-requested"]


@pytest.mark.asyncio
async def test_a_gpu_that_works_keeps_a_job_that_nobody_is_logged_in_to(store: Store) -> None:
    site = await backend(store)
    site.busy = True
    keeper = site.keeper()
    await keeper.look_at([site.job])
    await site.pass_time(keeper, 90)
    assert await site.told() == []
    site.busy = False
    await site.pass_time(keeper, 50)
    (warning,) = await store.events.of_job(site.job.uid)
    assert warning.payload["unread"] == {"kernels": "no answer"}
    assert "kernels could not be looked at: no answer" in str(warning.payload["text"])
    site.busy = True
    await site.pass_time(keeper, 1)
    assert await site.told() == ["job.idle-warning", "job.idle-over"]


@pytest.mark.asyncio
async def test_gpus_that_cannot_be_read_hold_a_job_which_is_told_once(store: Store) -> None:
    site = await backend(store)
    site.blind = True
    keeper = site.keeper()
    await keeper.look_at([site.job])
    await site.pass_time(keeper, 40)
    keeper = site.keeper()  # what holds it since when outlives a restart
    await site.pass_time(keeper, 25)
    (held,) = await store.events.of_job(site.job.uid)
    assert held.type == "job.idle-held"
    assert held.payload["since"] == T0.isoformat()
    assert held.payload["unread"] == {"kernels": "no answer", "gpu": "no nvidia-smi"}
    assert "no nvidia-smi. They may work, so it is not stopped" in str(held.payload["text"])
    site.blind = False
    await site.pass_time(keeper, 60)
    assert await site.told() == ["job.idle-held", "job.idle-warning", "job.stop-requested"]


@pytest.mark.asyncio
async def test_a_use_that_the_last_look_did_not_see_prevents_the_stop(store: Store, other_store: Store) -> None:
    site = await backend(store)
    keeper = site.keeper()
    await keeper.look_at([site.job])
    await site.pass_time(keeper, 59)
    ask, answers = store.idling.stop, list[bool]()

    async def after_a_use(uid: JobUid, seen: Written, reason: str, at: datetime, epoch: int) -> bool:
        await other_store.idling.note({(uid, UseSource.SSH): site.now - timedelta(days=1)})  # its clock is late
        answers.append(await ask(uid, seen, reason, at, epoch))
        return answers[-1]

    store.idling.stop = after_a_use  # type: ignore[method-assign]
    await site.pass_time(keeper, 2)
    assert answers == [False]
    assert (await store.jobs.get(site.job.uid)).desired is Desired.START
    assert await site.told() == ["job.idle-warning", "job.idle-over"]
