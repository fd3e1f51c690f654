"""A job that a used-up budget concerns waits with that reason, and starts once the budget allows it again."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path

import pytest

from pai_backend.controller.budgets import FRESH, BudgetLook
from pai_backend.model.account import EVERYONE, Group
from pai_backend.model.budget import Budget, Per, Resource, Scope, hours_us
from pai_backend.model.job import Job, NewEvent, State
from pai_backend.model.spec import JobSpec
from pai_backend.store.budgets import new_id
from pai_backend.store.grants import Act
from pai_backend.store.sql import Store
from pai_backend.testing.builders import make_job, make_role, make_spec, make_uid
from tests.support.scripted_cluster import Cluster, controlled, on_gpu, opened
from tests.support.scripted_engine import ScriptedEngine, lab_node

HOUR = timedelta(hours=1)
NOON = datetime(2026, 11, 30, 12, tzinfo=UTC)
ACT = Act("root", NOON)
HELD = "budget used up: the budget of the "


@dataclass
class Clock:
    """The controller's time, which a test moves."""

    now: datetime = NOON

    def __call__(self) -> datetime:
        return self.now


@asynccontextmanager
async def lab_at_noon(path: Path, gpus: int = 1) -> AsyncIterator[tuple[Cluster, Clock]]:
    async with opened(path) as store:
        engine, clock = ScriptedEngine(lab_node("carol", gpus=gpus)), Clock()
        async with controlled(store, engine, clock=clock):
            yield Cluster(store, engine), clock


async def allow(store: Store, scope: Scope, hours: str, **changes: object) -> Budget:
    made = {
        "id": new_id(),
        "scope": scope,
        "resource": Resource.GPU,
        "per": Per.MONTH,
        "limit": hours_us(Decimal(hours)),
        "warn_percent": 80,
        "since": NOON,
        "changed_at": NOON,
        "changed_by": "root",
        **changes,
    }
    return await store.budgets.put(Budget(**made), ACT, keep_since=True)  # type: ignore[arg-type]


async def submit(lab: Cluster, user: str, spec: JobSpec | None = None) -> Job:
    lab.numbers += 1
    spec = (spec or on_gpu()).model_copy(update={"name": f"job{lab.numbers}"})
    job = make_job(spec.name, uid=make_uid(lab.numbers), user=user, spec=spec, submitted_at=NOON)
    made = NewEvent("job.submitted", {"name": spec.name, "user": user})
    return await lab.store.jobs.submit(job, b"{}", "", "", [made])


def is_held(job: Job) -> bool:
    return job.state is State.WAITING and job.why.startswith(HELD)


async def told(store: Store, job: Job) -> list[str]:
    found = await store.events.of_job(job.uid, type_="job.budget")
    assert all(each.payload.keys() == {"budget", "text", "text_wording"} for each in found), "as docs/events.md says"
    return [str(each.payload["text"]) for each in found]


@pytest.mark.asyncio
async def test_a_used_up_budget_holds_new_jobs_until_it_is_raised_and_who_runs_goes_on(tmp_path: Path) -> None:
    async with lab_at_noon(tmp_path, gpus=2) as (lab, clock):
        first = await lab.running(await submit(lab, "alice"))
        await allow(lab.store, Scope("alice"), "1")
        second = await lab.running(await submit(lab, "alice"))
        clock.now += HOUR / 2 + FRESH  # two GPUs, so that the next job finds no room either
        third = await lab.until((await submit(lab, "alice")).uid, is_held)
        assert third.why == (
            "budget used up: the budget of the user alice for November 2026 is 1 GPU hours, and all of it is used; "
            "it begins again on 2026-12-01 (UTC), or when an administrator raises it"
        )
        for runs in (first, second):
            assert (await lab.store.jobs.get(runs.uid)).state is State.RUNNING
        await lab.engine.exit(first.tasks[0].uid, 0)
        await lab.running(await submit(lab, "bob"))
        await lab.running(await submit(lab, "alice", make_spec(roles=[make_role(cpus=1)])))
        await lab.engine.exit(second.tasks[0].uid, 0)
        await lab.final(second)
        assert is_held(await lab.store.jobs.get(third.uid)), "though a GPU is free"
        await allow(lab.store, Scope("alice"), "100")
        assert (await lab.running(third)).why == ""


@pytest.mark.asyncio
async def test_it_begins_again_with_the_month(tmp_path: Path) -> None:
    async with lab_at_noon(tmp_path) as (lab, clock):
        await allow(lab.store, Scope("alice"), "0.5")
        first = await lab.running(await submit(lab, "alice"))
        clock.now += HOUR
        second = await lab.until((await submit(lab, "alice")).uid, is_held)
        await lab.engine.exit(first.tasks[0].uid, 0)
        await lab.final(first)
        clock.now = datetime(2026, 12, 1, tzinfo=UTC)
        await lab.running(second)


@pytest.mark.asyncio
async def test_a_later_controller_holds_it_too_and_of_several_budgets_any_used_up_one_does(tmp_path: Path) -> None:
    async with opened(tmp_path) as store:
        engine, clock = ScriptedEngine(lab_node("carol", gpus=1)), Clock()
        lab = Cluster(store, engine)
        await store.groups.add(Group("vision", members=("alice",)), ACT)
        async with controlled(store, engine, clock=clock):
            first = await lab.running(await submit(lab, "alice"))
            clock.now += 2 * HOUR
            await allow(store, Scope(group="vision"), "1", per=Per.TOTAL)
            await allow(store, Scope(virtual_cluster="default"), "1")
            await allow(store, Scope("alice"), "1000")
            held = await lab.until((await submit(lab, "alice")).uid, is_held)
        async with controlled(store, engine, clock=clock):
            held = await lab.until(held.uid, is_held)
            assert "virtual cluster default" in held.why
            await allow(store, Scope(virtual_cluster="default"), "1000")
            held = await lab.until(held.uid, lambda job: "group vision" in job.why)
            assert held.why.endswith(
                "since 2026-11-30 is 1 GPU hours, and all of it is used; jobs start again when an "
                "administrator raises it"
            )
            await lab.engine.exit(first.tasks[0].uid, 0)
            await lab.final(first)
            assert is_held(await store.jobs.get(held.uid)), "though a GPU is free"
            await store.groups.remove("vision", ACT)
            await lab.running(held)


@pytest.mark.asyncio
async def test_cpu_hours_hold_every_job(tmp_path: Path) -> None:
    async with lab_at_noon(tmp_path) as (lab, _):
        first = await lab.running(await submit(lab, "alice"))
        waits = await submit(lab, "bob")
        budget = await allow(lab.store, Scope(group=EVERYONE), "0", resource=Resource.CPU)
        assert "group default" in (await lab.until(waits.uid, is_held)).why
        assert (await lab.store.jobs.get(first.uid)).state is State.RUNNING
        await lab.engine.exit(first.tasks[0].uid, 0)
        await lab.store.budgets.remove(budget.id, ACT)
        await lab.running(waits)


@pytest.mark.asyncio
async def test_each_owner_of_running_jobs_is_told_once_of_each_level(tmp_path: Path) -> None:
    async with opened(tmp_path) as store:
        engine, clock = ScriptedEngine(lab_node("carol", gpus=8)), Clock()
        lab = Cluster(store, engine)
        async with controlled(store, engine, clock=clock):
            jobs = [await lab.running(await submit(lab, user)) for user in ("alice", "alice", "bob")]
            await allow(store, Scope(virtual_cluster="default"), "10")
            clock.now += 3 * HOUR
            await _until(lambda: told(store, jobs[2]), 1)
        async with controlled(store, engine, clock=clock):
            clock.now += HOUR
            await _until(lambda: told(store, jobs[2]), 2)
            texts = [await told(store, job) for job in jobs]
    assert (
        texts[0]
        == texts[2]
        == [
            "9 of 10 GPU hours of the budget of the virtual cluster default for November 2026 are used. When all are "
            "used, jobs wait; running jobs go on.",
            "12 of 10 GPU hours of the budget of the virtual cluster default for November 2026 are used. No other job "
            "starts before 2026-12-01 (UTC), unless the budget is raised; running jobs go on.",
        ]
    )
    assert texts[1] == [], "one job of each owner"


async def _until(ask: Callable[[], Awaitable[list[str]]], number: int) -> None:
    async with asyncio.timeout(60):
        while len(await ask()) < number:  # noqa: ASYNC110 - the event wakes no test
            await asyncio.sleep(0.05)


@pytest.mark.asyncio
async def test_the_ledger_is_added_up_when_a_budget_or_a_group_changes_or_the_last_look_is_old(tmp_path: Path) -> None:
    async with opened(tmp_path) as store:
        took = [0.0]
        look = BudgetLook(store, lambda: took[0])
        assert await look.look(NOON, 1) == ()
        await allow(store, Scope("alice"), "1")
        first = await look.look(NOON, 1)
        assert len(first) == 1
        assert await look.look(NOON + FRESH / 2, 1) is first
        for now, members in ((NOON + FRESH, 1), (NOON + FRESH, 2), (NOON, 2), (datetime(2026, 12, 1, tzinfo=UTC), 2)):
            again = await look.look(now, members)
            assert again is not first, (now, members)
            first = again
        await allow(store, Scope("alice"), "2")
        assert (await look.look(datetime(2026, 12, 1, tzinfo=UTC), 2))[0].claim.budget.limit == hours_us(Decimal(2))
