"""What the controller knows of how long jobs run: what is stored when it begins, and every end since."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from pai_backend.model.job import Job, State
from pai_backend.model.order import Order
from pai_backend.model.spec import JobSpec
from pai_backend.model.waiting import Basis, Waiting
from pai_backend.scheduling.queue import Policy
from pai_backend.store.sql import Store
from pai_backend.testing.builders import make_job, make_role, make_spec, make_uid
from tests.support.scripted_cluster import Cluster, controlled, opened
from tests.support.scripted_engine import ScriptedEngine, lab_node
from tests.unit.controller.test_explaining import explained

LONG = timedelta(hours=2)
EARLIER = datetime(2026, 1, 1, tzinfo=UTC)


def one_gpu(run_s: int | None = None, instances: int = 1) -> JobSpec:
    made = make_spec(roles=[make_role(gpus=1, instances=instances)])
    return made.model_copy(update={"expected_run_s": run_s})


async def ended_earlier(store: Store, count: int) -> None:
    """So many jobs of the kind that ``Cluster.submit`` makes of a GPU each, which ran for two hours."""
    lease = await store.leadership.acquire("before", 10, EARLIER, force=True)
    assert lease is not None
    for number in range(count):
        name = f"job-{number}"
        spec = one_gpu().model_copy(update={"name": name})
        job = await store.jobs.submit(make_job(name, uid=make_uid(1000 + number), spec=spec), b"", "", "", [])
        (task,) = job.tasks
        over = task.model_copy(update={"started_at": EARLIER, "ended_at": EARLIER + LONG, "forgotten": True})
        after = job.model_copy(update={"state": State.SUCCEEDED, "tasks": (over,)})
        await store.jobs.save(after, seen=job, epoch=lease.epoch, events=[], at=EARLIER)


async def submitted(lab: Cluster, spec: JobSpec) -> Job:
    """A job called ``job-N``."""
    lab.numbers += 1
    name = f"job-{100 + lab.numbers}"
    made = make_job(
        name,
        uid=make_uid(lab.numbers),
        spec=spec.model_copy(update={"name": name}),
        submitted_at=datetime.now(UTC),
    )
    return await lab.store.jobs.submit(made, b"{}", "job.json", "application/json", [])


async def told_behind(lab: Cluster, first: Job) -> tuple[Waiting, datetime]:
    """Why a job waits behind this one, which runs, and since when that does."""
    (task,) = (await lab.running(first)).tasks
    assert task.started_at is not None
    waiting = await lab.until((await submitted(lab, one_gpu())).uid, lambda now: bool(now.why))
    return await explained(lab, waiting), task.started_at


@pytest.mark.asyncio
async def test_what_a_document_declares_tells_those_behind_when_they_start(tmp_path: Path) -> None:
    async with opened(tmp_path) as store, controlled(store, engine := ScriptedEngine(lab_node("carol"))):
        lab = Cluster(store, engine)
        told, since = await told_behind(lab, await submitted(lab, one_gpu(run_s=5400)))
        assert told.starts_at == since + timedelta(minutes=90)
        assert told.rests_on == (Basis.DECLARED,)
        assert [holder.until for holder in told.holders] == [told.starts_at]


@pytest.mark.asyncio
async def test_groups_of_one_gang_end_together(tmp_path: Path) -> None:
    roles = [make_role(name, gpus=1).model_copy(update={"affinity_group": name}) for name in ("x", "y")]
    pair = make_spec(roles=roles).model_copy(update={"expected_run_s": 5400})
    async with opened(tmp_path) as store, controlled(store, engine := ScriptedEngine(lab_node("carol", gpus=2))):
        lab = Cluster(store, engine)
        uid = (await submitted(lab, pair)).uid
        first = await lab.until(uid, lambda now: all(task.started_at is not None for task in now.tasks))
        both = await submitted(lab, make_spec(roles=[make_role(gpus=2)]))
        told = await explained(lab, await lab.until(both.uid, lambda now: bool(now.why)))
        last = max(task.started_at for task in first.tasks if task.started_at is not None)
        assert told.starts_at == last + timedelta(minutes=90)


@pytest.mark.asyncio
async def test_what_ended_before_the_controller_began_counts(tmp_path: Path) -> None:
    async with opened(tmp_path) as store:
        await ended_earlier(store, 3)
        async with controlled(store, engine := ScriptedEngine(lab_node("carol"))):
            lab = Cluster(store, engine)
            told, since = await told_behind(lab, await submitted(lab, one_gpu()))
            assert (told.starts_at, told.rests_on) == (since + LONG, (Basis.HISTORY,))


@pytest.mark.asyncio
async def test_what_ends_meanwhile_counts_too(tmp_path: Path) -> None:
    async with opened(tmp_path) as store:
        await ended_earlier(store, 2)
        async with controlled(store, engine := ScriptedEngine(lab_node("carol"))):
            lab = Cluster(store, engine)
            first = await lab.running(await submitted(lab, one_gpu()))
            too_few = await lab.until((await submitted(lab, one_gpu())).uid, lambda now: bool(now.why))
            assert (await explained(lab, too_few)).starts_at is None
            await engine.exit(first.tasks[0].uid, 0)
            await lab.final(first)
            told, since = await told_behind(lab, too_few)
            assert (told.starts_at, told.rests_on) == (since + LONG, (Basis.HISTORY,))


@pytest.mark.asyncio
async def test_a_turn_that_is_put_off_is_stored_and_stands_after_a_restart(tmp_path: Path) -> None:
    async with opened(tmp_path) as store:
        await ended_earlier(store, 3)
        policy = Policy(order=Order.PREDICTED)
        async with controlled(store, engine := ScriptedEngine(lab_node("carol")), policy=policy):
            lab = Cluster(store, engine)
            first = await lab.running(await submitted(lab, one_gpu()))
            long = await lab.until((await submitted(lab, one_gpu())).uid, lambda now: bool(now.why))
            assert long.put_off_s == Order.PREDICTED.put_off(LONG).total_seconds()
            assert long.turn_at == long.submitted_at + timedelta(seconds=long.put_off_s)
            short = await lab.submit(
                make_spec("quick", roles=[make_role(gpus=1)]).model_copy(update={"expected_run_s": 60})
            )
        async with controlled(store, engine, policy=policy):
            await lab.until(short.uid, lambda now: bool(now.why))
            await engine.exit(first.tasks[0].uid, 0)
            await lab.running(short)
            assert (await store.jobs.get(long.uid)).turn_at == long.turn_at
