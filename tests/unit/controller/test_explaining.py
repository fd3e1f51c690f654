"""Why a job waits, as the controller answers those who ask through the store."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from pathlib import Path

import pytest

from pai_backend.controller import loop
from pai_backend.model.job import Job
from pai_backend.model.spec import PortSpec
from pai_backend.model.waiting import Cause, ChangeKind, LackOf, Waiting
from pai_backend.testing.builders import make_role, make_spec
from tests.support.lab_config import one_vc, two_vcs
from tests.support.scripted_cluster import PATIENCE_S, Cluster, cluster, controlled, opened
from tests.support.scripted_engine import lab_node
from tests.unit.controller.test_preemption import PROD, TEST, Reluctant, job_in


async def answer(lab: Cluster, job: Job) -> str:
    """What the controller says when it is asked now."""
    await lab.store.explanations.ask(job.uid, datetime.now(UTC))
    mark = -1
    async with asyncio.timeout(PATIENCE_S):
        while (found := await lab.store.explanations.get(job.uid)) is None or found.open:
            mark = await lab.store.changes.wait(mark, 1.0)
    return found.body


async def explained(lab: Cluster, job: Job) -> Waiting:
    return Waiting.model_validate_json(await answer(lab, job))


@pytest.mark.asyncio
async def test_a_full_virtual_cluster_is_told_with_its_holder_and_what_would_start_the_job(tmp_path: Path) -> None:
    async with cluster(tmp_path, config=two_vcs()) as lab:
        first = await lab.running(await lab.submit(job_in("vc1", PROD)))
        second = await lab.until((await lab.submit(job_in("vc1", PROD))).uid, lambda now: bool(now.why))
        told = await explained(lab, second)
        assert (told.cause, told.vc, told.needed, told.owned) == (Cause.PRIORITY, "vc1", 1, 1)
        assert [(holder.group, holder.user) for holder in told.holders] == [(first.id, "alice")]
        kinds = [(change.kind, change.vc) for change in told.changes]
        assert kinds == [(ChangeKind.VC, "default"), (ChangeKind.OPPORTUNISTIC, "")]
        assert told.texts["en"].remedy == "In virtual cluster default it would start now."
        assert set(told.texts) == {"en", "zh_CN"}


@pytest.mark.asyncio
async def test_the_place_in_the_queue_counts_those_of_the_same_virtual_cluster_by_priority(tmp_path: Path) -> None:
    async with cluster(tmp_path, config=two_vcs()) as lab:
        await lab.running(await lab.submit(job_in("vc1", PROD)))
        low = await lab.submit(job_in("vc1", TEST))
        high = await lab.submit(job_in("vc1", PROD))
        await lab.running(await lab.submit(job_in("default", PROD)))
        await lab.submit(job_in("default", PROD))
        for job in (low, high):
            await lab.until(job.uid, lambda now: bool(now.why))
        places = {job.uid: await explained(lab, job) for job in (low, high)}
        assert (places[high.uid].position, places[high.uid].waiting) == (1, 2)
        assert (places[low.uid].position, places[low.uid].waiting) == (2, 2)


@pytest.mark.asyncio
async def test_a_smaller_gang_is_suggested_and_would_really_start(tmp_path: Path) -> None:
    async with cluster(tmp_path, config=one_vc()) as lab:
        await lab.running(await lab.submit(job_in("default", PROD)))
        gang = await lab.until((await lab.submit(job_in("default", PROD, tasks=2))).uid, lambda now: bool(now.why))
        told = await explained(lab, gang)
        assert [(change.kind, change.before, change.after) for change in told.changes] == [(ChangeKind.FEWER, 2, 1)]
        await lab.running(await lab.submit(job_in("default", PROD, tasks=1)))


@pytest.mark.asyncio
async def test_a_change_is_not_suggested_where_cpu_is_too_short_for_it(tmp_path: Path) -> None:
    """Two of three tasks would have GPUs on the node, but only one has CPU."""
    spec = make_spec(roles=[make_role(instances=3, gpus=1, cpus=3)])
    async with cluster(tmp_path, lab_node("carol", gpus=2, cpus=4)) as lab:
        job = await lab.until((await lab.submit(spec)).uid, lambda now: bool(now.why))
        told = await explained(lab, job)
        assert [(change.kind, change.after) for change in told.changes] == [(ChangeKind.FEWER, 1)]


@pytest.mark.asyncio
async def test_a_node_that_lacks_memory_is_named_with_its_numbers(tmp_path: Path) -> None:
    spec = make_spec(roles=[make_role(gpus=1, memory_mb=30_000)])
    hog = make_spec(roles=[make_role(memory_mb=30_000)])
    async with cluster(tmp_path, lab_node("carol")) as lab:
        await lab.running(await lab.submit(hog))
        job = await lab.until((await lab.submit(spec)).uid, lambda now: bool(now.why))
        told = await explained(lab, job)
        assert told.cause is Cause.LINEAR
        assert [(lack.node, lack.what, lack.needed, lack.available) for lack in told.lacks] == [
            ("carol", LackOf.MEMORY, 30_000, 2768)
        ]


@pytest.mark.asyncio
async def test_a_fixed_port_that_is_taken_is_named(tmp_path: Path) -> None:
    role = make_role(gpus=1, ports=[PortSpec(label="http", begin_at=15003)])
    async with cluster(tmp_path, lab_node("carol", gpus=2)) as lab:
        await lab.running(await lab.submit(make_spec(roles=[role])))
        job = await lab.until((await lab.submit(make_spec(roles=[role]))).uid, lambda now: bool(now.why))
        told = await explained(lab, job)
        assert told.cause is Cause.PORT
        assert [(lack.what, lack.needed) for lack in told.lacks] == [(LackOf.PORT, 15003)]


@pytest.mark.asyncio
async def test_a_job_with_a_place_that_is_being_cleared_names_those_who_are_stopped(tmp_path: Path) -> None:
    async with opened(tmp_path) as store, controlled(store, engine := Reluctant(), config=two_vcs()):
        lab = Cluster(store, engine)
        low = await lab.running(await lab.submit(job_in("vc1", TEST)))
        high = await lab.submit(job_in("vc1", PROD))
        await engine.asked_to_stop(low.tasks[0].uid)
        told = await explained(lab, high)
        assert told.cause is Cause.PREEMPTING
        assert [holder.group for holder in told.holders] == [low.id]
        await engine.exit(low.tasks[0].uid, 0)
        await lab.running(high)


@pytest.mark.asyncio
async def test_asking_changes_nothing_and_the_job_starts_as_if_nobody_had_asked(tmp_path: Path) -> None:
    async with cluster(tmp_path, config=two_vcs()) as lab:
        first = await lab.running(await lab.submit(job_in("vc1", PROD)))
        second = await lab.until((await lab.submit(job_in("vc1", PROD))).uid, lambda now: bool(now.why))
        assert await answer(lab, second) == await answer(lab, second)
        assert (await lab.store.jobs.get(second.uid)).version == second.version
        await lab.engine.exit(first.tasks[0].uid, 0)
        await lab.running(second)


@pytest.mark.asyncio
async def test_a_job_that_does_not_wait_has_an_empty_answer(tmp_path: Path) -> None:
    async with cluster(tmp_path) as lab:
        job = await lab.running(await lab.submit())
        assert await answer(lab, job) == ""
        await lab.engine.exit(job.tasks[0].uid, 0)
        assert await answer(lab, await lab.final(job)) == ""


@pytest.mark.asyncio
async def test_an_explanation_that_fails_ends_neither_the_controller_nor_the_question(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def broken(*_: object, **__: object) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr(loop, "why", broken)
    async with cluster(tmp_path, config=two_vcs()) as lab:
        first = await lab.running(await lab.submit(job_in("vc1", PROD)))
        second = await lab.until((await lab.submit(job_in("vc1", PROD))).uid, lambda now: bool(now.why))
        assert await answer(lab, second) == ""
        assert "why it waits could not be explained" in caplog.text
        await lab.engine.exit(first.tasks[0].uid, 0)
        await lab.running(second)
